//! `kill -9` of the broker, of the whole daemon, of the agent and of the lead, at each point of an agent's life; of broker and
//! supervisor also five times in a row.

use roost_tests::real::{Agent, Agents, Home, Lead, Tree, by_name, outcome_of, scripted};
use serde_json::json;

/// Who dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Broker,
    /// Alone: its broker follows by itself, and may do more before.
    Supervisor,
    Daemon,
    Agent,
    Lead,
}

/// Where P stands in that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Its task is pushed and not taken in.
    TaskPushed,
    /// It has the end of its child and has not taken it in.
    EndPushed,
    /// It waits for its child.
    Waiting,
    /// It is asked to park.
    ParkAsked,
    /// It is parked.
    Parked,
    /// It is woken, and has said no hello yet.
    Woken,
    /// It waits in a call.
    InACall,
    /// It has settled for the last time and not exited.
    Settled,
}

const MOMENTS: [Moment; 8] = [
    Moment::TaskPushed,
    Moment::EndPushed,
    Moment::Waiting,
    Moment::ParkAsked,
    Moment::Parked,
    Moment::Woken,
    Moment::InACall,
    Moment::Settled,
];

struct Scene<'h> {
    home: &'h Home,
    tree: Tree<'h>,
    agents: Agents<'h>,
    lead: Option<Lead>,
    p: Option<Agent>,
    kid: Option<Agent>,
}

impl<'h> Scene<'h> {
    fn new(home: &'h Home) -> Self {
        let tree = Tree::open(home, &["--cap", "1", "--set", "settle_to_exit=1m"]);
        let mut agents = Agents::new(home);
        let lead = Some(Lead::new(home, &tree));
        let p = Some(agents.launch(&tree, "P", 1));
        Self { home, tree, agents, lead, p, kid: None }
    }

    fn p(&mut self) -> &mut Agent {
        self.p.as_mut().expect("P has a process")
    }

    fn reach(&mut self, moment: Moment) {
        self.p().does(&json!("hello"));
        if moment == Moment::TaskPushed {
            self.p().does(&json!({"take": {"ack": false}}));
            return;
        }
        self.p().take();
        if moment == Moment::Settled {
            assert_eq!(self.p().settle("done"), "exit");
            return;
        }
        let kid = self.agents.task("kid");
        self.p().launch(&json!([kid]));
        if moment == Moment::InACall {
            self.p().does(&json!({"send": ["wait", {"request_id": "w", "names": ["kid"]}]}));
        } else {
            assert_eq!(self.p().settle("asked"), "wait");
        }
        if moment == Moment::Waiting {
            // Nobody needs the slot.
            self.tree.roost(["cap", "2"]).run().ok();
            self.begin_kid();
            return;
        }
        self.p().await_note("park");
        if [Moment::ParkAsked, Moment::InACall].contains(&moment) {
            return;
        }
        assert_eq!(self.p().call("park_ready", json!({"context": {"bytes": "0"}})).unwrap()["parked"], true);
        self.p.take().expect("P").exit(0);
        self.begin_kid();
        if moment == Moment::Parked {
            return;
        }
        self.kid.take().expect("kid").finish("K");
        self.p = Some(self.agents.begins("P"));
        if moment == Moment::EndPushed {
            self.p().does(&json!("hello"));
            self.p().does(&json!({"take": {"ack": false}}));
        }
    }

    fn begin_kid(&mut self) {
        let mut kid = self.agents.begins("kid");
        kid.begin();
        self.kid = Some(kid);
    }

    fn strike(&mut self, victim: Victim) {
        match victim {
            Victim::Broker => self.home.kill_broker(),
            Victim::Supervisor => {
                self.home.kill_supervisor();
                self.home.roost(["daemon", "start"]).run().ok();
            }
            Victim::Daemon => {
                self.home.kill_daemon();
                self.home.roost(["daemon", "start"]).run().ok();
            }
            Victim::Agent => {
                if let Some(mut agent) = self.p.take().or_else(|| self.kid.take()) {
                    agent.order(&json!({"kill": 9}));
                }
            }
            Victim::Lead => {}
        }
        // Its connection is gone in any case, or it goes now.
        self.lead = None;
        self.lead = Some(Lead::new(self.home, &self.tree));
    }

