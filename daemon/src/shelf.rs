//! What replies show beside the core's words: files of executions, and texts out of the journal.
//!
//! Texts are asked for before a commit and handed back with it; here they wait for the effects that need them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use roost_core::effect::{Effect, End, Owed, OwedKind, Reply, Spawn};
use roost_core::event::TextId;
use roost_proto::id::{Epoch, ExecutionId, Incarnation, WorkerId};

use crate::driver::Driver;
use crate::outputs::{Outputs, text_of};
use crate::session::translate::{Answer, Files, Outputs as OutputPaths};
use crate::transcript::Transcripts;

/// Texts that were read for the effects of a turn.
#[derive(Debug, Default)]
pub struct Texts {
    /// By the number of the event that they lie beside.
    pub texts: BTreeMap<u64, Vec<u8>>,
    /// What workers were launched with.
    pub tasks: BTreeMap<WorkerId, String>,
}

/// What an effect needs of the journal.
#[derive(Debug, Default)]
pub struct Needs {
    /// Texts.
    pub texts: BTreeSet<u64>,
    /// Tasks.
    pub tasks: BTreeSet<WorkerId>,
}

impl Needs {
    /// What these effects need.
    pub fn of<'e>(effects: impl Iterator<Item = &'e Effect>) -> Self {
        let mut needs = Self::default();
        for effect in effects {
            match effect {
                Effect::Reply { reply, .. } => needs.reply(reply),
                Effect::Deliver(delivery) => delivery.items.iter().for_each(|item| needs.item(item)),
                Effect::Spawn(spawn) => needs.spawn(spawn),
                Effect::Refuse { .. }
                | Effect::Signal { .. }
                | Effect::Withdraw { .. }
                | Effect::LeaseLost { .. }
                | Effect::AskPark { .. }
                | Effect::ForgetText(_)
                | Effect::Forget { .. }
                | Effect::Adopt { .. }
                | Effect::RemoveFiles { .. }
                | Effect::Leave => {}
            }
        }
        needs
    }

    /// What a reply needs.
    pub fn reply(&mut self, reply: &Reply) {
        match reply {
            Reply::Result(end) => self.end(end),
            Reply::Receipt { ends, .. } => ends.iter().for_each(|end| self.end(end)),
            Reply::Inbox { items, .. } => items.iter().for_each(|item| self.item(item)),
            Reply::Welcome { .. }
            | Reply::Opened { .. }
            | Reply::Ends { .. }
            | Reply::StillActive { .. }
            | Reply::Status { .. }
            | Reply::Counts(_)
            | Reply::Stopped(_)
            | Reply::Interrupted { .. }
            | Reply::Cap(_)
            | Reply::Paused(_)
            | Reply::Closed { .. }
            | Reply::Parked
            | Reply::Settled(_)
            | Reply::ParkReady(_)
            | Reply::Done
            | Reply::Acked { .. }
            | Reply::Sent { .. }
            | Reply::Usage(_)
            | Reply::Swept(_)
            | Reply::Drained { .. } => {}
        }
    }

    /// Whether a reply needs something.
    pub fn of_reply(reply: &Reply) -> bool {
        let mut needs = Self::default();
        needs.reply(reply);
        !needs.texts.is_empty() || !needs.tasks.is_empty()
    }

    fn spawn(&mut self, spawn: &Spawn) {
        // One that speaks is handed its items by its connection.
        if let Some(wake) = spawn.wake.as_ref().filter(|_| !spawn.speaks) {
            wake.items.iter().for_each(|item| self.item(item));
        }
    }

    fn item(&mut self, item: &Owed) {
        match &item.what {
            OwedKind::Task(worker) => {
                self.tasks.insert(*worker);
            }
            OwedKind::Completion(end) => self.end(end),
            OwedKind::LeadMessage(message) | OwedKind::ChildMessage { message, .. } | OwedKind::Undelivered { message, .. } => {
                self.texts.insert(message.0);
            }
            OwedKind::Notice { text, .. } => self.texts.extend(text.map(|text| text.0)),
        }
    }

    fn end(&mut self, end: &End) {
        self.texts.extend(end.said.map(|said| said.text.0));
    }
}

/// Files and texts together.
pub struct Shelf<'s> {
    /// The files.
    pub outputs: &'s Outputs,
    /// The texts.
    pub texts: &'s Texts,
    /// What is known of transcripts.
    pub transcripts: &'s Transcripts,
}

impl Driver {
    /// What replies show of this turn.
    pub(crate) fn shelf(&self) -> Shelf<'_> {
        Shelf { outputs: &self.outputs, texts: &self.texts, transcripts: &self.transcripts }
    }
}

impl Files for Shelf<'_> {
    fn answer(&self, end: &End) -> Answer {
        let Some(said) = end.said.filter(|_| end.speaks) else {
            return if end.speaks { Answer::default() } else { self.outputs.answer(end) };
        };
        let Some(whole) = self.texts.texts.get(&said.text.0) else { return Answer::default() };
        let incarnation = Incarnation { execution: end.execution, epoch: end.epoch };
        let path = match self.outputs.keep_answer(incarnation, whole) {
            Ok(path) => Some(path.to_string_lossy().into_owned()),
            Err(error) => {
                // The journal has it; the file only serves readers.
                if error.kind() != io::ErrorKind::StorageFull {
                    tracing::warn!(%incarnation, %error, "an answer could not be written into a file");
                }
                None
            }
        };
        let (text, truncated) = text_of(whole.clone());
        Answer { text, bytes: whole.len() as u64, truncated, path }
    }

    fn outputs(&self, execution: ExecutionId, epoch: Epoch) -> OutputPaths {
        self.outputs.outputs(execution, epoch)
    }

    fn is_lossy(&self, execution: ExecutionId) -> bool {
        self.transcripts.is_lossy(execution)
    }

    fn text(&self, text: TextId) -> String {
        self.texts.texts.get(&text.0).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
    }

    fn task(&self, worker: WorkerId) -> String {
        self.texts.tasks.get(&worker).cloned().unwrap_or_default()
    }
}
