//! Workers as indented lines, each below its lead. It does not know what a line says.

use std::collections::{BTreeMap, BTreeSet};

use roost::proto::id::WorkerId;

/// Deeper workers are not indented further, so that a chain of thousands stays readable.
const INDENT_MAX: usize = 30;

/// One line per worker. `place` says which it is and which its lead; `line` what to say of it. Not recursive: a tree may be thousands
/// deep.
pub fn lines<W>(workers: &[W], place: impl Fn(&W) -> (WorkerId, Option<WorkerId>), line: impl Fn(&W) -> String) -> Vec<String> {
    let known: BTreeSet<WorkerId> = workers.iter().map(|worker| place(worker).0).collect();
    let mut children: BTreeMap<Option<WorkerId>, Vec<&W>> = BTreeMap::new();
    for worker in workers {
        // The top of a subtree has a lead that is not shown.
        children.entry(place(worker).1.filter(|lead| known.contains(lead))).or_default().push(worker);
    }
    let mut lines = Vec::with_capacity(workers.len());
    let mut open: Vec<(usize, &W)> = children.remove(&None).unwrap_or_default().into_iter().rev().map(|worker| (1, worker)).collect();
    while let Some((depth, worker)) = open.pop() {
        lines.push(format!("{}{}", "  ".repeat(depth.min(INDENT_MAX)), line(worker)));
        let below = children.remove(&Some(place(worker).0)).unwrap_or_default();
        open.extend(below.into_iter().rev().map(|child| (depth + 1, child)));
    }
    lines
}
