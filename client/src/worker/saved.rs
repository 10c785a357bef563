//! A context of JSON: the state of a worker that is a value, with what it has taken in.

use roost_proto::message::worker::{Next, SavedContext};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Turn, Worker};
use crate::error::Error;
use crate::inbox::Seen;

/// A context of [`Worker::settle_with`].
#[derive(Serialize, Deserialize)]
struct Saved<T> {
    state: T,
    seen: Seen,
}

impl Worker {
    /// Goes on from what [`Worker::settle_with`] of the process before it has saved, and drops what was taken in until then; the default
    /// for a first process. To be called before the first event.
    pub fn restore<T: DeserializeOwned + Default>(&mut self) -> Result<T, Error> {
        let Some(context) = self.context()? else { return Ok(T::default()) };
        let Saved { state, seen } = serde_json::from_slice(&context)
            .map_err(|error| Error::Io { what: "the context is not one of `settle_with`".into(), source: error.into() })?;
        self.remember(seen);
        Ok(state)
    }

    /// Ends a turn, and saves this with what was taken in so far: the next process gets both by [`Worker::restore`].
    pub fn settle_with<T: Serialize>(&mut self, answer: Option<String>, state: &T) -> Result<Next, Error> {
        let saved = serde_json::to_string(&Saved { state, seen: self.seen().clone() })
            .map_err(|error| Error::Io { what: "the state cannot be written as JSON".into(), source: error.into() })?;
        self.settle(&Turn { answer, context: Some(SavedContext::Bytes(saved.as_str().into())), ..Turn::default() })
    }
}
