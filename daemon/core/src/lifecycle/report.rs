//! How work stands, as whoever does it says: contract sections 11 and 12.

use crate::command::{Activity, CallId, Caller};
use crate::effect::{Effect, Reply};
use crate::event::{Event, Owner, Spoken};
use crate::holders::Holders;
use crate::lifecycle::authority;
use crate::rejection::Rejection;
use crate::step::Step;
use roost_proto::usage::UsageReport;

/// What a report says.
pub struct Report {
    /// What the caller does.
    pub activity: Option<Activity>,
    /// What it has used.
    pub usage: Option<UsageReport>,
    /// Whether its turn has said something new.
    pub says: bool,
}

/// Takes a report.
pub fn report(
    step: &mut Step<'_>,
    holders: &mut Holders,
    call: CallId,
    caller: Caller,
    lease: Option<u64>,
    report: Report,
) -> Result<(), Rejection> {
    match caller {
        Caller::Root(_) => of_root(step, holders, caller, lease, &report)?,
        Caller::Operator | Caller::Worker { .. } => of_worker(step, holders, caller, lease, &report)?,
    }
    step.reply(call, Reply::Done);
    Ok(())
}

/// A root has no turn that Roost knows of; but when it says that it is idle, it is told again of what it has not taken in.
fn of_root(step: &mut Step<'_>, holders: &mut Holders, caller: Caller, lease: Option<u64>, report: &Report) -> Result<(), Rejection> {
    let (tree, owner) = authority::asker(step.state, caller)?;
    let record = step.state.tree(tree)?;
    if lease != Some(record.lease) {
        return Err(Rejection::StaleLease);
    }
    if let Some(usage) = &report.usage
        && authority::usage(Some(&record.accounts), usage)?
    {
        step.record(Event::Spoken(Box::new(Spoken::UsageReported { tree, owner, report: *usage })));
    }
    if report.activity == Some(Activity::Idle)
        && let Some(holding) = holders.get_mut(tree, owner)
    {
        holding.handed.clear();
        step.mail.insert((tree, owner));
    }
    Ok(())
}

fn of_worker(step: &mut Step<'_>, holders: &mut Holders, caller: Caller, lease: Option<u64>, report: &Report) -> Result<(), Rejection> {
    let worker = authority::voice(step.state, caller, lease)?;
    let (id, tree) = (worker.id, worker.tree);
    let news = match &report.usage {
        Some(usage) => authority::usage(worker.accounts.as_deref(), usage)?,
        None => false,
    };
    let idle_ms = step.state.trees.get(&tree).map_or(0, |tree| tree.settings.timing.idle_ms);
    let tool = report.activity.map(|activity| activity == Activity::Tool);
    holders.beat(id, step.now.mono, idle_ms, tool);
    let (settled, answered) = (worker.is_settled(), worker.has_answered());
    let said = worker.speech.as_ref().and_then(|speech| speech.said).filter(|_| !settled);
    let starts = matches!(report.activity, Some(Activity::Busy | Activity::Tool)) && settled && worker.stop.is_none();
    if starts {
        step.record(Event::Spoken(Box::new(Spoken::Busy { worker: id })));
    }
    if let Some(usage) = report.usage.filter(|_| news) {
        step.record(Event::Spoken(Box::new(Spoken::UsageReported { tree, owner: Owner::Worker(id), report: usage })));
    }
    // Nothing follows on a last word.
    if report.says && (starts || !settled) && !answered {
        step.effects.extend(said.map(|said| Effect::ForgetText(said.text)));
        step.record(Event::Spoken(Box::new(Spoken::Said { worker: id })));
    }
    Ok(())
}
