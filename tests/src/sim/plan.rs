//! What workers and roots do, decided by the seed and the name alone: a crash, a park or another order changes no plan.

use super::rng::Rng;

/// One thing that a client does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Launch {
        tasks: u64,
        foreground: bool,
    },
    Wait {
        which: Which,
        timeout_ms: Option<u64>,
    },
    Read {
        nth: usize,
        wait: bool,
    },
    /// Wait for a child in the background, and go on.
    Background {
        nth: usize,
    },
    Stop {
        nth: usize,
    },
    /// Tell a child something; perhaps with another allowance.
    Message {
        nth: usize,
        allowance: Option<u64>,
    },
    /// Tell its lead something.
    Tell,
    /// Say what it does, and what it has used more.
    Report {
        tool: bool,
        used: u64,
        /// The same once more.
        again: bool,
    },
    /// Stop somebody whom it does not own.
    Foreign,
    /// Try to change the cap as a worker.
    CapAsWorker,
    Park,
    /// Until it knows the end of every child.
    Gather(Gather),
    Open,
    /// A root takes its lease.
    Lease,
    /// A root says that it is idle.
    Idle,
    /// Look at what is owed.
    Look,
    Cap(u32),
    Pause(bool),
    Interrupt,
    /// Ends the work and the tree.
    Close {
        now: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Which {
    All,
    Any,
    Nth(usize),
}

/// How a worker waits until it knows all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Gather {
    Wait,
    Park,
    /// The way of workers that speak the protocol.
    Settle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ending {
    Code(i32),
    Signal(i32),
}

/// How starting it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Starts,
    Missing,
    /// Fails for want of something that comes back, in so many epochs.
    Transient(u32),
    /// Its first so many processes never say hello.
    Mute(u32),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Program {
    pub(crate) ops: Vec<Op>,
    pub(crate) ending: Ending,
    pub(crate) fate: Fate,
    pub(crate) corrupts: bool,
    pub(crate) stubborn: bool,
    pub(crate) leaves: bool,
    /// Parks and does not exit.
    pub(crate) lingers: bool,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) grouped: bool,
    pub(crate) allowance: u64,
    /// By the worker protocol.
    pub(crate) speaks: bool,
    /// It can save its context inside of a call, and says so.
    pub(crate) can_park: bool,
    /// It takes items in while a turn is on.
    pub(crate) steers: bool,
    /// What its last turn comes to.
    pub(crate) turn: Turn,
}

/// How a turn ends, beside what was wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Turn {
    Whole,
    Aborted,
    /// Cut at a length limit, after it has said something or before.
    Truncated {
        answered: bool,
    },
    /// It has said nothing.
    Silent,
    WrappedUp,
}

/// How wild a run is.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Only what ends the same way in every order.
    pub(crate) tidy: bool,
    /// Also what the seeds of old did not do: their runs stay as they were.
    pub(crate) wide: bool,
    /// Programs that were written down, by name.
    pub(crate) fixed: std::collections::BTreeMap<String, Program>,
}

impl Program {
    /// Does these things, then exits 0.
    pub(crate) fn plain(ops: Vec<Op>, allowance: u64) -> Self {
        let speaks = ops.contains(&Op::Gather(Gather::Settle));
        Self {
            ops: if speaks { spoken(ops) } else { ops },
            speaks,
            can_park: true,
            steers: true,
            turn: Turn::Whole,
            ending: Ending::Code(0),
            fate: Fate::Starts,
            corrupts: false,
            stubborn: false,
            leaves: false,
            lingers: false,
            timeout_ms: None,
            grouped: false,
            allowance,
        }
    }
}

/// The plan of a worker that speaks: it is never parked by its own will, and its last turn ends with a settle.
fn spoken(mut ops: Vec<Op>) -> Vec<Op> {
    ops.retain(|op| !matches!(op, Op::Park));
    for op in &mut ops {
        if *op == Op::Gather(Gather::Park) {
            *op = Op::Gather(Gather::Settle);
        }
    }
    if ops.last() != Some(&Op::Gather(Gather::Settle)) {
        ops.push(Op::Gather(Gather::Settle));
    }
    ops
}

