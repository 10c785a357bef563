//! The audit log: refused attempts to reach what is not the caller's own, or to speak as somebody else. What the caller is told is the
//! same whether the name exists or not; what is written here is not.
//!
//! Lines go to the daemon's log, target `audit`, level `warn`. What was to change something and was refused for another reason leaves
//! a line of level `info` without that target. No token and no text of a caller's is in them, names are escaped, and a peer that tries
//! again and again cannot fill the disk.

use std::collections::BTreeMap;
use std::time::Instant;

use roost_core::command::{Call, CallId, Caller, Claim, Command, Nature};
use roost_core::effect::Effect;
use roost_core::event::Owner;
use roost_core::rejection::Rejection;
use roost_core::state::{State, names};
use roost_proto::id::TreeId;
use roost_proto::limits::{AUDIT_LINES_MAX, AUDIT_WINDOW};

/// Who asked for what, kept until it is known whether it was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attempt {
    tree: Option<TreeId>,
    caller: String,
    verb: &'static str,
    /// Whether it would have changed something.
    acts: bool,
}

/// What has been tried, and how much was written of it.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Calls that wait: hellos for the supervisor's word of their process, others for what they asked for.
    waiting: BTreeMap<CallId, Attempt>,
    asked: Option<(CallId, Attempt)>,
    owned: Window,
    other: Window,
}

/// How much was written lately.
#[derive(Debug, Default)]
struct Window {
    since: Option<Instant>,
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
        self.waiting.extend(self.asked.take());
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
        let Attempt { tree, caller, verb, acts } = attempt;
        let tree_shown = tree.map_or_else(|| "-".to_owned(), |tree| tree.to_string());
        match reach(rejection) {
            Reach::Names(names) => {
                for name in names.iter().filter(|_| self.owned.may_write()) {
                    let exists = whereabouts(state, *tree, name);
                    let name = name.chars().take(200).collect::<String>();
                    tracing::warn!(target: "audit", tree = %tree_shown, %caller, verb, name = %name.escape_debug(), %exists, "refused: not its own");
                }
            }
            Reach::Rights if self.owned.may_write() => {
                tracing::warn!(target: "audit", tree = %tree_shown, %caller, verb, "refused: {rejection}");
            }
            Reach::Own if *acts && self.other.may_write() => {
                tracing::info!(tree = %tree_shown, %caller, verb, kind = ?rejection.kind(), "refused");
            }
            Reach::Rights | Reach::Own => {}
        }
    }
}

impl Window {
    /// Whether one more line may be written; counts it either way.
    fn may_write(&mut self) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now.duration_since(since) >= AUDIT_WINDOW) {
            if self.left_out > 0 {
                tracing::warn!(target: "audit", left_out = self.left_out, "more was refused than is written down");
            }
            *self = Self { since: Some(now), written: 0, left_out: 0 };
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

/// What a refused attempt was after.
enum Reach<'r> {
    /// Workers that are not the caller's own.
    Names(&'r [String]),
    /// What the caller is not.
    Rights,
    /// Nothing that was not its own.
    Own,
}

fn reach(rejection: &Rejection) -> Reach<'_> {
    match rejection {
        Rejection::UnknownWorker { names } => Reach::Names(names),
        Rejection::UnknownIdentity
        | Rejection::StaleEpoch { .. }
        | Rejection::UnknownTree { .. }
        | Rejection::NotRoot { .. }
        | Rejection::NotWorker { .. }
        | Rejection::StaleLease
        | Rejection::AlreadyConnected => Reach::Rights,
        Rejection::NoTree
        | Rejection::TreeClosed { .. }
        | Rejection::BadName { .. }
        | Rejection::NameTaken { .. }
        | Rejection::BadValue { .. }
        | Rejection::TaskCount { .. }
        | Rejection::BadCwd { .. }
        | Rejection::SilentCwd { .. }
        | Rejection::NoSpace { .. }
        | Rejection::Budget { .. }
        | Rejection::Depth { .. }
        | Rejection::RequestIdReused { .. }
        | Rejection::Stopping
        | Rejection::Interrupted
        | Rejection::Parked
        | Rejection::TargetParked { .. }
        | Rejection::TargetStopping { .. }
        | Rejection::NotSteerable { .. }
        | Rejection::NotResumable { .. }
        | Rejection::LeadParked
        | Rejection::LeadGone
        | Rejection::Backpressure { .. }
        | Rejection::NoContext
        | Rejection::Deadlock
        | Rejection::Active { .. }
        | Rejection::Draining
        | Rejection::StillRunning { .. }
        | Rejection::Limit { .. } => Reach::Own,
    }
}

