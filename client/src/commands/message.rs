//! `roost message`: words to a direct child, without waiting for it.

use clap::Args;
use roost::proto::message::launch::Placement;
use roost::proto::message::words::{Message, MessageReply, Sent};

use crate::candidates;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line};
use crate::setup::Setup;
use crate::values;

/// Send words to a child that speaks the protocol; one that has ended is resumed by them
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost message reviewer 'Look at the tests as well.'\n  git diff | roost message reviewer -\n  \
    roost message reviewer --descendants 5 'You may have five helpers.'\n\n\
    The answer says what became of it at once: it is in the worker's input, it follows the worker's end, or it resumes the worker.\n\
    A message that is never read comes back to you (roost inbox).")]
pub struct MessageArgs {
    /// To whom
    #[arg(value_name = "NAME", add = candidates::workers())]
    name: String,
    /// The words, or `-` for standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// How many descendants it may launch over its life from now on; what is above the highest so far is drawn from your budget
    #[arg(long, value_name = "N", value_parser = values::descendants, allow_negative_numbers = true)]
    descendants: Option<u64>,
    /// Repeating a message with the same id is one message [default: a random one]
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

impl MessageArgs {
    /// Sends and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let text = values::text(self.text)?;
        let request_id = self.request_id.map_or_else(roost::request_id, Ok)?;
        let message = Message { request_id, name: self.name, text, max_subagents_allowed: self.descendants };
        let reply = setup.in_tree()?.message(&message)?;
        if out.json {
            out.json(&reply)?;
        } else {
            out.line(&format!("{} {}", escape_line(&message.name), line(&reply)))?;
        }
        Ok(Exit::Ok)
    }
}

/// What became of it, in words.
pub fn line(reply: &MessageReply) -> String {
    match &reply.sent {
        Sent::Steering { execution } => format!("{} sent to {execution}", reply.message),
        Sent::AfterEnd { execution } => format!("{} follows the end of {execution}", reply.message),
        Sent::Resumed { execution, placement: Placement::Started, .. } => format!("{} resumes it as {execution}: started", reply.message),
        Sent::Resumed { execution, placement: Placement::Queued, place, .. } => {
            let place = place.map(|place| format!(" {place}")).unwrap_or_default();
            format!("{} resumes it as {execution}: queued{place}", reply.message)
        }
    }
}
