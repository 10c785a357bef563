//! `roost tell-lead`: words of a worker to its immediate lead. Not a result.

use clap::Args;
use roost::proto::message::words::TellLead;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;
use crate::values;

/// Send words to the lead of this worker: a question, how far it is; no result
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost tell-lead 'Half of it is done.'\n  ./report.sh | roost tell-lead -")]
pub struct TellLeadArgs {
    /// The words, or `-` for standard input
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    text: String,
    /// Repeating a message with the same id is one message [default: a random one]
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

impl TellLeadArgs {
    /// Sends and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        if setup.tree.is_some() || !setup.in_worker()? {
            return Err(Failure::Usage {
                kind: "not_worker",
                message: "only a worker has a lead, and ROOST_WORKER is not set".into(),
                hint: Some("to a child of yours:  roost message NAME TEXT".into()),
            });
        }
        let text = values::text(self.text)?;
        let request_id = self.request_id.map_or_else(roost::request_id, Ok)?;
        let reply = setup.in_tree()?.tell_lead(&TellLead { request_id, text })?;
        if out.json {
            out.json(&reply)?;
        } else {
            out.line(&format!("{} sent", reply.message))?;
        }
        Ok(Exit::Ok)
    }
}
