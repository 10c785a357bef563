//! Brings a state about, by events alone: named pipes, the cap, a supervisor that is stopped while the broker grants.

use std::collections::BTreeMap;

use roost_tests::real::{DaemonPids, Fifo, Home, Running, Tree, Watched, Wire};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cell::{Cell, Role, State, Victim};

/// What every worker does first: it says which incarnation it is.
const BEGIN: &str = r#"echo "$ROOST_EXECUTION $ROOST_EPOCH ${ROOST_WAKE-0}" >>"$F/began"
"#;

/// Says that it is up, and answers when it is let go.
const PLAIN: &str = r#"echo "up $N" >"$F/events"; read x <"$F/gate-$N"; printf 'answer of %s' "$N""#;

/// The same, and deaf to TERM.
const DEAF: &str = r#"trap '' TERM; echo "up $N" >"$F/events"; while :; do read x <"$F/gate-$N"; done"#;

/// Waits for its child in a call that it repeats when its client was killed.
const WAITING: &str = r#"roost spawn --name "k$R" --env N="k$R" -- sh "$F/plain.sh" >&2 || exit 9
    while :; do roost wait "k$R" >"$F/told-$N" & wait $!; code=$?; [ $code -lt 128 ] && break; done
    [ $code = 0 ] && printf 'answer of %s' "$N""#;

/// Launches a child and parks; woken, it keeps what it was handed and answers when it is let go.
const PARKS: &str = r#"if [ "${ROOST_WAKE-}" = 1 ]; then
        cat >"$F/wake-$ROOST_EXECUTION-$ROOST_EPOCH"; echo "woken $N" >"$F/events"; read x <"$F/gate-$N"; printf 'answer of %s' "$N"; exit
    fi
    roost spawn --name "k$R" --env N="k$R" -- sh "$F/plain.sh" >&2 || exit 9
    echo "ready $N" >"$F/events"; read x <"$F/park-$N"
    "#;

/// One cell in the making.
pub struct Scene<'h> {
    pub home: &'h Home,
    pub cell: Cell,
    pub tree: Tree<'h>,
    pub events: Fifo,
    /// Who plays: name and role, over all rounds.
    pub cast: Vec<(String, Role)>,
    /// What the root's clients were told of the subjects, by name.
    pub told: BTreeMap<String, Vec<Value>>,
    /// The root's client that waits for the subject.
    pub client: Option<Running>,
    /// A client that has asked and does not read the answer.
    pub deaf_client: Option<Wire>,
    /// The supervisor, while it is stopped.
    pub stopped: Option<Watched>,
    pub pids: DaemonPids,
    gates: BTreeMap<String, Fifo>,
    round: usize,
}

impl<'h> Scene<'h> {
    pub fn open(home: &'h Home, cell: Cell) -> Self {
        for (name, script) in [
            ("plain", PLAIN.to_owned()),
            ("deaf", DEAF.to_owned()),
            ("waiting", WAITING.to_owned()),
            ("parks", format!("{PARKS} exec roost park")),
            // Its process stays for a while after the park was recorded. `roost park` wants to be the main process, and takes the
            // leader of a session for it.
            ("parking", format!("{PARKS} setsid -w roost park && echo \"parked $N\" >\"$F/events\"; read x <\"$F/gate-$N\"")),
        ] {
            home.script(&format!("{name}.sh"), &format!("{BEGIN}{script}"));
        }
        let tree = Tree::open(home, &["--cap", "1", "--stop-grace", "2s"]);
        Self {
            home,
            cell,
            events: home.fifo("events"),
            cast: Vec::new(),
            told: BTreeMap::new(),
            client: None,
            deaf_client: None,
            stopped: None,
            pids: home.daemon(),
            gates: BTreeMap::new(),
            round: 0,
            tree,
        }
    }

    /// The name of a role in this round.
    pub fn name(&self, role: Role) -> String {
        let letter = match role {
            Role::Subject => 's',
            Role::Kid => 'k',
            Role::Holder => 'h',
        };
        format!("{letter}{}", self.round)
    }

