//! `roost timeline`: what each worker of a tree did when, as text, as a picture, or for a viewer of traces.

mod chart;
mod perfetto;
mod rows;
mod spans;
mod svg;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use roost::proto::id::TreeId;
use roost::proto::message::status::Status;
use roost::{Error, EventReader};
use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::setup::Setup;
use crate::values;
use spans::Timeline;

/// The width where nobody says how wide it is.
const WIDTH: usize = 100;

/// Show what each worker did when: queued, starting, running, waiting, blocked, parked, and how many were live under which cap
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  roost timeline\n  roost timeline --tree t123 --out tree.svg\n  roost timeline --perfetto trace.json\n\n\
    A worker is live while it has a slot; blocked is a plain command that waits in a call with its slot lent. With more workers than a \
    picture has lines (200), whole depths are folded into one line each, deepest first, which shows how many of them are live.\n\
    --perfetto leaves out nothing: https://ui.perfetto.dev opens the file."
)]
pub struct TimelineArgs {
    /// Write a picture: FILE.svg, or FILE.html
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write Chrome trace events
    #[arg(long, value_name = "FILE.json")]
    perfetto: Option<PathBuf>,
}

#[derive(Serialize)]
struct Document<'a> {
    tree: TreeId,
    #[serde(flatten)]
    timeline: &'a Timeline,
}

impl TimelineArgs {
    /// Reads the events, draws, prints or writes.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let picture = self.out.as_deref().map(picture_of).transpose()?;
        let mut connection = setup.looking()?;
        if setup.tree.is_none() && connection.config().identity.is_none() {
            return Err(Failure::no_tree());
        }
        let status = connection.status(&Status { tree: setup.tree, name: None, after: None })?;
        let header = status.trees.first().ok_or_else(Failure::no_tree)?;
        let (tree, cap) = (header.progress.tree, header.progress.cap);
        let timeline = spans::timeline(&EventReader::all(connection, setup.tree)?, Some(cap), values::now_ms());
        let name = tree.to_string();
        if let (Some(path), Some(draw)) = (&self.out, picture) {
            write(path, &draw(&timeline, &name))?;
        }
        if let Some(path) = &self.perfetto {
            write(path, &perfetto::document(&timeline, &name).to_string())?;
        }
        if out.json {
            out.json(&Document { tree, timeline: &timeline })?;
        } else if self.out.is_none() && self.perfetto.is_none() {
            for line in chart::lines(&timeline, &name, width(out)) {
                out.line(&line)?;
            }
        }
        Ok(Exit::Ok)
    }
}

type Draw = fn(&Timeline, &str) -> String;

/// The kind of picture that a name asks for.
fn picture_of(path: &Path) -> Result<Draw, Failure> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("svg") => Ok(svg::svg),
        Some("html" | "htm") => Ok(svg::html),
        _ => Err(Failure::usage(format!("--out {}: a name that ends in .svg or .html", path.display()), Some("--perfetto writes a trace"))),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    Ok(fs::write(path, text).map_err(Error::io(format!("cannot write {}", path.display())))?)
}

fn width(out: &Out) -> usize {
    let terminal = out.is_terminal().then(terminal_size::terminal_size).flatten();
    terminal.map_or(WIDTH, |(width, _)| usize::from(width.0))
}
