//! All workers by their ids.

use std::collections::BTreeMap;
use std::ops::Index;

use roost_proto::id::WorkerId;
use serde::{Deserialize, Serialize};

use super::worker::Worker;

/// All of them. Each has room of its own: a tree of ascending keys is half empty, and a worker is large.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Workers(BTreeMap<WorkerId, Box<Worker>>);

impl Workers {
    /// This one.
    pub fn get(&self, id: &WorkerId) -> Option<&Worker> {
        self.0.get(id).map(|worker| &**worker)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, id: &WorkerId) -> Option<&mut Worker> {
        self.0.get_mut(id).map(|worker| &mut **worker)
    }

    /// One more.
    pub fn insert(&mut self, worker: Worker) {
        self.0.insert(worker.id, Box::new(worker));
    }

    /// One less.
    pub fn remove(&mut self, id: &WorkerId) -> Option<Worker> {
        self.0.remove(id).map(|worker| *worker)
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their ids, in the order of their launch.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &WorkerId> {
        self.0.keys()
    }

    /// All of them, in the order of their launch.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Worker> {
        self.0.values().map(|worker| &**worker)
    }

    /// The same with their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&WorkerId, &Worker)> {
        self.0.iter().map(|(id, worker)| (id, &**worker))
    }
}

impl Index<&WorkerId> for Workers {
    type Output = Worker;

    fn index(&self, id: &WorkerId) -> &Worker {
        &self.0[id]
    }
}
