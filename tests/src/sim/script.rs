//! A client of the broker that goes through its plan: what it knows, what it has asked, and the commands that its asking makes.

use std::collections::BTreeSet;

use roost_core::command::{Allowance, CallId, Caller, Claim, Command, Launch, Open, Task};
use roost_core::event::{Context, Digest, Place, Settings};
use roost_proto::id::{Incarnation, Token, TreeId, WorkerId};

use super::plan::{Op, Plan};

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
    /// Children whose end it was told.
    pub(crate) known: BTreeSet<WorkerId>,
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
    },
    Read {
        name: String,
        wait: bool,
    },
    Stop {
        names: Vec<String>,
        foreign: bool,
    },
    Cap(u32),
    Park,
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
    /// Settled: waits to be told something.
    Settled,
    /// Has offered its context and waits for the word that it is recorded.
    Ready,
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
}

impl Script {
    pub(crate) fn new(name: String, ops: Vec<Op>, at: Progress) -> Self {
        Self { name, ops, at, tree: None, caller: None, life: u64::MAX, call: None, again: None, mode: Mode::Active, side: Vec::new() }
    }

    pub(crate) fn op(&self) -> Option<&Op> {
        self.ops.get(self.at.pc)
    }

    pub(crate) fn next(&mut self) {
        self.at.pc += 1;
    }

    /// Takes the end of a child in; whether it is news.
    pub(crate) fn learn(&mut self, child: WorkerId) -> bool {
        self.at.known.insert(child)
    }

    /// The name of its n-th child.
    pub(crate) fn child_name(&self, n: usize) -> String {
        format!("{}.{n}", self.name)
    }

    pub(crate) fn fresh_request(&mut self) -> String {
        self.at.requests += 1;
        format!("q{}", self.at.requests)
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
            Ask::Wait { names, any, timeout_ms } => Command::Wait { call, caller, request_id, names, any, timeout_ms },
            Ask::Read { name, wait } => Command::Result { call, caller, tree: None, name, wait, timeout_ms: None },
            Ask::Stop { names, .. } => Command::Stop { call, caller, names, no_wait: false },
            Ask::Cap(cap) => Command::Cap { call, caller, cap: Some(cap) },
            Ask::Park => Command::Park { call, caller, context: context_of(&self.script.name, &self.script.at).1 },
            Ask::Pause(paused) => Command::Pause { call, caller, paused },
            Ask::Interrupt => Command::Interrupt { call, caller, no_wait: false },
            Ask::Close { now } => Command::Close { call, caller, now },
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
                    group: program.grouped.then(|| "writers".into()),
                    timeout_ms: program.timeout_ms,
                }
            })
            .collect();
        let (digest, _) = context_of(&names.join(" "), &Progress::default());
        Launch { request_id, digest: Digest(digest), tasks, foreground, attended: false, generation: None, unusable: None }
    }
}