/// How deep the name of a worker says that it is.
fn depth_of(name: &str) -> usize {
    name.matches('.').count()
}

impl Plan {
    /// The program of a worker.
    pub(crate) fn of(&self, name: &str) -> Program {
        if let Some(program) = self.fixed.get(name) {
            return program.clone();
        }
        // Where everybody is written down, `name/*` is every child of that name and `*` whoever is left.
        let parent = name.rsplit_once('.').map_or("*", |(parent, _)| parent);
        if let Some(program) = self.fixed.get(&format!("{parent}/*")).or_else(|| self.fixed.get("*")) {
            return program.clone();
        }
        let mut rng = Rng::of(self.seed, name);
        let depth = depth_of(name);
        let allowance = if depth < 3 { rng.below(7) } else { 0 };
        let mut program = Program::plain(self.worker_ops(&mut rng, depth, allowance), allowance);
        program.grouped = rng.chance(400);
        program.lingers = rng.chance(50);
        program.stubborn = rng.chance(200);
        program.leaves = rng.chance(150);
        program.can_park = rng.chance(750);
        program.steers = rng.chance(750);
        if !self.tidy {
            program.timeout_ms = rng.chance(80).then(|| 1 + rng.below(4_000));
            program.corrupts = rng.chance(20);
        }
        program.fate = match rng.below(if self.tidy { 940 } else { 1000 }) {
            0..30 if program.speaks && !self.tidy => Fate::Mute(1 + u32::try_from(rng.below(3)).unwrap_or(0)),
            0..880 => Fate::Starts,
            880..940 => Fate::Transient(1 + u32::try_from(rng.below(2)).unwrap_or(0)),
            940..960 => Fate::Transient(9),
            _ => Fate::Missing,
        };
        if self.wide {
            program.turn = match Rng::of(self.seed, &format!("{name} turn")).below(12) {
                0 => Turn::Aborted,
                1 => Turn::Truncated { answered: true },
                2 => Turn::Truncated { answered: false },
                3 => Turn::Silent,
                4 => Turn::WrappedUp,
                _ => Turn::Whole,
            };
        }
        program.ending = match rng.below(100) {
            0..80 => Ending::Code(0),
            80..92 => Ending::Code(3),
            _ if program.speaks => Ending::Code(3),
            _ => Ending::Signal(11),
        };
        program
    }

    /// What a worker does in its n-th execution, from 0.
    pub(crate) fn ops_of(&self, name: &str, program: &Program, run: usize) -> Vec<Op> {
        if run == 0 {
            return program.ops.clone();
        }
        let mut rng = Rng::of(self.seed, &format!("{name} again {run}"));
        let mut ops = vec![Op::Tell];
        if !self.tidy && self.fixed.is_empty() && rng.chance(300) {
            ops.push(Op::Launch { tasks: 1, foreground: rng.chance(200) });
        }
        ops.push(Op::Gather(Gather::Settle));
        ops
    }

    fn worker_ops(&self, rng: &mut Rng, depth: usize, allowance: u64) -> Vec<Op> {
        let launches = if allowance == 0 { u64::from(rng.chance(20)) } else { [1, 1, 2, 2][rng.index(4)].min(4 - depth as u64) };
        let speaks = rng.chance(400);
        let mut ops = Vec::new();
        for _ in 0..launches {
            ops.push(Op::Launch { tasks: 1 + rng.below(3), foreground: rng.chance(150) });
            for _ in 0..rng.below(3) {
                ops.push(self.middle(rng));
            }
        }
        if launches > 0 && rng.chance(250) {
            // A wait first: whoever is told something then has ended, or is about to.
            ops.push(Op::Wait { which: Which::Any, timeout_ms: None });
            ops.push(Op::Message { nth: rng.index(4), allowance: None });
        }
        for _ in 0..if rng.chance(300) { 1 + rng.below(2) } else { 0 } {
            ops.push(self.remark(rng));
        }
        if launches > 0 && (self.tidy || rng.chance(880)) {
            ops.push(Op::Gather(match rng.below(2) {
                _ if speaks => Gather::Settle,
                0 => Gather::Wait,
                _ => Gather::Park,
            }));
        } else if speaks {
            ops.push(Op::Gather(Gather::Settle));
        }
        ops
    }

