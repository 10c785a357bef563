//! The pieces together: what may happen next, and its happening. Every action is followed by the checks.

mod link;
mod look;

use std::collections::BTreeMap;

use roost_core::broker::{Broker, Outcome as Stepped};
use roost_core::command::{CallId, Caller, Command};
use roost_core::effect::{Effect, Reply};
use roost_core::event::{Event, Settings};
use roost_core::rejection::Rejection;
use roost_core::state::State;
use roost_core::time::{Mono, Now};
use roost_proto::id::{Incarnation, TreeId, WorkerId};
use roost_proto::link::ExitStatus;

use super::journal::Journal;
use super::kernel::{Proc, Supervisor};
use super::model::Model;
use super::plan::Plan;
use super::presence::{Ghost, Presence};
use super::script::{Progress, Script, Who};
use super::{Checked, check};

/// One thing that may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    /// The supervisor carries out its next order.
    Order,
    /// The broker takes the supervisor's next report.
    Report,
    /// A client does its next thing; where there is a choice, this one.
    Act(Who, u8),
    /// The broker notices that a client is gone.
    Hangup,
    /// What the steps recorded becomes durable, and their effects are released.
    Commit,
    /// Time passes to the broker's next deadline.
    Deadline,
    /// So many milliseconds pass, unless a deadline comes first.
    Pass(u64),
    /// The broker dies; answers under way arrive or do not.
    CrashBroker { answers_arrive: bool },
    /// The broker dies when what its steps recorded is on disk and nobody has heard of it.
    CrashAfterCommit,
    /// The supervisor dies, and the broker with it.
    CrashSupervisor,
    /// A process dies by itself.
    Die(Incarnation),
    /// What a process left behind is gone.
    Emptied(Incarnation),
    /// A client gives up its call and goes on.
    Abandon(Who),
    /// Somebody claims to be this process, in one of several ways.
    Impostor(Incarnation, u8),
    /// Another connection takes the lease of a root.
    Window(usize),
    /// An old window acknowledges something, or is closed.
    Ghost(usize, bool),
    /// The connection of a client is lost.
    Cut(Who),
    /// A root leaves.
    Desert(usize),
    /// It comes back.
    ComeBack(usize),
    /// The daemon is told to leave, within so many milliseconds.
    Drain(u64),
    /// Somebody resumes a paused tree.
    Resume(TreeId),
}

#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Reply(Box<Reply>),
    Refused(Rejection),
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) now: u64,
    pub(crate) broker: Broker,
    pub(crate) journal: Journal,
    /// Effects that wait for the commit.
    held: Vec<Effect>,
    pub(crate) supervisor: Supervisor,
    pub(crate) roots: Vec<Script>,
    pub(crate) settings: Vec<Settings>,
    pub(crate) contexts: BTreeMap<u128, Progress>,
    pub(crate) answers: BTreeMap<u64, Answer>,
    /// Calls whose client is gone.
    pub(crate) lost: Vec<CallId>,
    /// Counts the lives of the broker.
    pub(crate) life: u64,
    pub(crate) model: Model,
    /// The same book-keeping, up to what is not durable yet.
    pub(crate) live: Model,
    pub(crate) plan: Plan,
    pub(crate) calls: u64,
    /// Number calls per caller, so that the order of callers leaves no trace in the state.
    pub(crate) calls_by_caller: bool,
    pub(crate) calling: BTreeMap<u64, Who>,
    /// Where the roots are.
    pub(crate) presences: Vec<Presence>,
    /// Old windows of the roots.
    pub(crate) ghosts: Vec<Ghost>,
    /// When each worker that speaks showed a sign of life last.
    pub(crate) pulses: BTreeMap<WorkerId, u64>,
    /// The broker has said that the daemon may leave.
    pub(crate) leaving: bool,
    pids: u32,
    cap_of_all: Option<u32>,
    last_step: Option<u64>,
    pub(crate) steps: u64,
    pub(crate) trace: bool,
    /// What happened how often.
    pub(crate) seen: BTreeMap<&'static str, u64>,
}

