//! A client of the broker that goes through its plan: what it knows, what it has asked, and the commands that its asking makes.

use std::collections::{BTreeSet, VecDeque};

use roost_core::command::{Activity, Allowance, CallId, Caller, Claim, Command, Launch, Open, Settle, Speak, Target, Task};
use roost_core::effect::End;
use roost_core::event::{Context, Digest, Place, Runner, Settings};
use roost_proto::id::{ExecutionId, Incarnation, MessageId, Token, TreeId};
use roost_proto::outcome::Failure;
use roost_proto::usage::{Usage, UsageReport};

use super::Checked;
use super::mail::{Errand, Got, Mail};
use super::plan::{Ending, Op, Plan, Turn};

/// Who acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Who {
    Root(usize),
    Proc(Incarnation),
}

/// What survives a park: it is the saved context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Progress {
    pub(crate) pc: usize,
    pub(crate) requests: u64,
    /// Names of the children that it launched.
    pub(crate) children: Vec<String>,
    /// Executions of children whose end it was told.
    pub(crate) known: BTreeSet<ExecutionId>,
    /// Those of them that it was told by the answer of a call.
    pub(crate) by_call: BTreeSet<ExecutionId>,
    /// Those of them that it has taken in as items, as a broker has confirmed.
    pub(crate) by_item: BTreeSet<ExecutionId>,
    /// Messages that it has read, or that came back to it.
    pub(crate) read: BTreeSet<MessageId>,
    /// How many executions its worker had before.
    pub(crate) run: usize,
    /// The call in which it was parked.
    pub(crate) held: Option<(Ask, String)>,
    /// Something went otherwise than planned: it is not held to knowing all.
    pub(crate) maimed: bool,
}

/// A call that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Call {
    pub(crate) id: u64,
    pub(crate) ask: Ask,
    pub(crate) request: String,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Ask {
    Hello,
    Open,
    Launch {
        names: Vec<String>,
        foreground: bool,
    },
    /// Names; none for all whose end was not told.
    Wait {
        names: Vec<String>,
        any: bool,
        timeout_ms: Option<u64>,
        /// Its ends count as told when this client has said so.
        later: bool,
    },
    Read {
        name: String,
        wait: bool,
    },
    Stop {
        names: Vec<String>,
        foreign: bool,
    },
    Message {
        name: String,
        allowance: Option<u64>,
    },
    Tell,
    Report {
        tool: bool,
        sequence: u64,
        used: u64,
    },
    Cap(u32),
    Park,
    /// Take the lease of a root.
    Lease,
    Idle,
    Look,
    /// The end of a turn.
    Settle,
    Pause(bool),
    Interrupt,
    Close {
        now: bool,
    },
}

/// Where a worker that speaks the protocol stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    #[default]
    Active,
    /// Settled, or not told its task yet: waits to be told something.
    Settled,
    /// Must exit.
    Leaving,
}

#[derive(Debug, Clone, Hash)]
pub(crate) struct Script {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    pub(crate) at: Progress,
    pub(crate) tree: Option<TreeId>,
    pub(crate) caller: Option<Caller>,
    /// The life of the broker that it is connected to.
    pub(crate) life: u64,
    pub(crate) call: Option<Call>,
    /// The call that was under way when the broker was lost.
    pub(crate) again: Option<Call>,
    pub(crate) mode: Mode,
    /// Calls of its background clients.
    pub(crate) side: Vec<u64>,
    /// The lease of its connection.
    pub(crate) lease: Option<u64>,
    /// What came unasked.
    pub(crate) mail: VecDeque<Mail>,
    /// Its last usage report, and what that said.
    pub(crate) used: (u64, u64),
    /// The broker knows that it is inside of a tool.
    pub(crate) in_tool: bool,
    /// It has asked for what it is owed at the end of a turn, in a tree where nobody is handed ends.
    pub(crate) gathered: bool,
    /// How often it lost its connection.
    pub(crate) cuts: u64,
    /// It was asked to park and has not answered yet.
    pub(crate) asked: bool,
    /// Small calls that it makes beside the one of its plan.
    pub(crate) errands: Vec<(u64, Errand)>,
    /// Items that it has taken in and that were owed until then.
    pub(crate) confirmed: BTreeSet<u64>,
    /// Items that it has taken in, and whose acknowledgement was lost with its answer.
    pub(crate) unsure: Vec<(u64, Got)>,
    /// Items that it was handed over this connection.
    pub(crate) handed: BTreeSet<u64>,
    /// Ends that it was told and has said so, without an answer to that.
    pub(crate) untold: Vec<ExecutionId>,
}