    /// Whoever lives goes on: P to its answer, its child before it.
    fn go_on(&mut self, moment: Moment) {
        match moment {
            Moment::Settled => self.p.take().expect("P").exit(0),
            Moment::TaskPushed => {
                self.p().does(&json!("hello"));
                self.p().take();
                self.p.take().expect("P").finish("done");
            }
            Moment::EndPushed | Moment::Woken => self.take_the_end(),
            Moment::Waiting => {
                self.p().does(&json!("hello"));
                self.kid.take().expect("kid").finish("K");
                assert_eq!(self.p().texts(), ["K"]);
                self.p.take().expect("P").finish("done");
            }
            Moment::ParkAsked | Moment::InACall => {
                // Over its new connection it is told again, a moment after it was asked for the first time.
                self.p().does(&json!("hello"));
                if moment == Moment::InACall {
                    self.p().does(&json!({"send": ["wait", {"request_id": "w", "names": ["kid"]}]}));
                }
                self.p.take().expect("P").park();
                self.begin_kid();
                self.kid.take().expect("kid").finish("K");
                self.p = Some(self.agents.begins("P"));
                if moment == Moment::InACall {
                    let welcome = self.p().does(&json!("hello"));
                    assert_eq!(welcome["worker"]["continues"], "w", "{welcome}");
                    let waited = self.p().call("wait", json!({"request_id": "w", "names": ["kid"]})).unwrap();
                    assert_eq!(waited["ended"][0]["name"], "kid");
                    self.p.take().expect("P").finish("done");
                } else {
                    self.take_the_end();
                }
            }
            Moment::Parked => {
                self.kid.take().expect("kid").finish("K");
                self.p = Some(self.agents.begins("P"));
                self.take_the_end();
            }
        }
    }

    fn take_the_end(&mut self) {
        self.p().does(&json!("hello"));
        assert_eq!(self.p().texts(), ["K"]);
        self.p.take().expect("P").finish("done");
    }
}

/// What P comes to when its own process is killed there. One that had not begun to answer is started once more.
fn of_a_killed_agent(moment: Moment) -> &'static str {
    match moment {
        Moment::Settled => "completed",
        // A waiting one that dies was parked by accident: its context is there.
        Moment::Waiting | Moment::ParkAsked => "completed",
        // It is the child that dies; its parent hears of it and goes on.
        Moment::Parked => "completed",
        // A start that came to nothing is tried again.
        Moment::Woken => "completed",
        Moment::TaskPushed | Moment::EndPushed | Moment::InACall => "crash",
    }
}

