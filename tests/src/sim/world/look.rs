//! Looking at the world: what may happen next, whether everything is over, and what tells two worlds apart.

use std::collections::BTreeSet;

use roost_proto::id::Incarnation;

use super::super::kernel::Proc;
use super::super::script::{Mode, Who};
use super::{Action, World};

impl World {
    /// Whether steps or effects wait for a commit.
    pub(crate) fn is_ahead(&self) -> bool {
        self.journal.is_ahead() || !self.held.is_empty()
    }

    /// Nothing is under way between broker and supervisor.
    pub(crate) fn link_is_silent(&self) -> bool {
        !self.is_ahead() && self.supervisor.orders.is_empty() && self.supervisor.reports.is_empty()
    }

    /// All that may happen, without faults.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let mut actions = Vec::new();
        if self.is_ahead() {
            actions.push(Action::Commit);
        }
        if !self.supervisor.orders.is_empty() {
            actions.push(Action::Order);
        }
        if !self.supervisor.reports.is_empty() {
            actions.push(Action::Report);
        }
        if !self.lost.is_empty() {
            actions.push(Action::Hangup);
        }
        let procs = self.procs().map(|(incarnation, _)| Who::Proc(incarnation));
        let there = |index: &usize| !self.presences[*index].deserted;
        actions.extend((0..self.roots.len()).filter(|index| !there(index)).map(Action::ComeBack));
        for who in (0..self.roots.len()).filter(there).map(Who::Root).chain(procs) {
            actions.extend((0..self.choices(who)).map(|choice| Action::Act(who, choice)));
        }
        actions.extend((0..self.ghosts.len()).flat_map(|number| [false, true].map(|leaves| Action::Ghost(number, leaves))));
        let left = self.procs().filter(|(_, proc)| !proc.main && proc.leftovers && proc.end_leftovers);
        actions.extend(
            left.filter(|(incarnation, _)| self.supervisor.holds(*incarnation)).map(|(incarnation, _)| Action::Emptied(incarnation)),
        );
        actions
    }

    /// Whether everything is over.
    pub(crate) fn is_over(&self) -> bool {
        let roots = self.roots.iter().all(|root| root.op().is_none() && root.call.is_none());
        let kept = |proc: &Proc| !proc.main && !proc.end_leftovers;
        roots
            && self.link_is_silent()
            && self.state().workers.values().all(|worker| worker.has_ended())
            && self.procs().all(|(_, proc)| kept(proc))
    }

    /// For the comparison of worlds: all that decides what may follow.
    pub(crate) fn digest(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        let text = format!("{:?}", self.broker);
        // Counters that only say how many events went before.
        let (head, tail) = text.split_once("last_worker:").unwrap_or(("", &text));
        let (middle, rest) = tail.split_once("grants:").unwrap_or((tail, ""));
        let (_, rest) = rest.split_once("trees:").unwrap_or(("", rest));
        let head = head.split_once("seq:").map_or("", |(before, _)| before);
        let clients = format!("{head}{middle}{rest}{:?}{:?}", self.roots, self.supervisor.told());
        renumbered(&clients).hash(&mut hasher);
        (self.now, self.life, &self.lost).hash(&mut hasher);
        self.answers.keys().for_each(|call| call.hash(&mut hasher));
        hasher.finish()
    }

    /// The processes that a settled mode says nothing of: for choosing whom to crash.
    pub(crate) fn living(&self) -> BTreeSet<Incarnation> {
        self.procs().filter(|(_, proc)| proc.main && proc.script.mode != Mode::Leaving).map(|(incarnation, _)| incarnation).collect()
    }
}

/// Texts and messages are named by the number of their event, which says how many went before it: here by the order in which they
/// stand in the text. The counter of the stream says nothing else either.
fn renumbered(text: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, counts)) = next_number(rest) {
        let (before, after) = rest.split_at(at);
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        out.push_str(before);
        if !counts {
            let known = names.iter().position(|name| *name == number);
            let index = known.unwrap_or_else(|| {
                names.push(number);
                names.len() - 1
            });
            out.push_str(&index.to_string());
        }
        rest = after;
    }
    out + rest
}

/// Where the next such number begins, and whether it is a counter: `TextId(7)`, `m7`, `events: 7`.
fn next_number(text: &str) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let word = |at: usize| at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
    (1..bytes.len()).filter(|at| bytes[*at].is_ascii_digit()).find_map(|at| match bytes[at - 1] {
        b'm' if word(at - 1) => Some((at, false)),
        b'(' if text[..at].ends_with("TextId(") => Some((at, false)),
        b' ' if text[..at].ends_with(" events: ") => Some((at, true)),
        _ => None,
    })
}