impl Script {
    pub(crate) fn new(name: String, ops: Vec<Op>, at: Progress) -> Self {
        Self {
            name,
            ops,
            at,
            tree: None,
            caller: None,
            life: u64::MAX,
            call: None,
            again: None,
            mode: Mode::Active,
            side: Vec::new(),
            lease: None,
            mail: VecDeque::new(),
            used: (0, 0),
            in_tool: false,
            gathered: false,
            cuts: 0,
            asked: false,
            errands: Vec::new(),
            confirmed: BTreeSet::new(),
            unsure: Vec::new(),
            handed: BTreeSet::new(),
            untold: Vec::new(),
        }
    }

    pub(crate) fn op(&self) -> Option<&Op> {
        self.ops.get(self.at.pc)
    }

    /// Whether it may save its context now: everything that it has taken in is confirmed.
    pub(crate) fn may_park(&self) -> bool {
        self.errands.is_empty() && self.waits()
    }

    /// Whether it can save its context: it has settled, or waits inside of a call.
    pub(crate) fn waits(&self) -> bool {
        let blocks = |ask: &Ask| matches!(ask, Ask::Wait { .. } | Ask::Read { wait: true, .. } | Ask::Launch { foreground: true, .. });
        self.call.as_ref().map_or(self.mode == Mode::Settled, |call| blocks(&call.ask))
    }

    pub(crate) fn has_errand(&self, id: u64) -> bool {
        self.errands.iter().any(|(of, _)| *of == id)
    }

    /// Its connection is gone, and what was under way on it.
    pub(crate) fn lost_connection(&mut self) {
        (self.asked, self.in_tool) = (false, false);
        self.mail.clear();
        self.handed.clear();
        for (_, errand) in self.errands.drain(..) {
            match errand {
                Errand::Ack(items) => self.unsure.extend(items),
                Errand::Told(executions) => self.untold.extend(executions),
                Errand::Ready | Errand::Remark => {}
            }
        }
    }

    pub(crate) fn next(&mut self) {
        self.at.pc += 1;
    }

    /// Takes the end of a child in; whether it is news.
    pub(crate) fn learn(&mut self, execution: ExecutionId) -> bool {
        self.at.known.insert(execution)
    }

    /// The answer of a call tells it of an end. What it has heard before, by whatever way, is not news; that what is told as no news
    /// was told is looked at in [`super::check::told_before`].
    pub(crate) fn told(&mut self, end: &End, later: bool) -> Checked {
        let known = self.at.by_call.contains(&end.execution) || self.at.by_item.contains(&end.execution);
        if known && !end.told_before {
            return Err(format!("{} is told of {} twice (I10, I17)", self.name, end.name));
        }
        if !end.told_before && !later {
            self.at.by_call.insert(end.execution);
        }
        self.learn(end.execution);
        Ok(())
    }

    /// The name of its n-th child in this execution.
    pub(crate) fn child_name(&self, n: usize) -> String {
        format!("{}.{}", self.name, n + self.at.run * 1_000)
    }

    pub(crate) fn fresh_request(&mut self) -> String {
        self.at.requests += 1;
        format!("q{}-{}", self.at.run, self.at.requests)
    }
}

/// The saved context of a progress: its digest finds it again.
pub(crate) fn context_of(name: &str, at: &Progress) -> (u128, Context) {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (name, at).hash(&mut hasher);
    let digest = u128::from(hasher.finish());
    (digest, Context { digest: Digest(digest), bytes: 8, place: Place::Journal })
}

/// What a command needs beside the asking.
pub(crate) struct Asking<'a> {
    pub(crate) script: &'a Script,
    pub(crate) plan: &'a Plan,
    pub(crate) settings: &'a Settings,
    pub(crate) claim: Option<Claim>,
    /// For a tree to open.
    pub(crate) tree: TreeId,
    pub(crate) ephemeral: bool,
}

/// All counters of a report follow from one number.
pub(crate) fn usage(sequence: u64, used: u64) -> UsageReport {
    let usage = Usage { input: used, output: 2 * used, cost: 3 * used, turns: used, ..Usage::default() };
    UsageReport { sequence, usage, context_tokens: Some(used) }
}

pub(crate) fn token_of(seed: u64) -> Token {
    Token::new((u128::from(seed) | 1 << 100).to_le_bytes())
}

