//! The audit log: refused attempts to reach a worker that is not the caller's own, or to speak as somebody else. What the caller is
//! told is the same whether the name exists or not; what is written here is not.
//!
//! Lines go to the daemon's log, target `audit`, level `warn`. No token is in them, names are escaped, and a peer that tries again
//! and again cannot fill the disk.

use std::collections::BTreeMap;
use std::time::Instant;

use roost_core::command::{CallId, Caller, Claim, Command};
use roost_core::effect::Effect;
use roost_core::event::Owner;
use roost_core::rejection::Rejection;
use roost_core::state::{State, names};
use roost_proto::id::TreeId;
use roost_proto::limits::{AUDIT_LINES_MAX, AUDIT_WINDOW};

/// The one verb whose answer may come later than its step.
const HELLO: &str = "hello";

/// Who asked for what, kept until it is known whether it was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attempt {
    tree: Option<TreeId>,
    caller: String,
    verb: &'static str,
}

/// What has been tried, and how much was written of it.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Hellos that wait for the supervisor's word of their process.
    waiting: BTreeMap<CallId, Attempt>,
    asked: Option<(CallId, Attempt)>,
    window: Option<Instant>,
    written: u32,
    left_out: u64,
}

impl Audit {
    /// Before a step: remembers who asks.
    pub(crate) fn asks(&mut self, state: &State, command: &Command) {
        self.asked = attempt(state, command);
    }

    /// After it: writes down what was refused.
    pub(crate) fn told(&mut self, state: &State, effects: &[Effect]) {
        if let Some((call, attempt)) = self.asked.take() {
            if attempt.verb == HELLO {
                self.waiting.insert(call, attempt);
            } else if let Some(rejection) = effects.iter().find_map(|effect| refusal_of(effect, call)) {
                self.refused(state, &attempt, rejection);
            }
        }
        if self.waiting.is_empty() {
            return;
        }
        for effect in effects {
            if let Effect::Refuse { call, rejection } = effect {
                if let Some(attempt) = self.waiting.remove(call) {
                    self.refused(state, &attempt, rejection);
                }
            } else if let Effect::Reply { call, .. } = effect {
                self.waiting.remove(call);
            }
        }
    }

    /// These calls are abandoned.
    pub(crate) fn forget(&mut self, calls: &[CallId]) {
        for call in calls {
            self.waiting.remove(call);
        }
    }

    fn refused(&mut self, state: &State, attempt: &Attempt, rejection: &Rejection) {
        let Attempt { tree, caller, verb } = attempt;
        let tree_shown = tree.map_or_else(|| "-".to_owned(), |tree| tree.to_string());
        if let Rejection::UnknownWorker { names } = rejection {
            for name in names {
                if !self.may_write() {
                    continue;
                }
                let exists = whereabouts(state, *tree, name);
                let name = name.chars().take(200).collect::<String>();
                tracing::warn!(target: "audit", tree = %tree_shown, %caller, verb, name = %name.escape_debug(), %exists, "refused: not its own");
            }
        } else if matches!(rejection, Rejection::UnknownIdentity | Rejection::StaleEpoch { .. }) && self.may_write() {
            tracing::warn!(target: "audit", tree = %tree_shown, %caller, verb, "refused: {rejection}");
        }
    }

    /// Whether one more line may be written; counts it either way.
    fn may_write(&mut self) -> bool {
        let now = Instant::now();
        if self.window.is_none_or(|since| now.duration_since(since) >= AUDIT_WINDOW) {
            if self.left_out > 0 {
                tracing::warn!(target: "audit", left_out = self.left_out, "more was refused than is written down");
            }
            (self.window, self.written, self.left_out) = (Some(now), 0, 0);
        }
        if self.written == AUDIT_LINES_MAX {
            self.left_out += 1;
            return false;
        }
        self.written += 1;
        if self.written == AUDIT_LINES_MAX {
            tracing::warn!(target: "audit", "so much was refused that the rest of this minute is only counted");
        }
        true
    }
}

