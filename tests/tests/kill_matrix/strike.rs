//! The kill, and the sign that everything else goes on.

use roost_tests::real::{Process, Watched, by_name};
use rustix::process::Signal;

use crate::cell::{Role, State, Victim, target};
use crate::scene::Scene;

/// Kills the victim once, and returns when the daemon answers.
pub fn strike(scene: &mut Scene<'_>) {
    match scene.cell.victim {
        Victim::Broker => broker(scene),
        Victim::Supervisor => supervisor(scene),
        Victim::Worker => worker(scene),
        Victim::Client => client(scene),
        Victim::All => all(scene),
    }
}

fn broker(scene: &mut Scene<'_>) {
    let before = scene.home.daemon();
    Watched::new(before.broker).kill();
    scene.go_on();
    let after = scene.home.daemon();
    assert_eq!(after.supervisor, before.supervisor);
    assert_ne!(after.broker, before.broker);
}

fn supervisor(scene: &mut Scene<'_>) {
    let before = scene.home.daemon();
    let (supervisor, broker) = (Watched::new(before.supervisor), Watched::new(before.broker));
    supervisor.kill();
    scene.stopped = None;
    broker.await_end();
    serves_again(scene, before.supervisor);
}

fn all(scene: &mut Scene<'_>) {
    let before = scene.home.daemon();
    let workers: Vec<Watched> = scene.home.workers().values().flatten().filter_map(|process| Watched::try_new(process.pid)).collect();
    let (supervisor, broker) = (Watched::new(before.supervisor), Watched::new(before.broker));
    // First the one who would see the other ends.
    supervisor.kill();
    scene.stopped = None;
    scene.client = None;
    broker.signal(Signal::KILL);
    workers.iter().for_each(Watched::kill);
    broker.await_end();
    serves_again(scene, before.supervisor);
}

/// Any command of the root starts the daemon again.
fn serves_again(scene: &mut Scene<'_>, before: u32) {
    scene.tree.status();
    assert_ne!(scene.home.daemon().supervisor, before);
}

fn worker(scene: &mut Scene<'_>) {
    let name = scene.name(target(scene.cell.state));
    if scene.stopped.is_none() {
        // Its own word may be quicker than the supervisor's.
        let status = scene.tree.until("its process", |status| by_name(status, &name)["pid"].is_u64());
        let pid = u32::try_from(by_name(&status, &name)["pid"].as_u64().unwrap()).unwrap();
        Watched::new(pid).kill();
        // What follows must not overtake the news of it.
        scene.tree.until("the news of the kill", |status| by_name(status, &name)["pid"] != pid);
        return;
    }
    // The broker must not hear of the start before the process is dead: it is stopped while the supervisor goes on.
    let broker = Watched::new(scene.home.daemon().broker);
    broker.signal(Signal::STOP);
    scene.go_on();
    let event = if scene.cell.state == State::Waking { "woken" } else { "up" };
    scene.expect(&format!("{event} {name}"));
    // The holder lives as well: the newest process is the one that has just said so.
    let leaders = leaders(scene);
    let newest = leaders.iter().max_by_key(|process| (process.began, process.pid)).unwrap();
    Watched::new(newest.pid).kill();
    broker.signal(Signal::CONT);
}

/// Processes that lead their session: one per worker.
fn leaders(scene: &Scene<'_>) -> Vec<Process> {
    scene.home.workers().into_values().flatten().filter(|process| process.session == process.pid).collect()
}

fn client(scene: &mut Scene<'_>) {
    match scene.cell.state {
        State::Ended => drop(scene.deaf_client.take()),
        State::Waiting => waiting_client(scene),
        State::Stopping => {
            scene.client = None;
            let subject = scene.name(Role::Subject);
            scene.client = Some(scene.tree.roost(["stop", &subject, "--json"]).start());
        }
        State::Queued
        | State::Starting
        | State::Running
        | State::Parking
        | State::Parked
        | State::WakeReady
        | State::Waking
        | State::Delivered => {
            // Dropping it kills it and waits for its end.
            scene.client = None;
            scene.start_client();
        }
    }
}

/// The subject is the lead here, and its client the `roost wait` that it runs. Its script runs another.
fn waiting_client(scene: &mut Scene<'_>) {
    let subject = scene.name(Role::Subject);
    let status = scene.tree.until_state(&subject, "blocked");
    let lead = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
    let waits = |process: &Process| process.parent == lead && process.arguments().get(1).is_some_and(|word| word == b"wait");
    let clients: Vec<Process> = scene.home.workers().into_values().flatten().filter(|process| waits(process)).collect();
    let [client] = &clients[..] else { panic!("{}: clients of {subject}: {clients:?}", scene.cell) };
    let (dead, kid) = (client.pid, scene.name(Role::Kid));
    Watched::new(dead).kill();
    // The next one is there when it is another process and the lead is blocked again.
    scene.tree.until("the next wait", |status| {
        let next = scene.home.workers().into_values().flatten().find(|process| waits(process));
        next.is_some_and(|next| next.pid != dead)
            && by_name(status, &subject)["state"] == "blocked"
            && by_name(status, &kid)["state"] == "running"
    });
}