impl Asking<'_> {
    pub(crate) fn command(&self, of: &Call) -> Command {
        let call = CallId(of.id);
        let caller = self.script.caller.unwrap_or(Caller::Operator);
        let request_id = of.request.clone();
        match of.ask.clone() {
            Ask::Hello => Command::Hello { call, claim: self.claim.clone() },
            Ask::Open => Command::Open {
                call,
                open: Box::new(Open {
                    tree: self.tree,
                    token: token_of(self.tree.0),
                    request_id: self.script.name.clone(),
                    key: self.ephemeral.then(|| format!("key of {}", self.script.name)),
                    ephemeral: self.ephemeral,
                    settings: self.settings.clone(),
                }),
            },
            Ask::Launch { names, foreground } => {
                Command::Launch { call, caller, launch: Box::new(self.launch(request_id, &names, foreground)) }
            }
            Ask::Wait { names, any, timeout_ms, later } => {
                Command::Wait { call, caller, request_id, names, any, tell_later: later, timeout_ms }
            }
            Ask::Read { name, wait } => {
                let (of, request_id) = (Target::Name(name), Some(request_id));
                Command::Result { call, caller, tree: None, of, wait, request_id, timeout_ms: None }
            }
            Ask::Message { name, allowance } => {
                let digest = context_of(&format!("{name} {allowance:?} {request_id}"), &Progress::default()).1.digest;
                self.speak(call, Speak::Message { request_id, digest, name, allowance })
            }
            Ask::Tell => self.speak(call, Speak::TellLead { request_id, digest: Digest(1) }),
            Ask::Report { tool, sequence, used } => {
                let activity = Some(if tool { Activity::Tool } else { Activity::Busy });
                self.speak(call, Speak::Report { activity, usage: Some(usage(sequence, used)), says: false })
            }
            Ask::Lease => Command::Hello { call, claim: self.claim.clone() },
            Ask::Idle => self.speak(call, Speak::Report { activity: Some(Activity::Idle), usage: None, says: false }),
            Ask::Look => self.speak(call, Speak::Inbox),
            Ask::Settle => self.speak(call, Speak::Settle { settle: self.settle(request_id) }),
            Ask::Stop { names, .. } => Command::Stop { call, caller, request_id: Some(request_id), names, no_wait: false },
            Ask::Cap(cap) => Command::Cap { call, caller, cap: Some(cap) },
            Ask::Park => Command::Park { call, caller, context: context_of(&self.script.name, &self.script.at).1 },
            Ask::Pause(paused) => Command::Pause { call, caller, paused },
            Ask::Interrupt => Command::Interrupt { call, caller, request_id: Some(request_id), no_wait: false },
            Ask::Close { now } => Command::Close { call, caller, now },
        }
    }

    pub(crate) fn speak(&self, call: CallId, speak: Speak) -> Command {
        let caller = self.script.caller.unwrap_or(Caller::Operator);
        Command::Speak { call, caller, lease: self.script.lease, speak: Box::new(speak) }
    }

    fn settle(&self, request_id: String) -> Settle {
        let program = self.plan.of(&self.script.name);
        let failed = program.ending != Ending::Code(0);
        Settle {
            request_id,
            answered: !matches!(program.turn, Turn::Silent | Turn::Truncated { answered: false }),
            context: Some(context_of(&self.script.name, &self.script.at).1),
            aborted: program.turn == Turn::Aborted,
            error: failed.then(|| Failure::Provider { message: "planned".into() }),
            wrapped_up: program.turn == Turn::WrappedUp,
            truncated: matches!(program.turn, Turn::Truncated { .. }),
            usage: Some(usage(self.script.used.0 + 1, self.script.used.1)),
        }
    }

    fn launch(&self, request_id: String, names: &[String], foreground: bool) -> Launch {
        let tasks = names
            .iter()
            .map(|name| {
                let program = self.plan.of(name);
                let (digest, _) = context_of(name, &Progress::default());
                Task {
                    name: Some(name.clone()),
                    stem: "w".into(),
                    token: token_of(u64::try_from(digest).unwrap_or(0)),
                    allowance: Allowance::Exactly(program.allowance),
                    runner: if program.speaks { Runner::Worker } else { Runner::Command },
                    group: program.grouped.then(|| "writers".into()),
                    timeout_ms: program.timeout_ms,
                }
            })
            .collect();
        let (digest, _) = context_of(&names.join(" "), &Progress::default());
        Launch { request_id, digest: Digest(digest), tasks, foreground, attended: false, generation: None, unusable: None }
    }
}
