//! One cell: a state, a victim, how often. And what may become of whom in it.

use std::fmt;

use crate::proof;
use crate::scene::Scene;
use crate::strike::strike;

/// Where the subject stands when the victim is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Queued,
    Starting,
    Running,
    /// Inside of `roost wait`, its slot lent to its child.
    Waiting,
    /// Its park is recorded, its process is held before its exit.
    Parking,
    Parked,
    WakeReady,
    Waking,
    Stopping,
    /// It has ended and its lead was not told.
    Ended,
    /// It was woken with the item and runs.
    Delivered,
}

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    Broker,
    Supervisor,
    /// The subject's process; where it has none, the process on which its state depends.
    Worker,
    /// The client of the lead that waits for the subject.
    Client,
    All,
}

/// A part in the play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Subject,
    /// Its child.
    Kid,
    /// Another worker of the root, that holds a slot.
    Holder,
}

#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub state: State,
    pub victim: Victim,
    pub times: usize,
}

const STATES: [State; 11] = [
    State::Queued,
    State::Starting,
    State::Running,
    State::Waiting,
    State::Parking,
    State::Parked,
    State::WakeReady,
    State::Waking,
    State::Stopping,
    State::Ended,
    State::Delivered,
];
const VICTIMS: [Victim; 5] = [Victim::Client, Victim::Broker, Victim::Worker, Victim::Supervisor, Victim::All];

impl Cell {
    pub fn all() -> impl Iterator<Item = Cell> {
        let of = |times| STATES.into_iter().flat_map(move |state| VICTIMS.map(|victim| Cell { state, victim, times }));
        [1, 5].into_iter().flat_map(of)
    }

    pub fn run(self) {
        let home = roost_tests::real::Home::new();
        let mut scene = Scene::open(&home, self);
        for time in 0..self.times {
            // A kill that leaves the state as it was is repeated in it; else it is brought about again, with others.
            if time == 0 || !self.survives() {
                scene.finish_round();
                scene.begin_round();
            }
            strike(&mut scene);
        }
        scene.finish_round();
        proof::check(&scene);
    }

    /// Whether the subject is still in the state after the kill.
    fn survives(self) -> bool {
        match self.victim {
            Victim::Worker | Victim::All => false,
            Victim::Client => self.state != State::Ended,
            Victim::Broker | Victim::Supervisor => !matches!(self.state, State::Starting | State::Waking),
        }
    }

    /// How the worker in this role may end.
    pub fn outcomes(self, role: Role) -> &'static [&'static str] {
        let Self { state, victim, .. } = self;
        let lives = lives(state, role);
        match (victim, state, role) {
            (_, State::Stopping, Role::Subject) => &["stopped"],
            // It has parked: that its process is killed instead of leaving by itself changes nothing.
            (_, State::Parking, Role::Subject) => &["completed"],
            (Victim::Broker | Victim::Client, _, _) => &["completed"],
            // Nobody saw the exit of a process that was adopted.
            (Victim::Supervisor, _, _) if lives => &["lost"],
            // Its lead is lost as well, and which of the two is found out first is open.
            (Victim::All, State::Waiting, Role::Kid) => &["lost", "parent_failed"],
            (Victim::All, _, _) if lives => &["lost"],
            (Victim::Worker, State::Waiting, Role::Kid) => &["parent_failed"],
            (Victim::Worker, State::Starting | State::Waking, Role::Subject) => &["crash"],
            (Victim::Worker, _, _) if role == target(state) => &["crash"],
            (Victim::Supervisor | Victim::All | Victim::Worker, _, _) => &["completed"],
        }
    }
}

/// Whether it has a process in this state.
fn lives(state: State, role: Role) -> bool {
    match role {
        Role::Subject => matches!(state, State::Running | State::Waiting | State::Parking | State::Stopping | State::Delivered),
        Role::Kid => matches!(state, State::Waiting | State::Parked),
        Role::Holder => true,
    }
}

/// Whose process is killed for the worker.
pub fn target(state: State) -> Role {
    match state {
        State::Queued | State::WakeReady | State::Ended => Role::Holder,
        State::Parked => Role::Kid,
        State::Starting | State::Running | State::Waiting | State::Parking | State::Waking | State::Stopping | State::Delivered => {
            Role::Subject
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/x{}", format!("{:?}", self.state).to_lowercase(), format!("{:?}", self.victim).to_lowercase(), self.times)
    }
}
