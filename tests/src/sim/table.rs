//! Scenarios written as text.

use roost_core::event::Settings;

use super::Checked;
use super::plan::{Gather, Op, Which};

/// What holds for a tree when nothing else is said.
pub(crate) fn settings() -> Settings {
    Settings {
        cap: 8,
        budget: 50,
        lend_slots: true,
        end_leftovers: true,
        adopt_orphans: false,
        stop_grace_ms: 5_000,
        depth_max: 64,
        group_caps: Vec::new(),
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