fn refusal_of(effect: &Effect, asked: CallId) -> Option<&Rejection> {
    if let Effect::Refuse { call, rejection } = effect { (*call == asked).then_some(rejection) } else { None }
}

fn attempt(state: &State, command: &Command) -> Option<(CallId, Attempt)> {
    let (call, caller, verb) = if let Command::Stop { call, caller, .. } = command {
        (call, caller, "stop")
    } else if let Command::Wait { call, caller, .. } = command {
        (call, caller, "wait")
    } else if let Command::Result { call, caller, .. } = command {
        (call, caller, "result")
    } else if let Command::Status { call, caller, .. } = command {
        (call, caller, "status")
    } else if let Command::Hello { call, claim: Some(claim) } = command {
        return Some((*call, claimed(claim)));
    } else {
        return None;
    };
    let (tree, caller) = match caller {
        Caller::Operator => (None, "operator".to_owned()),
        Caller::Root(tree) => (Some(*tree), "root".to_owned()),
        Caller::Worker { worker, epoch } => (state.workers.get(worker).map(|worker| worker.tree), format!("{worker} epoch {epoch}")),
    };
    Some((*call, Attempt { tree, caller, verb }))
}

fn claimed(claim: &Claim) -> Attempt {
    let Claim { tree, worker, token: _, epoch, lineage, role: _ } = claim;
    let worker = worker.map_or_else(|| "root".to_owned(), |worker| worker.to_string());
    let epoch = epoch.map_or_else(String::new, |epoch| format!(" epoch {epoch}"));
    let process = lineage.first().map_or_else(|| "an unknown process".to_owned(), |pid| format!("process {pid}"));
    Attempt { tree: Some(*tree), caller: format!("{process} as {worker}{epoch}"), verb: HELLO }
}

/// Where a name is that the caller does not own.
fn whereabouts(state: &State, tree: Option<TreeId>, name: &str) -> String {
    let folded = names::folded(name);
    let own = tree.and_then(|tree| state.trees.get(&tree)).and_then(|tree| tree.names.get(&folded));
    match own.map(|worker| (worker, state.workers.get(worker).map(|worker| worker.owner))) {
        Some((worker, Some(Owner::Root))) => format!("{worker}, of the root"),
        Some((worker, Some(Owner::Worker(lead)))) => format!("{worker}, of {lead}"),
        Some((worker, None)) => worker.to_string(),
        None if state.trees.values().any(|tree| tree.names.contains_key(&folded)) => "in another tree".to_owned(),
        None => "nowhere".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_tries_again_and_again_fills_no_log() {
        let mut audit = Audit::default();
        let written = (0..10_000).filter(|_| audit.may_write()).count();
        assert_eq!((written, audit.left_out), (AUDIT_LINES_MAX as usize, 10_000 - u64::from(AUDIT_LINES_MAX)));
        audit.window = Instant::now().checked_sub(AUDIT_WINDOW);
        assert!(audit.may_write());
        assert_eq!((audit.written, audit.left_out), (1, 0));
    }

    #[test]
    fn what_is_answered_is_not_kept() {
        let mut audit = Audit::default();
        let state = State::default();
        let hello = |call| Command::Hello {
            call: CallId(call),
            claim: Some(Claim {
                tree: TreeId(1),
                worker: None,
                token: roost_proto::id::Token::new([0; 16]),
                epoch: None,
                lineage: vec![7],
                role: None,
            }),
        };
        for call in 0..3 {
            audit.asks(&state, &hello(call));
            audit.told(&state, &[]);
        }
        assert_eq!(audit.waiting.len(), 3);
        audit.told(&state, &[Effect::Refuse { call: CallId(0), rejection: Rejection::UnknownIdentity }]);
        audit.forget(&[CallId(2)]);
        assert_eq!(audit.waiting.into_keys().collect::<Vec<_>>(), [CallId(1)]);
        assert_eq!(audit.written, 1);
    }
}