fn attempt(state: &State, command: &Command) -> Option<(CallId, Attempt)> {
    if let Command::Hello { call, claim } = command {
        return claim.as_ref().map(|claim| (*call, claimed(claim)));
    }
    let Call { id, caller, verb, nature } = command.call()?;
    let (tree, caller) = match caller {
        Caller::Operator => (None, "operator".to_owned()),
        Caller::Root(tree) => (Some(tree), "root".to_owned()),
        Caller::Worker { worker, epoch } => (state.workers.get(&worker).map(|worker| worker.tree), format!("{worker} epoch {epoch}")),
    };
    Some((id, Attempt { tree, caller, verb, acts: matches!(nature, Nature::Asks | Nature::Acts) }))
}

fn claimed(claim: &Claim) -> Attempt {
    let Claim { tree, worker, token: _, epoch, lineage, role: _ } = claim;
    let worker = worker.map_or_else(|| "root".to_owned(), |worker| worker.to_string());
    let epoch = epoch.map_or_else(String::new, |epoch| format!(" epoch {epoch}"));
    let process = lineage.first().map_or_else(|| "an unknown process".to_owned(), |process| format!("process {}", process.pid));
    Attempt { tree: Some(*tree), caller: format!("{process} as {worker}{epoch}"), verb: "hello", acts: true }
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
    use roost_core::command::Speak;

    use super::*;

    #[test]
    fn a_peer_that_tries_again_and_again_fills_no_log() {
        let mut window = Window::default();
        let written = (0..10_000).filter(|_| window.may_write()).count();
        assert_eq!((written, window.left_out), (AUDIT_LINES_MAX as usize, 10_000 - u64::from(AUDIT_LINES_MAX)));
        window.since = Instant::now().checked_sub(AUDIT_WINDOW);
        assert!(window.may_write());
        assert_eq!((window.written, window.left_out), (1, 0));
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
                lineage: Vec::new(),
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
        assert_eq!((audit.owned.written, audit.other.written), (1, 0));
    }

    #[test]
    fn every_refused_call_that_was_to_change_something_leaves_a_line() {
        let (call, caller, tree) = (CallId(1), Caller::Root(TreeId(1)), TreeId(1));
        let speak = |speak| Command::Speak { call, caller, lease: None, speak: Box::new(speak) };
        let acting = [
            Command::Attach { call, tree },
            Command::Stop { call, caller, request_id: None, names: Vec::new(), no_wait: false },
            Command::Interrupt { call, caller, request_id: None, no_wait: false },
            Command::Cap { call, caller, cap: Some(1) },
            Command::Pause { call, caller, paused: true },
            Command::Close { call, caller, now: true },
            Command::Drain { call: Some(call), now: true, timeout_ms: None },
            speak(Speak::Ack { items: vec![1], request_id: None }),
            speak(Speak::ParkDecline { not_before_ms: 1 }),
            speak(Speak::TellLead { request_id: "r".into(), digest: Default::default() }),
        ];
        let looking = [Command::Count { call, caller }, speak(Speak::Inbox)];
        let of = |rejection: Rejection| {
            move |command: &Command| {
                let mut audit = Audit::default();
                audit.asks(&State::default(), command);
                // The refusal may come in a later step.
                audit.told(&State::default(), &[]);
                audit.told(&State::default(), &[Effect::Refuse { call, rejection: rejection.clone() }]);
                (audit.owned.written, audit.other.written)
            }
        };
        for command in &acting {
            assert_eq!(of(Rejection::Draining)(command), (0, 1), "{command:?}");
            assert_eq!(of(Rejection::NotRoot { what: "do it" })(command), (1, 0), "{command:?}");
        }
        for command in &looking {
            assert_eq!(of(Rejection::NoTree)(command), (0, 0), "{command:?}");
            assert_eq!(of(Rejection::UnknownWorker { names: vec!["a".into(), "b".into()] })(command), (2, 0), "{command:?}");
        }
    }
}
