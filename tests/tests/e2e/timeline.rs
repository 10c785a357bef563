//! `roost timeline` of a real run: the spans are the events, no more are live than the cap allows, and the files are written.

use std::collections::BTreeMap;
use std::fs;

use roost_tests::real::{Home, Tree};
use serde_json::Value;

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("no {field}: {value}"))
}

/// A tally of a small directory tree under a cap of 2, whose workers park. Returns the id of its tree.
fn tallied(home: &Home) -> String {
    let top = home.file("data");
    for directory in ["a/b/c", "a/d", "e/f <&>", "e/g"] {
        fs::create_dir_all(top.join(directory)).unwrap();
    }
    home.roost(["run", "--cap", "2", "--"]).arg(home.program("examples/tally")).arg(&top).run().ok();
    let status = home.roost(["status", "--json"]).run().ok().json();
    status["trees"][0]["tree"].as_str().unwrap().to_owned()
}

/// From the acceptance to the end of each worker, of which each has one execution.
fn lives(events: &str) -> BTreeMap<String, (u64, u64)> {
    let mut lives = BTreeMap::new();
    for event in events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let worker = || event["worker"].as_str().unwrap().to_owned();
        match event["event"].as_str().unwrap() {
            "created" => drop(lives.insert(worker(), (number(&event, "at_ms"), 0))),
            "ended" => lives.get_mut(&worker()).unwrap().1 = number(&event, "at_ms"),
            _ => {}
        }
    }
    lives
}

#[test]
fn spans_cover_each_life_and_never_more_are_live_than_the_cap() {
    let home = Home::new();
    let tree = tallied(&home);
    let words = |verb| home.roost([verb, "--tree", &tree, "--json"]).run().ok();
    let (timeline, lives) = (words("timeline").json(), lives(words("events").text()));
    let workers = timeline["workers"].as_array().unwrap();
    assert_eq!((workers.len(), lives.len()), (8, 8));
    let mut parked = 0;
    for worker in workers {
        let spans = worker["spans"].as_array().unwrap();
        let (from, until) = lives[worker["worker"].as_str().unwrap()];
        let mut at = from;
        for span in spans {
            assert_eq!(number(span, "from_ms"), at, "{worker}");
            at = number(span, "until_ms");
            assert!(at > number(span, "from_ms"), "{worker}");
            parked += u32::from(span["state"] == "parked");
        }
        assert_eq!(at, until, "{worker}");
    }
    assert!(parked >= 4, "{timeline}");
    let all: Vec<&Value> =
        workers.iter().flat_map(|worker| worker["spans"].as_array().unwrap()).filter(|span| span["live"] == true).collect();
    for at in all.iter().map(|span| number(span, "from_ms")) {
        let live = all.iter().filter(|span| number(span, "from_ms") <= at && at < number(span, "until_ms")).count();
        assert!(live <= 2, "{live} at {at}: {timeline}");
    }
    assert_eq!((number(&timeline, "live_max"), number(&timeline["cap"][0], "count")), (2, 2));
}

#[test]
fn pictures_and_traces_are_files_and_the_rest_is_text() {
    let home = Home::new();
    let tree = tallied(&home);
    let timeline = |words: &[&str]| home.roost(["timeline", "--tree", &tree]).args(words).run();
    assert_eq!(timeline(&["--out", "t.svg", "--perfetto", "t.json"]).ok().text(), "");
    timeline(&["--out", "t.html"]).ok();
    assert!(home.read("t.svg").starts_with("<svg ") && home.read("t.html").contains("<svg "));
    let trace: Value = serde_json::from_str(&home.read("t.json")).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().iter().any(|event| event["name"] == "parked"), "{trace}");
    let shown = timeline(&[]).ok();
    assert!(shown.text().contains("at most 2 live at once, cap 2") && shown.text().contains('─'), "{}", shown.text());
    timeline(&["--out", "t.png"]).expect(2);
    timeline(&["--out", "nowhere/t.svg"]).expect(1);
    home.roost(["timeline"]).run().expect(2);
    // What is still going on lasts until now.
    let tree = Tree::open(&home, &[]);
    tree.spawn("slow", "exec sleep 1000");
    tree.until_state("slow", "running");
    let drawn = tree.roost(["timeline", "--json"]).run().ok().json();
    assert_eq!(drawn["workers"][0]["outcome"], Value::Null);
    assert_eq!(drawn["workers"][0]["spans"].as_array().unwrap().last().unwrap()["until_ms"], drawn["until_ms"]);
    tree.roost(["close", "--now"]).run().ok();
}