impl World {
    pub(crate) fn new(plan: Plan, settings: Vec<Settings>, cap_of_all: Option<u32>) -> Checked<Self> {
        let trees = settings.len();
        let roots = (0..trees)
            .map(|index| {
                let name = format!("r{index}");
                let ops = plan.fixed.get(&name).map_or_else(|| plan.root(&name), |program| program.ops.clone());
                Script::new(name, ops, Progress::default())
            })
            .collect();
        let mut world = Self {
            now: 1_000,
            broker: Broker::restore(State::default(), cap_of_all),
            journal: Journal::default(),
            held: Vec::new(),
            supervisor: Supervisor::default(),
            roots,
            settings,
            contexts: BTreeMap::new(),
            answers: BTreeMap::new(),
            lost: Vec::new(),
            life: 0,
            model: Model::default(),
            live: Model::default(),
            ghosts: Vec::new(),
            plan,
            calls: 0,
            calls_by_caller: false,
            calling: BTreeMap::new(),
            presences: vec![Presence::default(); trees],
            pulses: BTreeMap::new(),
            leaving: false,
            pids: 100,
            cap_of_all,
            last_step: None,
            steps: 0,
            trace: false,
            seen: BTreeMap::new(),
        };
        world.step(Command::Reconcile { children: Vec::new() })?;
        Ok(world)
    }

    pub(crate) fn state(&self) -> &State {
        self.broker.state()
    }

