//! Processes that claim to be somebody else, or that are no more: old epochs, wrong tokens, strangers. Nothing comes of them.

use roost_core::command::{Allowance, CallId, Caller, Claim, Command, Launch, Settle, Speak, Task};
use roost_core::effect::{Effect, Reply};
use roost_core::event::{Context, Digest, Place, Runner};
use roost_core::state::worker::Phase;
use roost_proto::id::{Epoch, Incarnation};
use roost_proto::link::ExitStatus;

use super::Checked;
use super::kernel::identity;
use super::script::{Who, token_of};
use super::world::World;

/// A pid that no process of this world ever has.
const NOBODY: u32 = u32::MAX;

/// How many kinds of them there are.
pub(crate) const KINDS: u8 = 23;

impl World {
    /// One of them speaks about this living process.
    pub(crate) fn impostor(&mut self, of: Incarnation, kind: u8) -> Checked {
        let Some(proc) = self.supervisor.procs.get(&of).filter(|proc| proc.main) else { return Ok(()) };
        let (worker, pid) = (proc.worker, proc.pid);
        let Some(claim) = self.claim(Who::Proc(of)) else { return Ok(()) };
        let tree = claim.tree;
        let Some(root_token) = self.state().trees.get(&tree).map(|tree| tree.token) else { return Ok(()) };
        let known = self.state().workers.get(&worker).is_some_and(|worker| worker.process.is_some());
        let old = Epoch(of.epoch.0.saturating_sub(1));
        let gone = Incarnation { epoch: old, ..of };
        let stale = Caller::Worker { worker, epoch: old };
        let context = Context { digest: Digest(9), bytes: 1, place: Place::Journal };
        self.note("impostors");
        // Everything due is done first, so that what is recorded after it is the impostor's.
        self.step(Command::Tick)?;
        self.calls += 1;
        let call = CallId(self.calls);
        let lease = self.state().workers.get(&worker).and_then(|worker| worker.speech.as_ref()).map(|speech| speech.lease);
        let current = Caller::Worker { worker, epoch: of.epoch };
        let older = lease.and_then(|lease| lease.checked_sub(1));
        let record = self.state().workers.get(&worker);
        let may_call =
            record.is_some_and(|worker| worker.incarnation() == of && worker.can_speak() && !matches!(worker.phase, Phase::Leaving { .. }));
        let answered = may_call && record.is_some_and(|worker| worker.has_answered());
        let held = may_call && self.script(Who::Proc(of)).is_some_and(|script| script.life == self.life && script.lease.is_some());
        let late = record.and_then(|worker| worker.speech.as_ref()).is_some_and(|speech| speech.late);
        let task = Task {
            name: Some("late".into()),
            stem: "w".into(),
            token: token_of(5),
            runner: Runner::Command,
            allowance: Allowance::Exactly(0),
            group: None,
            timeout_ms: None,
        };
        let launch = Launch {
            request_id: "late".into(),
            digest: Digest(3),
            tasks: vec![task],
            foreground: false,
            attended: false,
            generation: None,
            unusable: None,
        };
        let speak = |caller, lease, speak| Command::Speak { call, caller, lease, speak: Box::new(speak) };
        let settle = Settle {
            request_id: "impostor".into(),
            answered: true,
            context: Some(context),
            aborted: false,
            error: None,
            wrapped_up: false,
            truncated: false,
            usage: None,
        };
        let hello = |claim: Claim| Command::Hello { call, claim: Some(claim) };
        let command = match kind {
            0 => hello(Claim { token: token_of(1), ..claim }),
            1 => hello(Claim { epoch: Some(old), ..claim }),
            2 => hello(Claim { epoch: None, ..claim }),
            3 => hello(Claim { token: root_token, lineage: vec![identity(pid)], ..claim }),
            4 => hello(Claim { worker: None, ..claim }),
            5 => Command::Cap { call, caller: stale, cap: None },
            6 => Command::Park { call, caller: stale, context },
            7 => speak(stale, lease, Speak::Ack { request_id: None, items: vec![1, 2, 3] }),
            8 => speak(stale, lease, Speak::Settle { settle }),
            9 => speak(stale, lease, Speak::ParkReady { context: Some(context) }),
            10 => Command::Exited { incarnation: gone, status: ExitStatus::Code(0), leftovers: Vec::new() },
            // A stranger with the right token; before its process is known it would have to wait.
            11 if known => hello(Claim { lineage: vec![identity(1), identity(NOBODY)], ..claim }),
            // The same process over an older connection.
            13 if lease.is_some_and(|lease| lease > 0) && may_call => {
                speak(current, older, Speak::Ack { request_id: None, items: vec![1, 2, 3] })
            }
            14 if lease.is_some_and(|lease| lease > 0) && may_call => speak(current, older, Speak::Settle { settle }),
            // A tool of its own takes its voice.
            15 if held && known => hello(Claim { lineage: vec![identity(77_777), identity(pid)], ..claim }),
            // It has said its last word and begins something new.
            16 if answered => Command::Launch { call, caller: current, launch: Box::new(launch) },
            // Its hello has not come in time.
            18 if late => hello(claim),
            19 if late => hello(Claim { role: None, ..claim }),
            20 if late => Command::Park { call, caller: current, context },
            21 if late => speak(current, lease, Speak::Settle { settle }),
            // Nothing that it says follows on its last word.
            22 if answered => speak(current, lease, Speak::Report { activity: None, usage: None, says: true }),
            17 if answered => Command::Park { call, caller: current, context },
            _ => Command::Wait {
                call,
                caller: stale,
                request_id: "stale".into(),
                names: Vec::new(),
                any: false,
                tell_later: false,
                timeout_ms: None,
            },
        };
        let outcome = self.broker.step(self.moment(), command.clone()).map_err(|error| format!("the broker stops: {error}"))?;
        if !outcome.records.is_empty() {
            return Err(format!("an impostor changes something (I5, I12): {command:?}: {:?}", outcome.records));
        }
        let says_more = kind == 22 && answered;
        // What goes to a gone process at most is the word to forget it.
        let harmless = |effect: &&Effect| match effect {
            Effect::Refuse { .. } => true,
            Effect::Reply { reply: Reply::Done, .. } => says_more,
            Effect::Forget { incarnation } => *incarnation == gone,
            Effect::Reply { .. }
            | Effect::Spawn(_)
            | Effect::Signal { .. }
            | Effect::Deliver(_)
            | Effect::Withdraw { .. }
            | Effect::LeaseLost { .. }
            | Effect::AskPark { .. }
            | Effect::ForgetText(_)
            | Effect::Adopt { .. }
            | Effect::RemoveFiles { .. }
            | Effect::Leave => false,
        };
        let heard = kind == 10
            || says_more
            || outcome.effects.iter().any(|effect| matches!(effect, Effect::Refuse { call: of, .. } if *of == call));
        match outcome.effects.iter().find(|effect| !harmless(effect)) {
            Some(effect) => Err(format!("an impostor is answered (I5, I12): {command:?}: {effect:?}")),
            None if heard => Ok(()),
            None => Err(format!("an impostor is not refused (I12): {command:?}")),
        }
    }
}
