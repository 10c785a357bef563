//! The words of scenarios: settings, tasks, what a client does, how a worker stands.

use roost_core::command::{Allowance, Settle, Task};
use roost_core::event::{Delivery, Join, Runner, Settings, Timing};
use roost_core::state::worker::{Phase, Worker};
use roost_core::view;
use roost_proto::outcome::Failure;

use super::super::Checked;
use super::super::plan::{Gather, Op, Which};
use super::super::script::token_of;

/// What holds for a tree when nothing else is said.
pub fn settings() -> Settings {
    Settings {
        interrupt_scope: roost_core::event::InterruptScope::All,
        cap: 8,
        budget: 50,
        lend_slots: true,
        end_leftovers: true,
        adopt_orphans: false,
        stop_grace_ms: 5_000,
        depth_max: 64,
        group_caps: Vec::new(),
        delivery: Delivery::default(),
        join: Join::default(),
        timing: Timing::default(),
    }
}

/// One thing that a client does, from its words.
pub(crate) fn op(text: &str) -> Checked<Op> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let nth = |at: usize| usize::try_from(number(at)).unwrap_or(0);
    Ok(match words.first().copied().unwrap_or("") {
        "open" => Op::Open,
        "launch" => Op::Launch { tasks: number(1), foreground: false },
        "run" => Op::Launch { tasks: number(1), foreground: true },
        "wait-any" => Op::Wait { which: Which::Any, timeout_ms: None },
        "wait-all" => Op::Wait { which: Which::All, timeout_ms: None },
        "wait" => Op::Wait { which: Which::Nth(nth(1)), timeout_ms: None },
        "background" => Op::Background { nth: nth(1) },
        "stop" => Op::Stop { nth: nth(1) },
        "message" => Op::Message { nth: nth(1), allowance: words.get(2).and_then(|word| word.parse().ok()) },
        "tell" => Op::Tell,
        "lease" => Op::Lease,
        "park" => Op::Park,
        "gather-wait" => Op::Gather(Gather::Wait),
        "gather-park" => Op::Gather(Gather::Park),
        "gather-settle" => Op::Gather(Gather::Settle),
        "cap" => Op::Cap(u32::try_from(number(1)).unwrap_or(1)),
        "pause" => Op::Pause(true),
        "resume" => Op::Pause(false),
        "interrupt" => Op::Interrupt,
        "close" => Op::Close { now: false },
        other => return Err(format!("nobody knows how to {other}")),
    })
}

pub(super) fn set(settings: &mut Settings, word: &str) -> Checked {
    let (key, value) = word.split_once('=').ok_or_else(|| format!("not a setting: {word}"))?;
    let number = value.parse::<u64>().unwrap_or(0);
    let small = u32::try_from(number).unwrap_or(u32::MAX);
    match key {
        "cap" => settings.cap = small,
        "budget" => settings.budget = number,
        "lend" => settings.lend_slots = value == "yes",
        "leftovers" => settings.end_leftovers = value == "end",
        "orphans" => settings.adopt_orphans = value == "adopt",
        "idle" => settings.timing.idle_ms = number,
        "startup" => settings.timing.startup_ms = number,
        "delivery" if value == "next_turn" => settings.delivery = Delivery::NextTurn,
        "grace" => settings.stop_grace_ms = number,
        "group" => settings.group_caps = vec![("writers".into(), small)],
        other => return Err(format!("there is no setting {other}")),
    }
    Ok(())
}

/// A task from `name`, `name+3` for descendants, `name@` for a member of the group, `name!` for one that speaks.
pub(super) fn task(word: &str, timeout: Option<&str>) -> Task {
    let (name, allowance) = word.split_once('+').unwrap_or((word, "0"));
    let (grouped, speaks) = (name.contains('@'), name.contains('!'));
    let name = name.trim_end_matches(['@', '!']);
    Task {
        name: Some(name.to_owned()),
        stem: "w".into(),
        token: token_of(name.len() as u64),
        allowance: Allowance::Exactly(allowance.parse().unwrap_or(u64::MAX)),
        runner: if speaks { Runner::Worker } else { Runner::Command },
        group: grouped.then(|| "writers".into()),
        timeout_ms: timeout.and_then(|n| n.parse().ok()),
    }
}

pub(super) fn state_of(worker: &Worker) -> String {
    if let Phase::Ended { outcome } = &worker.phase {
        return outcome.to_string().replace(' ', "-");
    }
    format!("{:?}", view::state_of(worker)).to_lowercase()
}

/// A settle with an answer and a context, or as the words say.
pub(super) fn settle(request_id: String, words: &[&str]) -> Settle {
    let error = words.contains(&"failed").then(|| Failure::Provider { message: "planned".into() });
    Settle {
        request_id,
        answered: !words.contains(&"silent"),
        context: (!words.contains(&"bare")).then_some(super::CONTEXT),
        aborted: words.contains(&"aborted"),
        error,
        wrapped_up: words.contains(&"wrapped-up"),
        truncated: words.contains(&"truncated"),
        usage: None,
    }
}
