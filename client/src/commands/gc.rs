//! `roost gc`: forgets closed trees now, or says what would go.

use clap::Args;
use roost::Connection;
use roost::proto::message::daemon::{DaemonGc, DaemonGcReply};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Out, escape_line};
use crate::setup::Setup;
use crate::values;

/// Forget closed trees with their results and files, the oldest first, and give the room back
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  roost gc --dry-run\n  roost gc --older-than 7d\n  roost gc --max-size 1G\n\n\
    Without --older-than and --max-size it is what the daemon does by itself (--retention, 30d). Open trees stay, and so does a tree with \
    a result that its root has not read: `roost result NAME` or `roost wait`, with the variables that `roost open` has printed.")]
pub struct GcArgs {
    /// Only say which would go, and what they take
    #[arg(long)]
    dry_run: bool,
    /// Those that were closed at least so long ago; 0 = all
    #[arg(long, value_name = "DURATION", value_parser = values::duration, allow_hyphen_values = true)]
    older_than: Option<u64>,
    /// The oldest, until outputs and transcripts of closed trees take no more than this: 500M, 1G, or bytes
    #[arg(long, value_name = "SIZE", value_parser = values::size, allow_hyphen_values = true)]
    max_size: Option<u64>,
}

impl GcArgs {
    /// Asks until there is no more to forget, and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        let config = setup.config()?.without_identity();
        let mut connection = Connection::dial(config)?;
        let request = DaemonGc { older_than_ms: self.older_than, max_bytes: self.max_size, dry_run: self.dry_run };
        let mut whole = connection.daemon_gc(&request)?;
        let mut goes_on = whole.more && !self.dry_run;
        while goes_on {
            let next = connection.daemon_gc(&request)?;
            // A daemon that has nothing more to forget says so; one that forgets nothing must not keep us.
            goes_on = next.more && !next.trees.is_empty();
            whole.trees.extend(next.trees);
            (whole.more, whole.journal_bytes, whole.kept_unread) = (next.more, next.journal_bytes, next.kept_unread);
        }
        if out.json {
            out.json(&whole)?;
        } else {
            self.print(&whole, out)?;
        }
        Ok(Exit::Ok)
    }

    fn print(&self, swept: &DaemonGcReply, out: &mut Out) -> Result<(), Failure> {
        for tree in &swept.trees {
            let key = tree.key.as_ref().map(|key| format!("  key {key}")).unwrap_or_default();
            let workers = values::counted(tree.workers, "worker");
            let line = format!("{}  closed {}  {workers}  {}{key}", tree.tree, values::time_of_day(tree.closed_at_ms), bytes(tree.bytes));
            out.line(&escape_line(&line))?;
        }
        if self.dry_run && swept.more {
            out.line("...")?;
        }
        let verb = if self.dry_run { "would be forgotten" } else { "forgotten" };
        let (trees, workers) = (values::counted(swept.total, "tree"), values::counted(swept.workers, "worker"));
        out.line(&format!("{trees} with {workers} {verb}: {} of outputs and transcripts", bytes(swept.bytes)))?;
        if swept.kept_unread > 0 {
            out.line(&format!("{} kept: nobody has read all of their results", values::counted(swept.kept_unread, "tree")))?;
        }
        if !self.dry_run {
            out.line(&format!("journal {} -> {}", bytes(swept.journal_bytes_before), bytes(swept.journal_bytes)))?;
        }
        Ok(())
    }
}

fn bytes(number: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(unit, _)| number >= *unit);
    unit.map_or_else(|| format!("{number} B"), |(unit, name)| format!("{}.{} {name}", number / unit, number % unit * 10 / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        for (number, text) in [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (u64::MAX, "17179869183.9 GiB")] {
            assert_eq!(bytes(number), text);
        }
    }
}
