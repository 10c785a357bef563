//! Messages between a lead and its direct children: contract section 7. Nothing is accepted and then dropped.

use roost_proto::id::{ExecutionId, JobId, MessageId, TreeId};
use roost_proto::outcome::Outcome;

use crate::calls::{Calls, Pending, Want};
use crate::command::{CallId, Caller};
use crate::event::{Digest, Event, Owner, Sent, Spoken};
use crate::lifecycle::{authority, bounds};
use crate::rejection::Rejection;
use crate::state::State;
use crate::state::outbox::Outbox;
use crate::state::worker::{Phase, Worker};
use crate::step::Step;
use roost_proto::limits::{BUDGET_MAX, WORDS_OWED_MAX};

/// A request that must not be carried out twice.
pub struct Once {
    /// The caller's id for it.
    pub request_id: String,
    /// What it says.
    pub digest: Digest,
}

/// Words to a direct child.
pub fn message(
    step: &mut Step<'_>,
    calls: &mut Calls,
    call: CallId,
    caller: Caller,
    once: Once,
    name: &str,
    allowance: Option<u64>,
) -> Result<(), Rejection> {
    bounds::label("the request id", &once.request_id)?;
    let (tree, owner) = authority::asker(step.state, caller)?;
    if let Some((message, sent)) = sent_before(step.state, tree, owner, &once)? {
        answer(calls, call, (tree, owner), message, sent);
        return Ok(());
    }
    authority::may_launch(step.state, caller)?;
    let unknown = || Rejection::UnknownWorker { names: vec![name.to_owned()] };
    let child = step.state.child_of(tree, owner, name).ok_or_else(unknown)?;
    let sent = way_to(step.state, child)?;
    room(&child.outbox)?;
    let raised = allowance.filter(|allowance| *allowance != child.ledger.limit());
    if let Some(allowance) = raised {
        may_have(step.state, child, allowance)?;
    }
    let child = child.id;
    if let Some(allowance) = raised {
        step.record(Event::Spoken(Box::new(Spoken::AllowanceSet { worker: child, allowance })));
    }
    let message = send(step, tree, owner, Owner::Worker(child), once, sent);
    if let Sent::Resumes(job) = sent {
        let execution = ExecutionId(step.state.last_execution + 1);
        step.record(Event::Spoken(Box::new(Spoken::ResumeAccepted { worker: child, job, execution })));
    }
    answer(calls, call, (tree, owner), message, sent);
    Ok(())
}

/// Words to the caller's lead.
pub fn tell_lead(step: &mut Step<'_>, calls: &mut Calls, call: CallId, caller: Caller, once: Once) -> Result<(), Rejection> {
    bounds::label("the request id", &once.request_id)?;
    let id = authority::worker(step.state, caller, "tell its lead something")?;
    let worker = step.state.workers.get(&id).ok_or(Rejection::UnknownIdentity)?;
    let (tree, from, lead) = (worker.tree, Owner::Worker(id), worker.owner);
    if let Some((message, sent)) = sent_before(step.state, tree, from, &once)? {
        answer(calls, call, (tree, from), message, sent);
        return Ok(());
    }
    if let Owner::Worker(lead) = lead {
        may_read(step.state.workers.get(&lead).ok_or(Rejection::LeadGone)?)?;
    }
    room(step.state.lead(tree, lead).ok_or(Rejection::LeadGone)?.outbox)?;
    let message = send(step, tree, from, lead, once, Sent::ToLead);
    answer(calls, call, (tree, from), message, Sent::ToLead);
    Ok(())
}

fn send(step: &mut Step<'_>, tree: TreeId, from: Owner, to: Owner, once: Once, sent: Sent) -> MessageId {
    let Once { request_id, digest } = once;
    let message = MessageId(step.state.seq + 1);
    step.record(Event::Spoken(Box::new(Spoken::WordsSent { tree, from, to, request_id, digest, sent })));
    // What arrives before the park is recorded calls it off.
    if let Owner::Worker(to) = to
        && step.state.workers.get(&to).is_some_and(|to| matches!(to.phase, Phase::ParkAsked { blocked: true, .. }))
    {
        step.record(Event::ParkCancelled { worker: to, not_before: step.now.mono });
    }
    message
}

/// The reply is written when the step has placed what it started.
fn answer(calls: &mut Calls, call: CallId, asker: (TreeId, Owner), message: MessageId, sent: Sent) {
    let want = Want::Sent { message, sent };
    calls.add(call, Pending { asker: Some(asker), want, awaited: Default::default(), deadline: None, over: None });
}

