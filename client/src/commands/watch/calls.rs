//! What is asked of the daemon and what the caller has done there: a thread, so that the screen never waits for an answer.

use std::sync::mpsc::{self, Receiver, Sender};

use roost::proto::id::{TreeId, WorkerId};
use roost::proto::message::status::{Status, WorkerStatus};
use roost::proto::message::stop::{Stop, StopReply};
use roost::proto::message::usage::{ReadUsage, UsageReply};
use roost::proto::message::words::{Message, MessageReply};
use roost::{Connection, Error};

use super::{News, Tell};
use crate::failure::Failure;
use crate::setup::Setup;

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// All that is known of one worker.
    Look(WorkerId, String),
    /// What has been used: by the whole tree, and by one worker.
    Usage(Option<(WorkerId, String)>),
    /// Words to a child.
    Say(WorkerId, String, String),
    /// The end of a child.
    Stop(String),
}

/// What came of it.
pub enum Answer {
    /// How the worker stands.
    Looked(Box<WorkerStatus>),
    /// What was used.
    Used(Box<UsageReply>, Option<(WorkerId, Box<UsageReply>)>),
    /// The words are taken.
    Said(WorkerId, MessageReply),
    /// They are not: here they are again.
    NotSaid(WorkerId, String, Failure),
    /// The child is being ended.
    Stopped(StopReply),
    /// Something else was refused.
    Refused(Failure),
}

/// The thread's other end.
pub struct Calls(Sender<Wish>);

impl Calls {
    /// Starts the thread.
    pub fn start(setup: Setup, tree: TreeId, looks: Connection, news: Tell) -> Self {
        let (wishes, wanted) = mpsc::channel();
        std::thread::spawn(move || Caller { setup: Setup { tree: Some(tree), ..setup }, tree, looks, acts: None, news }.run(&wanted));
        Self(wishes)
    }

    /// Asks for it.
    pub fn wish(&self, wish: Wish) {
        // A thread that is gone has ended us.
        self.0.send(wish).ok();
    }
}

struct Caller {
    setup: Setup,
    tree: TreeId,
    looks: Connection,
    acts: Option<Connection>,
    news: Tell,
}

impl Caller {
    fn run(mut self, wanted: &Receiver<Wish>) {
        while let Ok(wish) = wanted.recv() {
            let mut waiting: Vec<Wish> = std::iter::once(wish).chain(wanted.try_iter()).collect();
            // Of questions only the last one of each kind still matters.
            let last_look = waiting.iter().rposition(|wish| matches!(wish, Wish::Look(..)));
            let last_usage = waiting.iter().rposition(|wish| matches!(wish, Wish::Usage(_)));
            let mut at = 0..;
            waiting.retain(|wish| {
                let at = at.next();
                match wish {
                    Wish::Look(..) => at == last_look,
                    Wish::Usage(_) => at == last_usage,
                    Wish::Say(..) | Wish::Stop(_) => true,
                }
            });
            for wish in waiting {
                let answer = self.answer(wish);
                self.news.tell(News::Answer(answer));
            }
        }
    }

    fn answer(&mut self, wish: Wish) -> Answer {
        match wish {
            Wish::Look(worker, name) => self.look(worker, name).map_or_else(|error| Answer::Refused(error.into()), Answer::Looked),
            Wish::Usage(one) => self.usage(one).unwrap_or_else(|error| Answer::Refused(error.into())),
            Wish::Say(worker, name, text) => match self.say(name, text.clone()) {
                Ok(reply) => Answer::Said(worker, reply),
                Err(failure) => Answer::NotSaid(worker, text, failure),
            },
            Wish::Stop(name) => self.stop(name).map_or_else(Answer::Refused, Answer::Stopped),
        }
    }

    fn look(&mut self, worker: WorkerId, name: String) -> Result<Box<WorkerStatus>, Error> {
        let reply = self.looks.status(&Status { tree: Some(self.tree), name: Some(name), after: None })?;
        let found = reply.workers.into_iter().find(|one| one.worker == worker);
        found.map(Box::new).ok_or(Error::Protocol { method: "status", message: "the worker that was asked for is missing".into() })
    }

    fn usage(&mut self, one: Option<(WorkerId, String)>) -> Result<Answer, Error> {
        let read = |name: Option<String>| ReadUsage { tree: Some(self.tree), name, each: false, after: None };
        let (all, of_one) = (read(None), one.map(|(worker, name)| (worker, read(Some(name)))));
        let all = Box::new(self.looks.usage(&all)?);
        let of_one = of_one.map(|(worker, read)| Ok::<_, Error>((worker, Box::new(self.looks.usage(&read)?)))).transpose()?;
        Ok(Answer::Used(all, of_one))
    }

    fn say(&mut self, name: String, text: String) -> Result<MessageReply, Failure> {
        let message = Message { request_id: roost::request_id()?, name, text, max_subagents_allowed: None };
        Ok(self.acting()?.message(&message)?)
    }

    fn stop(&mut self, name: String) -> Result<StopReply, Failure> {
        let stop = Stop { request_id: Some(roost::request_id()?), names: vec![name], no_wait: true };
        Ok(self.acting()?.stop(&stop)?)
    }

    /// Speaks as the root, from the first time on that something is done.
    fn acting(&mut self) -> Result<&mut Connection, Failure> {
        if self.acts.is_none() {
            let mut connection = self.setup.in_tree()?;
            connection.start_no_more();
            self.acts = Some(connection);
        }
        self.acts.as_mut().ok_or_else(Failure::no_tree)
    }
}
