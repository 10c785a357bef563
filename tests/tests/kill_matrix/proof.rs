//! What must hold at the end of every cell.

use std::collections::{BTreeMap, BTreeSet};

use roost_tests::real::{Home, by_name, outcome_of, recorded};
use serde_json::{Value, json};

use crate::cell::{Role, State};
use crate::scene::Scene;

pub fn check(scene: &Scene<'_>) {
    let (home, cell) = (scene.home, scene.cell);
    let status = scene.tree.status();
    for (name, role) in &scene.cast {
        let worker = by_name(&status, name);
        // A lead that was killed before it was up has launched nobody.
        if *role == Role::Kid && worker.is_null() && cell.state == State::Starting {
            continue;
        }
        assert_eq!(worker["state"], "ended", "{cell}: {worker}");
        let may: Vec<Value> = cell.outcomes(*role).iter().map(|outcome| whole(outcome)).collect();
        assert!(may.contains(&worker["outcome"]), "{cell}: {name} may end as {may:?}: {worker}");
    }
    nothing_is_left(scene);
    told_once(scene, &status);
    handed_over_once(scene, &status);
    ran_once(home, &status, &cell.to_string());
    // The tree is usable.
    scene.tree.spawn("last", "printf fine");
    assert_eq!(scene.tree.answer("last"), "fine");
    home.roost(["daemon", "stop"]).run().ok();
    let (supervisors, brokers) = home.daemons();
    assert!(supervisors.is_empty() && brokers.is_empty(), "{cell}: {supervisors:?} {brokers:?}");
    one_outcome_each(&recorded(home), &cell.to_string());
}

/// An outcome with all that belongs to it.
fn whole(outcome: &str) -> Value {
    match outcome {
        "completed" | "stopped" => json!({"status": outcome}),
        "crash" => json!({"status": "failed", "kind": "crash", "signal": 9}),
        kind => json!({"status": "failed", "kind": kind}),
    }
}

fn nothing_is_left(scene: &Scene<'_>) {
    let (home, cell) = (scene.home, scene.cell);
    assert!(home.workers().is_empty(), "{cell}: {:?}", home.workers());
    let daemon = home.daemon_status();
    assert_eq!((&daemon["live"], &daemon["queued"]), (&json!(0), &json!(0)), "{cell}");
    assert_eq!(home.zombies(), 0, "{cell}");
    let (supervisors, brokers) = home.daemons();
    assert_eq!((supervisors.len(), brokers.len()), (1, 1), "{cell}");
}

/// The root heard of each of its children once: of a subject through its client, of the others when it asks for the rest.
fn told_once(scene: &Scene<'_>, status: &Value) {
    let cell = scene.cell;
    let rest = scene.tree.roost(["wait", "--json"]).run().json();
    let rest: Vec<&str> = rest["ended"].as_array().unwrap().iter().filter_map(|end| end["name"].as_str()).collect();
    for (name, role) in &scene.cast {
        let mentions = rest.iter().filter(|told| *told == name).count();
        match role {
            Role::Kid => assert_eq!(mentions, 0, "{cell}: {name} is not the root's"),
            Role::Holder => assert_eq!(mentions, 1, "{cell}: {name} in {rest:?}"),
            Role::Subject => {
                let told = &scene.told[name];
                assert_eq!((told.len(), mentions), (1, 0), "{cell}: {name} was told {told:?}, and in {rest:?}");
                let worker = by_name(status, name);
                assert_eq!((&told[0]["execution"], &told[0]["outcome"]), (&worker["execution"], &worker["outcome"]), "{cell}");
                if outcome_of(worker) == "completed" {
                    assert_eq!(told[0]["answer"], format!("answer of {name}"), "{cell}");
                }
            }
        }
    }
    let again = scene.tree.roost(["wait", "--json"]).run().json();
    assert_eq!(again["ended"], json!([]), "{cell}");
}

/// Each end of a child was in exactly one of the prompts with which its lead was woken, or in the answer to its one wait.
fn handed_over_once(scene: &Scene<'_>, status: &Value) {
    let (home, cell) = (scene.home, scene.cell);
    let mut items: BTreeMap<String, usize> = BTreeMap::new();
    let files = std::fs::read_dir(home.dir()).unwrap().flatten();
    for file in files.filter(|file| file.file_name().to_string_lossy().starts_with("wake-")) {
        let wake: Value = serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap();
        for item in wake["items"].as_array().unwrap() {
            *items.entry(item["execution"].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    for (name, _) in scene.cast.iter().filter(|(_, role)| *role == Role::Kid) {
        let kid = by_name(status, name);
        let Some(execution) = kid["execution"].as_str() else { continue };
        let count = items.remove(execution).unwrap_or(0);
        if cell.state == State::Waiting {
            let lead = name.replace('k', "s");
            let told = home.read(&format!("told-{lead}"));
            let expected = usize::from(outcome_of(by_name(status, &lead)) != "crash" && outcome_of(kid) != "parent_failed");
            let in_full = told.lines().filter(|line| line.starts_with(&format!("{name} "))).count();
            // A lead that died was told nothing; so was one whose child ended with it.
            assert!(in_full <= 1 && (in_full == expected || outcome_of(kid) == "lost"), "{cell}: {lead} was told {told:?}");
        } else {
            assert_eq!(count, 1, "{cell}: {name} was handed over {count} times");
        }
    }
    assert!(items.is_empty(), "{cell}: handed over, and nobody's: {items:?}");
}

/// No incarnation ran twice, and no execution was begun afresh.
fn ran_once(home: &Home, status: &Value, cell: &str) {
    let began = home.read("began");
    let lines: Vec<&str> = began.lines().collect();
    let distinct: BTreeSet<&str> = lines.iter().copied().collect();
    assert_eq!(lines.len(), distinct.len(), "{cell}: {began}");
    for worker in status["workers"].as_array().unwrap() {
        let execution = worker["execution"].as_str().unwrap();
        let fresh = lines.iter().filter(|line| line.starts_with(&format!("{execution} ")) && line.ends_with(" 0")).count();
        assert!(fresh <= 1, "{cell}: {execution} was begun {fresh} times");
    }
}

/// The journal: one end for each execution that was accepted, and a freed slot for every process that was granted one.
fn one_outcome_each(events: &[Value], cell: &str) {
    let of = |kind: &str| events.iter().filter(|event| event["event"] == kind).collect::<Vec<_>>();
    let accepted: Vec<&Value> =
        of("job_accepted").iter().flat_map(|job| job["tasks"].as_array().unwrap()).map(|task| &task["worker"]).collect();
    for worker in &accepted {
        let ends = of("ended").iter().filter(|event| event["worker"] == **worker).count();
        assert_eq!(ends, 1, "{cell}: {worker} has {ends} outcomes");
        let taken = of("slot_taken").iter().filter(|event| event["worker"] == **worker && event["grant"] != "return").count();
        let freed = of("slot_freed").iter().filter(|event| event["worker"] == **worker).count();
        assert_eq!(taken, freed, "{cell}: {worker} took {taken} slots and freed {freed}");
    }
    assert_eq!(of("ended").len(), accepted.len(), "{cell}");
}