    /// What a worker says of itself.
    fn remark(&self, rng: &mut Rng) -> Op {
        match rng.below(3) {
            0 => Op::Tell,
            1 => Op::Report { tool: rng.chance(400), used: rng.below(1_000), again: false },
            _ => Op::Report { tool: false, used: rng.below(10), again: true },
        }
    }

    fn middle(&self, rng: &mut Rng) -> Op {
        let nth = rng.index(4);
        if rng.chance(400) {
            let allowance = (!self.tidy && rng.chance(300)).then(|| rng.below(8));
            return if rng.chance(700) { Op::Message { nth, allowance } } else { self.remark(rng) };
        }
        match rng.below(if self.tidy { 6 } else { 12 }) {
            0 => Op::Park,
            1 => Op::Wait { which: Which::Any, timeout_ms: None },
            2 => Op::Wait { which: Which::Nth(nth), timeout_ms: None },
            3 => Op::Read { nth, wait: rng.chance(500) },
            4 => Op::Foreign,
            5 => Op::CapAsWorker,
            6 => Op::Wait { which: Which::All, timeout_ms: Some(rng.below(3_000)) },
            7 => Op::Wait { which: Which::Any, timeout_ms: Some(rng.below(100)) },
            8 | 9 => Op::Background { nth },
            _ => Op::Stop { nth },
        }
    }

    /// The program of a root: launches and meddles, waits for all, closes.
    pub(crate) fn root(&self, name: &str) -> Vec<Op> {
        let mut rng = Rng::of(self.seed, name);
        let mut ops = vec![Op::Open];
        if rng.chance(600) {
            ops.push(Op::Lease);
        }
        for _ in 0..1 + rng.below(3) {
            ops.push(Op::Launch { tasks: 1 + rng.below(3), foreground: rng.chance(150) });
            if rng.chance(300) {
                ops.push(Op::Wait { which: Which::Any, timeout_ms: None });
                ops.push(Op::Message { nth: rng.index(4), allowance: (!self.tidy && rng.chance(300)).then(|| rng.below(8)) });
            }
            for _ in 0..rng.below(3) {
                ops.push(match rng.below(if self.tidy { 7 } else { 11 }) {
                    0..3 => Op::Cap(1 + u32::try_from(rng.below(4)).unwrap_or(0)),
                    3 => Op::Pause(true),
                    4 => Op::Pause(false),
                    7 => Op::Interrupt,
                    8 => Op::Stop { nth: rng.index(4) },
                    _ => self.middle(&mut rng),
                });
            }
        }
        ops.push(Op::Pause(false));
        ops.push(Op::Gather(Gather::Wait));
        ops.push(Op::Close { now: !self.tidy && rng.chance(300) });
        // A root cannot park, and what only workers are refused is its right.
        ops.retain(|op| !matches!(op, Op::Park | Op::CapAsWorker | Op::Background { .. } | Op::Tell));
        if self.wide {
            let mut rng = Rng::of(self.seed, &format!("{name} looks"));
            for _ in 0..rng.below(4) {
                let at = 1 + rng.index(ops.len() - 1);
                ops.insert(at, if rng.chance(600) { Op::Idle } else { Op::Look });
            }
        }
        ops
    }

    /// Whether this wait for whatever was not told is told by a word of its own.
    pub(crate) fn tells_later(&self, name: &str, pc: usize) -> bool {
        self.wide && Rng::of(self.seed, &format!("{name} tells {pc}")).chance(500)
    }
}