fn cell(moment: Moment, victim: Victim, strikes: usize) {
    let home = Home::new();
    let mut scene = Scene::new(&home);
    scene.reach(moment);
    (0..strikes).for_each(|_| scene.strike(victim));
    if victim == Victim::Agent {
        if [Moment::Waiting, Moment::ParkAsked].contains(&moment) {
            let is_clear = |status: &serde_json::Value| {
                ["parked", "wake_ready", "waking", "ended"].iter().any(|state| by_name(status, "P")["state"] == *state)
            };
            let status = scene.tree.until("what became of P", is_clear);
            if let Some(kid) = scene.kid.take().filter(|_| by_name(&status, "P")["state"] == "parked") {
                kid.finish("K");
            }
        }
        // Its next process, where there is one, answers at once.
        while let Some(mut next) = next_of(&mut scene) {
            next.does(&json!("hello"));
            next.take();
            let name = next.name.clone();
            if next.settle(&format!("{name} again")) == "exit" {
                next.exit(0);
            } else {
                scene.p = Some(next);
            }
        }
    } else {
        scene.go_on(moment);
    }
    let mut lead = scene.lead.take().expect("a lead");
    let end = lead.end_of("P");
    if victim == Victim::Agent {
        assert_eq!(outcome_of(&end), of_a_killed_agent(moment), "{moment:?}: {end}");
    } else {
        assert_eq!((outcome_of(&end), &end["answer"]), ("completed", &json!("done")), "{moment:?} {victim:?}: {end}");
    }
    // Told once: to nobody a second time, and nothing is left.
    assert_eq!(lead.told(), [end["execution"].clone()], "{moment:?} {victim:?}");
    assert_eq!(lead.heard(), Vec::<serde_json::Value>::new(), "{moment:?} {victim:?}");
    let mut next = Lead::new(&home, &scene.tree);
    assert_eq!(next.heard(), Vec::<serde_json::Value>::new(), "{moment:?} {victim:?}");
    assert_eq!(next.owed(), Vec::<serde_json::Value>::new(), "{moment:?} {victim:?}");
    let result = scene.tree.result("P");
    assert_eq!((&result["outcome"], &result["answer"]), (&end["outcome"], &end["answer"]), "{moment:?} {victim:?}");
    let status = scene.tree.status();
    assert_eq!((status["trees"][0]["live"].as_u64(), home.workers().len()), (Some(0), 0), "{moment:?} {victim:?}");
}

/// The next process that begins after a kill, if P has not ended instead.
fn next_of(scene: &mut Scene<'_>) -> Option<Agent> {
    scene.agents.begins_unless(&scene.tree, |status| outcome_of(by_name(status, "P")) != "none")
}

fn all_moments(victim: Victim) {
    each(&MOMENTS, victim, 1);
}

fn each(moments: &[Moment], victim: Victim, strikes: usize) {
    std::thread::scope(|threads| {
        let cells: Vec<_> = moments.iter().map(|moment| (*moment, threads.spawn(move || cell(*moment, victim, strikes)))).collect();
        let failed: Vec<Moment> = cells.into_iter().filter_map(|(moment, cell)| cell.join().is_err().then_some(moment)).collect();
        assert!(failed.is_empty(), "{victim:?} killed {strikes} times: {failed:?}");
    });
}

#[test]
fn a_broker_that_dies_at_any_moment_is_a_pause() {
    all_moments(Victim::Broker);
}

#[test]
fn a_daemon_that_dies_at_any_moment_is_a_pause() {
    all_moments(Victim::Daemon);
}

#[test]
fn a_supervisor_that_dies_alone_at_any_moment_is_a_pause() {
    all_moments(Victim::Supervisor);
}

// What was pushed and not taken in is pushed by each successor, and who waits is waited for by each.
#[test]
fn brokers_and_supervisors_that_die_five_times_in_a_row_are_a_pause() {
    for victim in [Victim::Broker, Victim::Supervisor] {
        each(&[Moment::EndPushed, Moment::Waiting], victim, 5);
    }
}

#[test]
fn a_lead_that_dies_at_any_moment_is_told_when_it_is_back() {
    all_moments(Victim::Lead);
}

#[test]
fn an_agent_that_dies_at_any_moment_has_one_outcome() {
    all_moments(Victim::Agent);
}

// It holds the other end of the agent's standard input, and dies without the word that makes an end an order.
#[test]
fn an_agent_in_the_middle_of_a_turn_outlives_its_supervisor() {
    let home = Home::new();
    let (tree, mut gate) = (Tree::open(&home, &[]), home.fifo("events"));
    let script = json!(["hello", "take", {"say": "in"}, "take", {"settle": {"answer": "went on"}}]);
    tree.launch(json!([scripted(&home, "P", &script)]));
    assert_eq!(gate.line(), "P in");
    home.kill_daemon();
    home.roost(["daemon", "start"]).run().ok();
    Lead::new(&home, &tree).call("message", json!({"request_id": "m", "name": "P", "text": "on"})).unwrap();
    assert_eq!(tree.answer("P"), "went on");
    assert_eq!(tree.worker("P")["epoch"], 1);
}