fn sent_before(state: &State, tree: TreeId, owner: Owner, once: &Once) -> Result<Option<(MessageId, Sent)>, Rejection> {
    let lead = state.lead(tree, owner).ok_or(Rejection::UnknownIdentity)?;
    match lead.sent.iter().find(|entry| entry.request_id == once.request_id) {
        Some(entry) if entry.digest == once.digest => Ok(Some((entry.message, entry.sent))),
        Some(_) => Err(Rejection::RequestIdReused { request_id: once.request_id.clone() }),
        None => Ok(None),
    }
}

/// Who reads nothing is told no more.
fn room(receiver: &Outbox) -> Result<(), Rejection> {
    if receiver.words() < WORDS_OWED_MAX {
        return Ok(());
    }
    Err(Rejection::Limit { what: "messages that the receiver has not read", limit: WORDS_OWED_MAX, next: "wait until it has read some" })
}

/// How words reach a child, or why they do not.
fn way_to(state: &State, child: &Worker) -> Result<Sent, Rejection> {
    let name = child.name.to_string();
    let Some(_) = &child.speech else {
        return Err(if child.has_ended() {
            Rejection::NotResumable { name, why: "it is a plain command" }
        } else {
            Rejection::NotSteerable { name, why: "it is a plain command, which reads nothing while it runs" }
        });
    };
    if child.stop.is_some() && !child.has_ended() {
        return Err(Rejection::TargetStopping { name });
    }
    match &child.phase {
        Phase::Queued | Phase::Starting(_) | Phase::Running | Phase::Blocked { .. } | Phase::Waiting { .. } | Phase::ParkAsked { .. } => {
            Ok(Sent::Steering(child.execution))
        }
        Phase::Leaving { .. } | Phase::Parked { .. } | Phase::Emptying { parked: true, .. } => Err(Rejection::TargetParked { name }),
        Phase::Closing { outcome, .. } | Phase::Emptying { outcome: Some(outcome), .. } if can_resume(child, outcome) => {
            Ok(Sent::AfterEnd(child.execution))
        }
        Phase::Closing { .. } | Phase::Emptying { .. } | Phase::Gone { .. } | Phase::Finishing { .. } => {
            Err(Rejection::NotSteerable { name, why: "its process has ended" })
        }
        Phase::Ended { outcome } if can_resume(child, outcome) => Ok(Sent::Resumes(JobId(state.last_job + 1))),
        Phase::Ended { .. } => Err(Rejection::NotResumable { name, why: "it has saved no context" }),
    }
}

/// Whether a worker can go on from where it has ended. One that has failed may: its context is that of its last settled turn.
pub fn can_resume(worker: &Worker, _outcome: &Outcome) -> bool {
    worker.context.is_some()
}

fn may_have(state: &State, child: &Worker, allowance: u64) -> Result<(), Rejection> {
    let bad = |range: String| Err(Rejection::BadValue { what: "max_subagents_allowed", range, value: allowance.to_string() });
    if allowance > BUDGET_MAX {
        return bad(format!("at most {BUDGET_MAX}"));
    }
    let Some(needed) = child.ledger.raise(allowance) else {
        let spent = child.ledger.limit() - child.ledger.remaining();
        return bad(format!("at least {spent}, which the worker has given out already"));
    };
    let launcher = state.lead(child.tree, child.launcher).ok_or(Rejection::UnknownIdentity)?;
    let remaining = launcher.ledger.remaining();
    if needed > remaining { Err(Rejection::Budget { needed, remaining, owner: child.launcher }) } else { Ok(()) }
}

/// Whether a lead that is a worker reads what it is told.
fn may_read(lead: &Worker) -> Result<(), Rejection> {
    match &lead.phase {
        Phase::Leaving { .. } | Phase::Parked { .. } | Phase::Emptying { parked: true, .. } => Err(Rejection::LeadParked),
        Phase::Closing { .. } | Phase::Emptying { .. } | Phase::Gone { .. } | Phase::Finishing { .. } | Phase::Ended { .. } => {
            Err(Rejection::LeadGone)
        }
        Phase::Queued | Phase::Starting(_) | Phase::Running | Phase::Blocked { .. } | Phase::Waiting { .. } | Phase::ParkAsked { .. } => {
            if lead.stop.is_some() {
                Err(Rejection::LeadGone)
            } else {
                Ok(())
            }
        }
    }
}
