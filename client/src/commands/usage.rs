//! `roost usage`: what a tree, or a worker with all below it, has cost.

use clap::Args;
use roost::proto::message::usage::{ReadUsage, UsageReply, WorkerUsage};
use roost::proto::usage::{Usage, UsageTotals};

use crate::candidates;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::outline;
use crate::output::{Out, escape_line};
use crate::setup::Setup;
use crate::values;

/// Show tokens and cost: of the whole tree, or of a worker and all below it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  roost usage\n  roost usage --tree\n  roost usage reviewer --tree\n  roost usage --tree t123 --each --json\n\n\
    `own` is a worker's own use, `total` with all below it. What has no known price is said to be unknown, never $0."
)]
pub struct UsageArgs {
    /// Only this worker and all below it
    #[arg(value_name = "NAME", add = candidates::workers())]
    name: Option<String>,
    /// A line for each worker, below its lead; `--tree` without an ID means the same
    #[arg(long)]
    each: bool,
}

impl UsageArgs {
    /// Looks and prints. `drawn`: `--tree` was given without an id.
    pub fn run(self, setup: &Setup, drawn: bool, out: &mut Out) -> Result<Exit, Failure> {
        let mut connection = setup.looking()?;
        if setup.tree.is_none() && connection.config().identity.is_none() {
            return Err(Failure::no_tree());
        }
        let each = self.each || drawn;
        let reply = connection.usage_all(&ReadUsage { tree: setup.tree, name: self.name.clone(), each, after: None })?;
        if out.json {
            out.json(&reply)?;
            return Ok(Exit::Ok);
        }
        for line in lines(&reply, self.name.as_deref()) {
            out.line(&line)?;
        }
        Ok(Exit::Ok)
    }
}

fn lines(reply: &UsageReply, name: Option<&str>) -> Vec<String> {
    let head = name.map_or_else(|| format!("tree {}", reply.tree), escape_line);
    let workers = values::counted(reply.totals.workers, "worker");
    let mut lines = vec![format!("{head}  {workers}  {}", totals(&reply.totals))];
    lines.extend(outline::lines(&reply.workers, |worker| (worker.worker, worker.lead), shown));
    lines
}

fn shown(worker: &WorkerUsage) -> String {
    let times = if worker.executions > 1 { format!("  {} executions", worker.executions) } else { String::new() };
    format!("{}{times}  {}", escape_line(&worker.name), totals(&worker.totals))
}

fn totals(totals: &UsageTotals) -> String {
    let partial = if totals.partial { "  partial" } else { "" };
    format!("own {}  total {}{partial}", one(&totals.own), one(&totals.total))
}

fn one(usage: &Usage) -> String {
    let mut text = format!("{} tokens, {}", usage.tokens(), price(usage));
    for (count, word) in [(usage.turns, "turn"), (usage.tool_calls, "tool call")] {
        if count > 0 {
            text.push_str(&format!(", {}", values::counted(count, word)));
        }
    }
    text
}

/// US dollars to the last nano-dollar; an unknown price is no price.
fn price(usage: &Usage) -> String {
    let (dollars, nanos) = (usage.cost / 1_000_000_000, usage.cost % 1_000_000_000);
    let digits = format!("{nanos:09}");
    let digits = digits.trim_end_matches('0');
    match (usage.cost_unknown, usage.cost) {
        (true, 0) => "price unknown".into(),
        (true, _) => format!("at least ${dollars}.{digits:0<2}"),
        (false, _) => format!("${dollars}.{digits:0<2}"),
    }
}

#[cfg(test)]
mod tests {
    use roost::proto::id::WorkerId;

    use super::*;

    #[test]
    fn prices_are_exact_and_an_unknown_one_is_not_zero() {
        let of = |cost, cost_unknown| price(&Usage { cost, cost_unknown, ..Usage::default() });
        assert_eq!([of(0, false), of(437_500_000, false), of(12_000_000_001, false)], ["$0.00", "$0.4375", "$12.000000001"]);
        assert_eq!([of(0, true), of(250_000_000, true)], ["price unknown", "at least $0.25"]);
    }

    #[test]
    fn a_chain_of_thousands_is_drawn_below_each_other() {
        let worker = |id: u64| WorkerUsage {
            name: "w\x1b".into(),
            worker: WorkerId(id),
            lead: (id > 1).then(|| WorkerId(id - 1)),
            executions: 2,
            totals: UsageTotals { workers: 1, ..UsageTotals::default() },
        };
        let tree = serde_json::from_str("\"t1\"").unwrap();
        let reply = UsageReply { tree, totals: UsageTotals::default(), workers: (1..5_000).map(worker).collect(), next: None };
        let lines = lines(&reply, None);
        assert_eq!(lines.len(), 5_000);
        assert_eq!(lines[2], "    w\\x1b  2 executions  own 0 tokens, $0.00  total 0 tokens, $0.00");
    }
}