    pub(crate) fn procs(&self) -> impl Iterator<Item = (Incarnation, &Proc)> + '_ {
        self.supervisor.procs.iter().map(|(incarnation, proc)| (*incarnation, proc))
    }

    pub(crate) fn moment(&self) -> Now {
        Now { mono: Mono(self.now), wall_ms: 1_700_000_000_000 + self.now }
    }

    pub(crate) fn perform(&mut self, action: Action) -> Checked {
        if self.trace && action != Action::Commit {
            println!("{:>7} ms  {action:?}", self.now);
        }
        match action {
            Action::Order => self.carry_out()?,
            Action::Report => {
                if let Some(report) = self.supervisor.reports.pop_front() {
                    self.step(report)?;
                }
            }
            Action::Act(who, choice) => self.act(who, choice)?,
            Action::Hangup => {
                let calls = std::mem::take(&mut self.lost);
                self.step(Command::Abandon { calls })?;
            }
            Action::Commit => {
                self.commit()?;
                if self.leaving {
                    self.next_daemon()?;
                }
            }
            Action::Deadline => {
                if let Some(at) = self.broker.next_deadline() {
                    self.now = self.now.max(at.0);
                    self.step(Command::Tick)?;
                }
            }
            Action::Pass(ms) => {
                self.now += ms;
                if self.broker.next_deadline().is_some_and(|at| at.0 <= self.now) {
                    self.step(Command::Tick)?;
                }
            }
            Action::CrashBroker { answers_arrive } => self.crash_broker(answers_arrive)?,
            Action::CrashAfterCommit => {
                self.commit_and_forget()?;
                self.crash_broker(false)?;
            }
            Action::CrashSupervisor => {
                self.supervisor.crash();
                self.note("supervisor crashes");
                self.crash_broker(false)?;
            }
            Action::Die(incarnation) => self.end_process(incarnation, ExitStatus::Signal(11), false),
            Action::Emptied(incarnation) => self.supervisor.emptied(incarnation),
            Action::Abandon(who) => self.abandon(who),
            Action::Window(index) => self.window(index)?,
            Action::Ghost(number, leaves) => self.ghost(number, leaves)?,
            Action::Cut(who) => self.cut(who)?,
            Action::Desert(index) => self.desert(index)?,
            Action::ComeBack(index) => self.come_back(index)?,
            Action::Drain(timeout_ms) => self.drain(timeout_ms)?,
            Action::Impostor(of, kind) => self.impostor(of, kind)?,
            Action::Resume(tree) => {
                self.calls += 1;
                self.step(Command::Pause { call: CallId(self.calls), caller: Caller::Root(tree), paused: false })?;
            }
        }
        check::world(self)
    }

    pub(crate) fn note(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    /// One step of the broker.
    pub(crate) fn step(&mut self, command: Command) -> Checked {
        self.steps += 1;
        let before: BTreeMap<TreeId, u32> = self.state().trees.values().map(|tree| (tree.id, tree.counts.live)).collect();
        let is_close = matches!(command, Command::Close { .. });
        let asked = command.clone();
        let told = self.trace.then(|| format!("{command:?}"));
        let outcome = self.broker.step(self.moment(), command).map_err(|error| format!("the broker stops: {error}"))?;
        if self.trace {
            println!("            {}", told.unwrap_or_default());
            outcome.records.iter().for_each(|record| println!("              #{} {:?}", record.seq, record.event));
            outcome.effects.iter().for_each(|effect| println!("              -> {effect:?}"));
        }
        let same_moment = self.last_step == Some(self.now);
        self.last_step = Some(self.now);
        check::step(self, &outcome, &before, same_moment)?;
        check::told_before(self, &outcome)?;
        check::looked(self, &outcome)?;
        check::turns(&asked, &outcome)?;
        check::spoken(self, &asked, &outcome)?;
        if !is_close {
            outcome.records.iter().try_for_each(|record| self.closes_rightly(record))?;
            if outcome.records.iter().any(|record| matches!(record.event, Event::TreeClosed { .. })) {
                self.note("deserted trees close");
            }
        }
        for record in &outcome.records {
            if let Some(worker) = check::shows_life(&record.event) {
                self.pulses.insert(worker, self.now);
            }
        }
        self.take(outcome);
        Ok(())
    }

    /// What a step came to waits for the commit.
    pub(crate) fn take(&mut self, outcome: Stepped) {
        self.journal.append(outcome.records, outcome.stream);
        self.held.extend(outcome.effects);
    }

    fn commit(&mut self) -> Checked {
        self.commit_steps(usize::MAX)?;
        while self.journal.commit_next()?.is_some() {}
        if self.journal.replica() != self.broker.state() {
            return Err("the replay of the journal gives another state than the live one (I15)".into());
        }
        self.model.compare(self.journal.replica())?;
        for effect in std::mem::take(&mut self.held) {
            self.release(effect)?;
        }
        Ok(())
    }

    /// What the steps recorded becomes durable, and nobody hears of it.
    pub(crate) fn commit_and_forget(&mut self) -> Checked {
        self.held.clear();
        self.commit()
    }

    /// The first of these steps become durable, as if the commit had been for them alone, and nobody hears of it.
    pub(crate) fn commit_steps_and_forget(&mut self, steps: usize) -> Checked {
        self.held.clear();
        self.commit_steps(steps)?;
        self.model.compare(self.journal.replica())
    }

    fn commit_steps(&mut self, steps: usize) -> Checked {
        let until = self.journal.up_to(steps);
        while self.journal.durable().len() < until {
            if let Some(record) = self.journal.commit_next()? {
                self.model.observe(&record)?;
            }
        }
        for (tree, event) in self.journal.told(steps) {
            self.model.told(tree, &event)?;
        }
        Ok(())
    }

    pub(crate) fn script(&self, who: Who) -> Option<&Script> {
        match who {
            Who::Root(index) => self.roots.get(index),
            Who::Proc(incarnation) => self.supervisor.procs.get(&incarnation).map(|proc| &proc.script),
        }
    }

    pub(crate) fn script_mut(&mut self, who: Who) -> Option<&mut Script> {
        match who {
            Who::Root(index) => self.roots.get_mut(index),
            Who::Proc(incarnation) => self.supervisor.procs.get_mut(&incarnation).map(|proc| &mut proc.script),
        }
    }
}
