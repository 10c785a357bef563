//! What few workers have any of: a word each where it is empty. A hundred thousand queued workers have nothing of it.

use std::collections::{BTreeSet, VecDeque};
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::outbox::Outbox;

/// Something that is mostly empty.
pub trait Seldom: 'static {
    /// The empty one.
    const EMPTY: &'static Self;
}

impl<T: 'static> Seldom for Vec<T> {
    const EMPTY: &'static Self = &Self::new();
}

impl<T: 'static> Seldom for VecDeque<T> {
    const EMPTY: &'static Self = &Self::new();
}

impl<T: 'static> Seldom for BTreeSet<T> {
    const EMPTY: &'static Self = &Self::new();
}

impl Seldom for Outbox {
    const EMPTY: &'static Self = &Self::new();
}

/// It, with room of its own only once somebody has changed it.
#[derive(Debug, Clone)]
pub struct Rare<T>(Option<Box<T>>);

impl<T: Seldom + PartialEq> Rare<T> {
    /// It, if anybody ever changed it.
    pub fn used(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// For records, which leave out what is empty.
    pub fn is_unused(&self) -> bool {
        **self == *T::EMPTY
    }
}

impl<T> Default for Rare<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Seldom> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::EMPTY)
    }
}

impl<T: Seldom + Default> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: Seldom + PartialEq> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Seldom + Eq> Eq for Rare<T> {}

impl<T: Seldom + Serialize> Serialize for Rare<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (**self).serialize(to)
    }
}

impl<'de, T: Seldom + PartialEq + Deserialize<'de>> Deserialize<'de> for Rare<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = T::deserialize(from)?;
        Ok(Self((read != *T::EMPTY).then(|| Box::new(read))))
    }
}
