//! `docs/json.md` against the types and against what the commands of a real daemon print; and a transcript as people see it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use roost_core::event::StopCause;
use roost_proto::id::{Epoch, MessageId, WorkerId};
use roost_proto::outcome::Outcome;
use roost_tests::real::{Agents, Home, Tree};
use roostd::transcript::{Direction, Line, What, Why};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// One row of a table: of which type something is, and the fields that it has, those with `true` always.
struct Row {
    of: Option<String>,
    fields: BTreeMap<String, bool>,
    more: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The first words in backticks.
fn code(cell: &str) -> Option<&str> {
    cell.split('`').nth(1)
}

/// All rows by what they are about; a cell of nothing but words in backticks has several.
fn rows(document: &str) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for line in document.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| command") && !line.starts_with("| part")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [about, of, fields] = cells[..] else { panic!("{line}") };
        let each: Vec<&str> = about.split(", ").collect();
        let is_list = each.iter().all(|one| one.starts_with('`') && one.ends_with('`'));
        for name in if is_list { each } else { vec![about] } {
            let words = code(fields).unwrap().split(' ').filter(|word| *word != "...");
            let fields = words.map(|word| (word.trim_end_matches('?').to_owned(), !word.ends_with('?'))).collect();
            let row = Row { of: code(of).map(str::to_owned), fields, more: line.contains("...") };
            assert!(rows.insert(name.replace('`', ""), row).is_none(), "{name} twice");
        }
    }
    rows
}

