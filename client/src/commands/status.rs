//! `roost status`: one tree, drawn with indentation, or the list of trees.

mod draw;

use clap::Args;
use roost::proto::message::status::Status;

use crate::candidates;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;
use crate::values;

pub use draw::elapsed;

/// Show the tree, or one worker and what descends from it; outside of a tree the list of trees
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost status\n  roost status build\n  roost status --tree t123 --json")]
pub struct StatusArgs {
    /// Only this worker and what descends from it
    #[arg(value_name = "NAME", add = candidates::workers())]
    name: Option<String>,
}

impl StatusArgs {
    /// Looks and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let mut connection = setup.looking()?;
        let in_tree = setup.tree.is_some() || connection.config().identity.is_some();
        if self.name.is_some() && !in_tree {
            return Err(Failure::no_tree());
        }
        let reply = connection.status_all(&Status { tree: setup.tree, name: self.name, after: None })?;
        if out.json {
            out.json(&reply)?;
            return Ok(Exit::Ok);
        }
        let paint = draw::Paint { colour: out.colour(), now_ms: values::now_ms() };
        for tree in &reply.trees {
            out.line(&paint.header(tree))?;
        }
        if reply.trees.is_empty() && !in_tree {
            out.line("no trees")?;
        }
        for line in paint.workers(&reply.workers) {
            out.line(&line)?;
        }
        Ok(Exit::Ok)
    }
}
