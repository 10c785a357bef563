//! Processes, and the supervisor's table of them as `proto/src/link.rs` describes it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use roost_core::command::Command;
use roost_core::effect::{Effect, Spawn};
use roost_proto::id::{Incarnation, WorkerId};
use roost_proto::link::{ChildReport, ExitStatus, ProcessIdentity, Signal};

use super::Checked;
use super::plan::Program;
use super::script::Script;

/// A process of a worker, as the kernel sees it.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Proc {
    pub(crate) worker: WorkerId,
    pub(crate) pid: u32,
    /// The main process is alive.
    pub(crate) main: bool,
    /// What it left behind is alive.
    pub(crate) leftovers: bool,
    pub(crate) end_leftovers: bool,
    /// It ends before it has said anything.
    pub(crate) stillborn: bool,
    pub(crate) termed: bool,
    /// Its standard input is at its end.
    pub(crate) closed: bool,
    pub(crate) program: Program,
    pub(crate) script: Script,
}

impl Proc {
    /// Whether it counts against the cap in the kernel's view.
    pub(crate) fn counts(&self) -> bool {
        self.main || (self.leftovers && self.end_leftovers)
    }
}

/// What the broker has ordered, on its way to the supervisor.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    Spawn(Box<Spawn>),
    Signal(Incarnation, Signal),
    Forget(Incarnation),
    Adopt(Incarnation),
}

impl Order {
    pub(crate) fn of(effect: &Effect) -> Option<Self> {
        if let Effect::Spawn(spawn) = effect {
            Some(Self::Spawn(spawn.clone()))
        } else if let Effect::Signal { incarnation, signal } = effect {
            Some(Self::Signal(*incarnation, *signal))
        } else if let Effect::Forget { incarnation } = effect {
            Some(Self::Forget(*incarnation))
        } else if let Effect::Adopt { incarnation, .. } = effect {
            Some(Self::Adopt(*incarnation))
        } else {
            None
        }
    }
}

/// A child in the table.
#[derive(Debug, Clone, Copy, Hash)]
struct Child {
    process: ProcessIdentity,
    exited: Option<ExitStatus>,
    /// It was started by an earlier supervisor: nobody sees how it exits.
    adopted: bool,
}

/// The supervisor; the processes themselves outlive it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Supervisor {
    children: BTreeMap<Incarnation, Child>,
    pub(crate) orders: VecDeque<Order>,
    pub(crate) reports: VecDeque<Command>,
    /// Standard output files: they outlive every supervisor.
    started: BTreeSet<Incarnation>,
    pub(crate) procs: BTreeMap<Incarnation, Proc>,
}

impl Supervisor {
    /// What it says of its children in its hello.
    pub(crate) fn hello(&self) -> Vec<ChildReport> {
        let alive = |incarnation| self.procs.get(incarnation).is_some_and(Proc::counts);
        self.children
            .iter()
            .map(|(incarnation, child)| ChildReport {
                incarnation: *incarnation,
                process: child.process,
                exited: child.exited,
                alive: alive(incarnation),
            })
            .collect()
    }

    /// It dies: the table and what was under way are lost.
    pub(crate) fn crash(&mut self) {
        self.children.clear();
        self.orders.clear();
        self.reports.clear();
    }

    /// Whether it holds this child already.
    pub(crate) fn holds(&self, incarnation: Incarnation) -> bool {
        self.children.contains_key(&incarnation)
    }

    /// Whether the next report is of a start.
    pub(crate) fn next_is_start(&self) -> bool {
        matches!(self.reports.front(), Some(Command::Spawned { .. } | Command::NeverStarted { .. }))
    }

    /// A process starts.
    pub(crate) fn start(&mut self, incarnation: Incarnation, proc: Proc) -> Checked {
        if !self.started.insert(incarnation) {
            return Err(format!("{incarnation} is started twice (I5)"));
        }
        let twin = self.procs.iter().find(|(other, proc)| other.execution == incarnation.execution && proc.main);
        if let Some((other, _)) = twin {
            return Err(format!("{incarnation} is started while {other} is alive (I5)"));
        }
        let process = identity(proc.pid);
        self.children.insert(incarnation, Child { process, exited: None, adopted: false });
        self.procs.insert(incarnation, proc);
        self.reports.push_back(Command::Spawned { incarnation, process });
        Ok(())
    }

    /// A main process ends.
    pub(crate) fn exit(&mut self, incarnation: Incarnation, status: ExitStatus) {
        let Some(proc) = self.procs.get_mut(&incarnation) else { return };
        proc.main = false;
        let leftovers = proc.leftovers;
        if let Some(child) = self.children.get_mut(&incarnation) {
            let status = if child.adopted { ExitStatus::Unknown } else { status };
            child.exited = Some(status);
            self.reports.push_back(Command::Exited { incarnation, status, leftovers: left_by(leftovers) });
        }
        self.bury(incarnation);
    }

    /// What a main process left behind is gone.
    pub(crate) fn emptied(&mut self, incarnation: Incarnation) {
        let Some(proc) = self.procs.get_mut(&incarnation).filter(|proc| proc.leftovers) else { return };
        proc.leftovers = false;
        if !proc.main && self.children.contains_key(&incarnation) {
            self.reports.push_back(Command::Emptied { incarnation });
        }
        self.bury(incarnation);
    }

    fn bury(&mut self, incarnation: Incarnation) {
        if self.procs.get(&incarnation).is_some_and(|proc| !proc.main && !proc.leftovers) {
            self.procs.remove(&incarnation);
        }
    }

    /// A signal reaches everything of an incarnation.
    pub(crate) fn signal(&mut self, incarnation: Incarnation, signal: Signal) {
        let Some(proc) = self.procs.get_mut(&incarnation) else { return };
        match signal {
            Signal::CloseStdin => proc.closed = true,
            Signal::Term => proc.termed = true,
            Signal::Kill => {
                let main = proc.main;
                self.emptied(incarnation);
                if main {
                    self.exit(incarnation, ExitStatus::Signal(9));
                }
            }
        }
    }

    pub(crate) fn forget(&mut self, incarnation: Incarnation) {
        self.children.remove(&incarnation);
    }

    /// Finds out about a process that it did not start.
    pub(crate) fn adopt(&mut self, incarnation: Incarnation) {
        let report = match self.procs.get(&incarnation) {
            Some(proc) => {
                let process = identity(proc.pid);
                let exited = if proc.main { None } else { Some(ExitStatus::Unknown) };
                self.children.insert(incarnation, Child { process, exited, adopted: true });
                if proc.main {
                    Command::Spawned { incarnation, process }
                } else {
                    Command::Exited { incarnation, status: ExitStatus::Unknown, leftovers: left_by(proc.leftovers) }
                }
            }
            None if self.started.contains(&incarnation) => {
                Command::Exited { incarnation, status: ExitStatus::Unknown, leftovers: Vec::new() }
            }
            None => Command::NeverStarted { incarnation },
        };
        self.reports.push_back(report);
    }

    /// For the comparison of worlds.
    pub(crate) fn told(&self) -> String {
        format!("{:?}{:?}{:?}{:?}{:?}", self.children, self.procs, self.started, self.orders, self.reports)
    }
}

/// Nobody of these worlds asks who they are.
fn left_by(leftovers: bool) -> Vec<u32> {
    leftovers.then_some(1).into_iter().collect()
}

pub(crate) fn identity(pid: u32) -> ProcessIdentity {
    ProcessIdentity { pid, start_ticks: u64::from(pid) }
}