fn schema() -> Value {
    serde_json::from_str(&read("docs/protocol.schema.json")).unwrap()
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

/// What was printed, by the names of the rows.
#[derive(Default)]
struct Printed(BTreeMap<String, Vec<Value>>);

impl Printed {
    fn add(&mut self, about: &str, value: Value) {
        self.0.entry(about.to_owned()).or_default().push(value);
    }

    fn lines(&mut self, about: &str, text: &str) {
        text.lines().for_each(|line| self.add(about, serde_json::from_str(line).unwrap()));
    }

    /// Parts of what was printed.
    fn parts(&mut self) {
        let parts = [
            ("active (result, not ended)", "result, not ended", "/active"),
            ("error", "any, when it failed", "/error"),
            ("one of tasks (spawn)", "spawn", "/tasks/0"),
            ("one of ended (wait)", "wait", "/ended/0"),
            ("one of workers (stop)", "stop", "/workers/0"),
            ("sent (message)", "message", "/sent"),
            ("totals (usage), also usage of a result", "usage", "/totals"),
            ("one of workers (usage)", "usage", "/workers/0"),
            ("own and total", "usage", "/totals/own"),
            ("own and total", "usage", "/totals/total"),
            ("one of trees (status)", "status", "/trees/0"),
            ("one of workers (status)", "status", "/workers/0"),
            ("settings (open)", "open", "/settings"),
            ("timing of settings", "open", "/settings/timing"),
            ("daemon (export)", "export", "/daemon"),
            ("one of trees (gc)", "gc", "/trees/0"),
            ("user and project (config explain)", "config explain", "/user"),
            ("user and project (config explain)", "config explain", "/project"),
            ("one of values (config explain)", "config explain", "/values/0"),
            ("one of values (config explain)", "config explain", "/values/1"),
            ("one of profiles (config explain)", "config explain", "/profiles/0"),
            ("one of from (config explain)", "config explain", "/profiles/0/from/0"),
            ("one of problems (config check)", "config check", "/problems/0"),
            ("one of checks (doctor)", "doctor", "/checks/0"),
            ("one of checks (doctor)", "doctor", "/checks/5"),
            ("one of workers (timeline)", "timeline", "/workers/0"),
            ("one of spans (timeline)", "timeline", "/workers/0/spans/0"),
            ("one of cap and live (timeline)", "timeline", "/cap/0"),
            ("one of cap and live (timeline)", "timeline", "/live/0"),
            ("versions (daemon status)", "daemon status", "/versions"),
        ];
        for (part, whole, pointer) in parts {
            let found: Vec<Value> = self.0[whole].iter().filter_map(|value| value.pointer(pointer)).cloned().collect();
            assert!(!found.is_empty(), "{part}");
            found.into_iter().for_each(|value| self.add(part, value));
        }
    }
}

/// Runs every command that prints JSON.
fn print_all(home: &Home) -> Printed {
    let mut printed = Printed::default();
    printed.add("daemon start", home.roost(["daemon", "start", "--json"]).run().ok().json());
    home.sh("mkdir open && roost --socket $F/open/s --state-dir $F/state doctor --json > doctor.json; test $? = 1").run().ok();
    printed.lines("doctor", &home.read("doctor.json"));
    printed.add("man", home.roost(["man", "--json"]).arg(home.file("man")).run().ok().json());
    printed.add("metrics", home.roost(["metrics", "--json"]).run().ok().json());
    printed.add("run", home.roost(["run", "--json", "--", "true"]).run().ok().json());
    printed.add("open", home.roost(["open", "--json", "--key", "k"]).run().ok().json());
    let tree = Tree::open(home, &[]);
    let json = |words: &[&str]| tree.roost(["--json"]).args(words).run();
    printed.add("spawn", json(&["spawn", "--name", "slow", "--", "sleep", "1000"]).ok().json());
    tree.until_state("slow", "running");
    printed.add("result, not ended", json(&["result", "slow"]).expect(1).json());
    printed.add("spawn", json(&["spawn", "--name", "one", "--", "sh", "-c", "roost tell-lead --json hi"]).ok().json());
    printed.add("wait", json(&["wait", "--any"]).ok().json());
    let result = json(&["result", "one"]).ok().json();
    printed.lines("tell-lead", result["answer"].as_str().unwrap());
    printed.add("result", result);
    printed.add("inbox", json(&["inbox"]).ok().json());
    let mut agents = Agents::new(home);
    let _agent = agents.start(&tree, "agent", 0);
    printed.add("message", json(&["message", "agent", "hi"]).ok().json());
    printed.add("usage", json(&["usage", "--each"]).ok().json());
    printed.add("status", json(&["status"]).ok().json());
    printed.lines("events", json(&["events", "--names"]).ok().text());
    printed.lines("events", json(&["events"]).ok().text());
    printed.add("export", json(&["export"]).ok().json());
    printed.add("timeline", json(&["timeline"]).ok().json());
    printed.lines("logs --transcript", json(&["logs", "one", "--transcript"]).ok().text());
    printed.add("any, when it failed", json(&["stop", "nobody"]).expect(1).json());
    printed.add("stop", json(&["stop", "slow"]).ok().json());
    printed.add("wait", json(&["wait", "agent", "--timeout", "1ms"]).expect(124).json());
    printed.add("interrupt", json(&["interrupt"]).ok().json());
    printed.add("cap", json(&["cap", "3"]).ok().json());
    printed.add("pause", json(&["pause"]).ok().json());
    printed.add("resume", json(&["resume"]).ok().json());
    printed.add("close", json(&["close", "--now"]).ok().json());
    let read = home.roost(["open", "--json", "--key", "read"]).run().ok().json();
    home.roost(["close", "--tree"]).arg(read["tree"].as_str().unwrap()).run().ok();
    printed.add("gc", home.roost(["gc", "--json", "--older-than", "0", "--dry-run"]).run().ok().json());
    home.sh("mkdir -p config/roost p && printf '[tree]\ncap = 3\nx = 1\n[profile.p]\nargv = [\"true\"]\n' > config/roost/config.toml")
        .run()
        .ok();
    home.sh(": > p/.roost.toml").run().ok();
    let config = |verb: &str| home.roost(["config", verb, "--json"]).cwd(home.file("p")).env("XDG_CONFIG_HOME", home.file("config")).run();
    printed.add("config explain", config("explain").ok().json());
    printed.add("config check", config("check").expect(1).json());
    for verb in ["status", "restart", "stop"] {
        printed.add(&format!("daemon {verb}"), home.roost(["daemon", verb, "--json"]).run().ok().json());
    }
    printed.add("daemon stop", home.roost(["daemon", "stop", "--json"]).run().ok().json());
    printed
}

#[test]
fn the_tables_are_what_the_commands_print_and_what_the_types_have() {
    let rows = rows(&read("docs/json.md"));
    let types = schema();
    for (about, row) in &rows {
        let Some(of) = &row.of else { continue };
        let listed: BTreeSet<&str> = row.fields.keys().map(String::as_str).collect();
        let known = keys(&types["$defs"][of]["properties"]);
        assert!(if row.more { known.is_subset(&listed) } else { known == listed }, "{about}: {of} has {known:?}, listed are {listed:?}");
    }
    let home = Home::new();
    let mut printed = print_all(&home);
    printed.parts();
    // Those of `service` take a user manager: `systemd.rs`.
    let here = || rows.iter().filter(|(about, _)| !about.starts_with("service "));
    assert_eq!(printed.0.keys().collect::<Vec<_>>(), here().map(|(about, _)| about).collect::<Vec<_>>());
    for (about, row) in here() {
        for value in &printed.0[about] {
            let there = keys(value);
            let unknown: Vec<_> = there.iter().filter(|name| !row.more && !row.fields.contains_key(**name)).collect();
            let missing: Vec<_> = row.fields.iter().filter(|(name, always)| **always && !there.contains(name.as_str())).collect();
            assert!(unknown.is_empty() && missing.is_empty(), "{about}: not listed {unknown:?}, missing {missing:?} in {value}");
        }
    }
    // Every verb is there, but for those that print no JSON.
    let help = home.roost(["--help"]).run().ok();
    let verbs = help.text().lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for verb in verbs.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).filter(|verb| !verb.is_empty()) {
        let listed = rows.keys().any(|about| about.split(' ').next() == Some(verb));
        assert!(listed || ["park", "completions", "watch", "help"].contains(&verb), "{verb} has no row");
    }
}

