//! The public protocol as its documents tell it: every transcript in `tests/data/protocol/` is replayed over a real daemon, and what
//! `docs/protocol.md` quotes stands in one of them.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use std::collections::{BTreeMap, BTreeSet};

use roost_proto::message::{METHODS, NOTIFICATIONS};
use roost_tests::real::{Step, StepKind, Transcript, replay};
use serde_json::Value;

#[path = "protocol/typed.rs"]
mod typed;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/protocol")
}

/// The transcripts of a folder, in the order of their names.
fn transcripts(folder: &Path) -> Vec<Transcript> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    assert!(!paths.is_empty(), "no transcript in {}", folder.display());
    paths.iter().map(|path| Transcript::read(path).unwrap_or_else(|problem| panic!("{problem}"))).collect()
}

macro_rules! replayed {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                let path = data().join(concat!(stringify!($name), ".jsonl"));
                replay(&Transcript::read(&path).unwrap_or_else(|problem| panic!("{problem}")));
            }
        )*

        #[test]
        fn every_transcript_is_replayed() {
            let names: Vec<String> = transcripts(&data()).iter().map(|found| found.path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

replayed! {
    ack
    cap_and_pause
    close
    daemon
    events
    foreground
    gc
    hello
    hello_first
    hello_identity
    hello_version
    launch
    lease
    line_ends
    message
    no_call
    no_id
    no_role
    observer
    open
    outcomes
    park
    park_decline
    park_handshake
    park_in_a_wait
    read_before_taken_in
    redelivery
    repeats
    separators
    settle_go_on
    settle_wait
    silent_children
    status
    stop
    tell_lead
    told
    too_large
    undelivered
    unknown
    usage
    wait_and_result
    worker
    worker_calls
}

fn all() -> Vec<Transcript> {
    transcripts(&data())
}

fn name_of(transcript: &Transcript) -> &str {
    transcript.path.file_stem().unwrap().to_str().unwrap()
}

fn schema() -> Value {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol.schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn transcripts_say_only_what_can_be_said() {
    // These send what is wrong on purpose.
    let wrong = ["hello_version", "unknown"];
    let schema = schema();
    let mut problems = Vec::new();
    for transcript in all() {
        let mut called: BTreeMap<(String, u64), String> = BTreeMap::new();
        let mut known: BTreeSet<String> = ["dir", "state_dir", "path", "bridge", "control"].map(str::to_owned).into();
        for step in &transcript.steps {
            let problem = match &step.kind {
                StepKind::Send(call) => {
                    let method = call["method"].as_str().unwrap_or("");
                    if let Some(id) = call["id"].as_u64() {
                        called.insert((step.on.clone(), id), method.to_owned());
                    }
                    let unknown: Vec<String> = typed::names_in(call).difference(&known).cloned().collect();
                    if !unknown.is_empty() {
                        Err(format!("nothing has given {unknown:?} a value"))
                    } else if wrong.contains(&name_of(&transcript)) {
                        Ok(())
                    } else {
                        sent(&schema, method, &call["params"])
                    }
                }
                StepKind::Begins(environment) => {
                    known.extend(typed::names_in(environment));
                    Ok(())
                }
                StepKind::Expect(line) => {
                    known.extend(typed::names_in(line));
                    let method = line["id"].as_u64().and_then(|id| called.get(&(step.on.clone(), id)));
                    expected(&schema, method.map(String::as_str), line)
                }
                _ => Ok(()),
            };
            if let Err(problem) = problem {
                problems.push(format!("{}:{}: {problem}", transcript.path.display(), step.number));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn sent(schema: &Value, method: &str, params: &Value) -> Result<(), String> {
    if !METHODS.contains(&method) || params.is_null() {
        return Ok(());
    }
    typed::read(method, typed::with_samples(method, params))?;
    typed::can_be(schema, &schema["methods"][method]["params"], params)
}

fn expected(schema: &Value, method: Option<&str>, line: &Value) -> Result<(), String> {
    if !line["error"].is_null() {
        return typed::can_be(schema, &schema["$defs"]["Answer"], line);
    }
    if let Some(notification) = line["method"].as_str() {
        let of = schema["notifications"].get(notification).ok_or_else(|| format!("there is no notification {notification}"))?;
        return typed::can_be(schema, &of["params"], &line["params"]);
    }
    match method {
        Some(method) if !line["result"].is_null() => typed::can_be(schema, &schema["methods"][method]["result"], &line["result"]),
        _ => Ok(()),
    }
}

#[test]
fn every_method_and_every_notification_has_a_transcript() {
    let (mut sent, mut pushed) = (BTreeSet::new(), BTreeSet::new());
    for step in all().into_iter().flat_map(|transcript| transcript.steps) {
        let (set, line) = match step.kind {
            StepKind::Send(call) => (&mut sent, call),
            StepKind::Expect(line) => (&mut pushed, line),
            _ => continue,
        };
        set.extend(line["method"].as_str().map(str::to_owned));
    }
    let missing: Vec<&&str> = METHODS.iter().filter(|method| !sent.contains(**method)).collect();
    assert!(missing.is_empty(), "no transcript calls {missing:?}");
    let missing: Vec<&&str> = NOTIFICATIONS.iter().filter(|method| !pushed.contains(**method)).collect();
    assert!(missing.is_empty(), "no transcript expects {missing:?}");
    assert_eq!(typed::READ.iter().collect::<BTreeSet<_>>(), METHODS.iter().collect::<BTreeSet<_>>());
}

#[test]
fn the_document_quotes_transcripts() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/protocol.md")).unwrap();
    let transcripts = all();
    let quotes: Vec<&str> = text.split("```jsonl\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(quotes.len() > 10, "only {} exchanges are quoted", quotes.len());
    for quote in quotes {
        let lines: Vec<&str> = quote.lines().collect();
        let stands_in = |transcript: &Transcript| {
            let texts: Vec<&str> = transcript.steps.iter().map(|step: &Step| step.text.as_str()).collect();
            texts.windows(lines.len()).any(|window| window == lines)
        };
        assert!(!lines.is_empty() && transcripts.iter().any(stands_in), "no transcript has these lines, one after the other:\n{quote}");
    }
    // What the document says of each method cannot be checked; that it says something can.
    for method in METHODS.iter().chain(NOTIFICATIONS) {
        assert!(text.contains(&format!("`{method}`")), "docs/protocol.md says nothing of `{method}`");
    }
}
