//! Workers below their leads. It does not know what is said of one.

use std::collections::{BTreeMap, BTreeSet};

use roost::proto::id::WorkerId;

/// Deeper workers are not indented further, so that a chain of thousands stays readable.
const INDENT_MAX: usize = 30;

/// Each worker below its lead, with its depth; 1 at the top, where the lead is not among them. `place` says which it is and which its
/// lead. Not recursive: a tree may be thousands deep.
pub fn walk<W>(workers: &[W], place: impl Fn(&W) -> (WorkerId, Option<WorkerId>)) -> Vec<(u32, &W)> {
    let known: BTreeSet<WorkerId> = workers.iter().map(|worker| place(worker).0).collect();
    let mut children: BTreeMap<Option<WorkerId>, Vec<&W>> = BTreeMap::new();
    for worker in workers {
        children.entry(place(worker).1.filter(|lead| known.contains(lead))).or_default().push(worker);
    }
    let mut walked = Vec::with_capacity(workers.len());
    let mut open: Vec<(u32, &W)> = children.remove(&None).unwrap_or_default().into_iter().rev().map(|worker| (1, worker)).collect();
    while let Some((depth, worker)) = open.pop() {
        walked.push((depth, worker));
        let below = children.remove(&Some(place(worker).0)).unwrap_or_default();
        open.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
    walked
}

/// One indented line per worker.
pub fn lines<W>(workers: &[W], place: impl Fn(&W) -> (WorkerId, Option<WorkerId>), line: impl Fn(&W) -> String) -> Vec<String> {
    let indent = |depth| "  ".repeat(usize::try_from(depth).unwrap_or(INDENT_MAX).min(INDENT_MAX));
    walk(workers, place).into_iter().map(|(depth, worker)| format!("{}{}", indent(depth), line(worker))).collect()
}