#[test]
fn all_kinds_of_errors_and_failures_are_listed() {
    let (document, types) = (read("docs/json.md"), schema());
    let consts = |name: &str, pointer: &str| -> BTreeSet<String> {
        let all = types["$defs"][name]["oneOf"].as_array().unwrap();
        all.iter().map(|one| one.pointer(pointer).unwrap().as_str().unwrap().to_owned()).collect()
    };
    let kinds = document.split_once("## Kinds of errors").unwrap().1;
    let listed = |after: &str| -> BTreeSet<String> {
        code(kinds.split_once(after).unwrap().1).unwrap().split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(listed("(`ErrorKind`):"), consts("ErrorKind", "/const"));
    let mut said = BTreeSet::new();
    let mut open = vec![root().join("client/src")];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let named = text.split("kind: \"").skip(1);
            // The words of `Error::kind` and `Failure::kind`.
            let drawn = text.split("=> \"").skip(1).filter(|rest| rest.split('"').nth(1).is_some_and(|end| end.starts_with(".into()")));
            let is_error = path.ends_with("error.rs") || path.ends_with("failure.rs");
            let words = named.chain(drawn.filter(|_| is_error)).filter_map(|rest| rest.split('"').next());
            said.extend(words.map(str::to_owned));
        }
    }
    assert_eq!(listed("the command and the library:"), said);
    for kind in consts("Failure", "/properties/kind/const") {
        assert!(document.contains(&format!("`{kind}`")), "{kind}");
    }
}

/// One line of every kind that there is.
fn every_kind() -> Vec<What> {
    let raw = |value: Value| RawValue::from_string(value.to_string()).unwrap();
    let items = json!({"wake": true, "active_children": 0, "items": [{"seq": 1, "type": "task", "text": "do\n\u{1b}[2J it"}]});
    vec![
        What::Task { text: "two\nlines\u{1b}[2J".into() },
        What::Items { delivery: raw(items) },
        What::Withdrawn { withdrawal: raw(json!({"items": [1]})) },
        What::Ack { items: vec![1] },
        What::Read { workers: vec![WorkerId(2)] },
        What::Report { text: "half".into() },
        What::Message { message: MessageId(3), direction: Direction::In, peer: None, text: "words".into() },
        What::Usage { report: serde_json::from_value(json!({"sequence": 1, "input": 7})).unwrap() },
        What::Settle { answer: Some("all\nof it".into()), context_bytes: Some(4), outcome: Some(Outcome::Completed), length_limited: true },
        What::ParkAsked { ask: raw(json!({"deadline_ms": 5})) },
        What::Parked { context_bytes: 4 },
        What::Wake { settled: true },
        What::Stop { cause: StopCause::Stop },
        What::Outcome { outcome: Outcome::Aborted { reason: "why".into() }, output: Some("/o".into()) },
        What::Restart,
        What::Gap { lost: Some(2), why: Why::Io },
    ]
}

#[test]
fn every_kind_of_a_transcript_is_shown_under_its_name_and_harmless() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    let execution = tree.spawn("one", "true")["execution"].as_str().unwrap().to_owned();
    tree.result("one");
    let lines: Vec<Line> = every_kind().into_iter().map(|what| Line { at_ms: 1_500, epoch: Epoch(1), what }).collect();
    let path = home.state_dir().join("transcripts").join(format!("{execution}.jsonl"));
    fs::write(&path, lines.iter().flat_map(Line::json).collect::<Vec<u8>>()).unwrap();
    let shown = tree.roost(["logs", "one", "--transcript"]).env("TZ", "UTC").run().ok();
    let expected = "\
        task epoch=1\n  two\n  lines\\x1b[2J\n\
        items delivery={\"active_children\":0,\"items\":[{\"seq\":1,\"text\":\"do\\n\\u001b[2J it\",\"type\":\"task\"}],\"wake\":true} epoch=1\n\
        withdrawn epoch=1 withdrawal={\"items\":[1]}\n\
        ack epoch=1 items=[1]\n\
        read epoch=1 workers=[\"w2\"]\n\
        report epoch=1\n  half\n\
        message direction=in epoch=1 message=m3 peer=null\n  words\n";
    let heads: Vec<&str> = shown.text().lines().filter_map(|line| line.strip_prefix("1970-01-01 00:00:01.500 ")).collect();
    let kinds: Vec<&str> = heads.iter().filter_map(|line| line.split(' ').next()).collect();
    let documented = read("docs/operations.md");
    let names: Vec<Value> = lines.iter().map(|line| serde_json::from_slice::<Value>(&line.json()).unwrap()["kind"].clone()).collect();
    assert_eq!(kinds, names.iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>());
    assert!(kinds.iter().all(|kind| documented.contains(&format!("`{kind}`"))), "{kinds:?}");
    let without_time = shown.text().replace("1970-01-01 00:00:01.500 ", "");
    assert!(without_time.starts_with(expected), "{without_time}");
    assert!(
        without_time.contains("settle context_bytes=4 epoch=1 length_limited=true outcome={\"status\":\"completed\"}\n  answer:\n  all\n")
    );
    assert!(!without_time.contains('\u{1b}'));
}