    /// Brings the state about with new workers.
    pub fn begin_round(&mut self) {
        self.round += 1;
        let (subject, kid, holder) = (self.name(Role::Subject), self.name(Role::Kid), self.name(Role::Holder));
        for gate in [format!("gate-{subject}"), format!("park-{subject}"), format!("gate-{kid}"), format!("gate-{holder}")] {
            let fifo = self.home.fifo(&gate);
            self.gates.insert(gate, fifo);
        }
        match self.cell.state {
            State::Queued => {
                self.launch(Role::Holder, "plain");
                self.expect(&format!("up {holder}"));
                self.launch(Role::Subject, "plain");
                self.tree.until_state(&subject, "queued");
            }
            State::Starting => {
                self.stop_supervisor();
                self.launch(Role::Subject, "plain");
                self.tree.until_state(&subject, "starting");
            }
            State::Running => {
                self.launch(Role::Subject, "plain");
                self.expect(&format!("up {subject}"));
            }
            State::Waiting => {
                self.launch(Role::Subject, "waiting");
                self.cast.push((kid.clone(), Role::Kid));
                // At cap 1 the child runs only because its lead lends its slot.
                self.expect(&format!("up {kid}"));
                self.tree.until_state(&subject, "blocked");
            }
            State::Parking => {
                self.launch_parking("parking");
                self.release(&format!("park-{subject}"));
                self.expect(&format!("parked {subject}"));
                self.tree.until_state(&subject, "parking");
            }
            State::Parked => {
                self.launch_parking("parks");
                self.release(&format!("park-{subject}"));
                self.expect(&format!("up {kid}"));
                self.tree.until_state(&subject, "parked");
            }
            State::WakeReady | State::Waking => {
                self.launch_parking("parks");
                // Behind the child in the queue, and before the wake.
                self.launch(Role::Holder, "plain");
                self.release(&format!("park-{subject}"));
                self.expect(&format!("up {kid}"));
                self.release(&format!("gate-{kid}"));
                self.expect(&format!("up {holder}"));
                self.tree.until_state(&subject, "wake_ready");
                if self.cell.state == State::Waking {
                    self.stop_supervisor();
                    self.cap(2);
                    self.tree.until_state(&subject, "waking");
                }
            }
            State::Stopping => {
                self.launch(Role::Subject, "deaf");
                self.expect(&format!("up {subject}"));
                self.client = Some(self.tree.roost(["stop", &subject, "--json"]).start());
                self.tree.until_state(&subject, "stopping");
            }
            State::Ended => {
                self.cap(2);
                self.launch(Role::Holder, "plain");
                self.expect(&format!("up {holder}"));
                self.launch(Role::Subject, "plain");
                self.expect(&format!("up {subject}"));
                if self.cell.victim == Victim::Client {
                    self.ask_and_do_not_listen(&subject);
                }
                self.release(&format!("gate-{subject}"));
                self.tree.until_state(&subject, "ended");
            }
            State::Delivered => {
                self.launch_parking("parks");
                self.release(&format!("park-{subject}"));
                self.expect(&format!("up {kid}"));
                self.release(&format!("gate-{kid}"));
                self.expect(&format!("woken {subject}"));
            }
        }
        if !matches!(self.cell.state, State::Stopping | State::Ended) {
            self.start_client();
        }
    }

    /// Lets everybody go, waits for all ends, and hears what the root's client is told.
    pub fn finish_round(&mut self) {
        if self.round == 0 {
            return;
        }
        self.go_on();
        for gate in self.gates.values_mut() {
            gate.release(4);
        }
        if self.cell.state == State::Stopping
            && let Some(stop) = self.client.take()
        {
            let reply = stop.end().ok().json();
            assert!(["stopped", "already_settled"].map(Value::from).contains(&reply["workers"][0]["result"]), "{reply}");
        }
        if self.client.is_none() {
            self.start_client();
        }
        let subject = self.name(Role::Subject);
        let told = self.client.take().map(|client| client.end().json()).unwrap();
        self.told.entry(subject).or_default().push(told);
        self.tree.until("everybody's end", |status| {
            status["workers"].as_array().is_some_and(|workers| workers.iter().all(|worker| worker["state"] == "ended"))
        });
        self.cap(1);
        self.gates.clear();
    }

    /// The root waits for the subject.
    pub fn start_client(&mut self) {
        let subject = self.name(Role::Subject);
        self.client = Some(self.tree.roost(["result", &subject, "--wait", "--json"]).start());
    }

    /// Lets the supervisor go on.
    pub fn go_on(&mut self) {
        if let Some(supervisor) = self.stopped.take() {
            supervisor.signal(Signal::CONT);
        }
    }

    /// The next event of this round must be this. Those of earlier rounds that nobody waited for are passed over.
    #[track_caller]
    pub fn expect(&mut self, event: &str) {
        let round = self.round.to_string();
        loop {
            let line = self.events.line();
            if line.trim_start_matches(|c: char| !c.is_ascii_digit()) == round {
                assert_eq!(line, event, "{}", self.cell);
                return;
            }
        }
    }

    fn stop_supervisor(&mut self) {
        self.pids = self.home.daemon();
        let supervisor = Watched::new(self.pids.supervisor);
        supervisor.signal(Signal::STOP);
        self.stopped = Some(supervisor);
    }

    fn launch_parking(&mut self, script: &str) {
        let (subject, kid) = (self.name(Role::Subject), self.name(Role::Kid));
        self.launch(Role::Subject, script);
        self.cast.push((kid, Role::Kid));
        self.expect(&format!("ready {subject}"));
    }

    fn launch(&mut self, role: Role, script: &str) {
        let name = self.name(role);
        let file = self.home.file(&format!("{script}.sh"));
        self.tree
            .roost(["spawn", "--name", &name, "--descendants", "1", "--env", &format!("N={name}")])
            .args(["--env", &format!("R={}", self.round), "--", "sh"])
            .arg(file)
            .run()
            .ok();
        self.cast.push((name, role));
    }

    fn cap(&self, cap: u32) {
        self.tree.roost(["cap", &cap.to_string()]).run().ok();
    }

    fn release(&mut self, gate: &str) {
        self.gates.get_mut(gate).unwrap().release(1);
    }

    /// A client that waits for the subject and never reads the answer. That the next call was answered says that the broker has
    /// the first.
    fn ask_and_do_not_listen(&mut self, subject: &str) {
        let mut wire = self.tree.wire();
        wire.send("result", &json!({"name": subject, "wait": true}));
        wire.call("status", &json!({})).unwrap();
        self.deaf_client = Some(wire);
    }
}
