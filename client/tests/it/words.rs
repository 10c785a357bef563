//! The commands for words, debts, costs and events: what they call, print, and in which order.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::bounded::{output, start};
use crate::fake::{self, Act, Fake};
use crate::peer::{Peer, completion, words};

fn run(mut command: Command, words: &[&str]) -> (i32, String, String) {
    let output = output(command.env("TZ", "UTC").args(words));
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

fn replying(dir: &Path, method: &'static str, reply: Value) -> Fake {
    Fake::start(&dir.join("s"), move |called, _| (called == method).then(|| Act::Reply(reply.clone())))
}

/// `roost` as the root of the tree t1, or as its worker w1.
fn roost(peer: &Peer) -> Command {
    let mut command = fake::roost(&peer.socket);
    command.env("ROOST_TREE", "t1").env("ROOST_TOKEN", fake::TOKEN);
    command
}

fn as_worker(mut command: Command) -> Command {
    command.env("ROOST_WORKER", "w1").env("ROOST_EPOCH", "1");
    command
}

#[test]
fn a_message_says_what_became_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        (method == "message").then(|| {
            Act::Reply(match params["text"].as_str().unwrap() {
                "steer" => json!({"message": "m1", "sent": {"status": "steering", "execution": "x1"}}),
                "late" => json!({"message": "m2", "sent": {"status": "after_end", "execution": "x1"}}),
                "-x" => json!({"message": "m3", "sent": {"status": "resumed", "job": "j2", "execution": "x2", "placement": "queued", "place": 4}}),
                "from stdin\n" => json!({"message": "m4", "sent": {"status": "resumed", "job": "j2", "execution": "x2", "placement": "started"}}),
                other => panic!("{other}"),
            })
        })
    });
    let said = |words: &[&str]| run(fake.roost(), &[&["message", "a"], words].concat());
    assert_eq!(said(&["steer"]), (0, "a m1 sent to x1\n".into(), String::new()));
    assert_eq!(said(&["late", "--request-id", "r1", "--descendants", "3"]).1, "a m2 follows the end of x1\n");
    assert_eq!(said(&["-x"]).1, "a m3 resumes it as x2: queued 4\n");
    let mut child = start(fake.roost().args(["message", "a", "-", "--json"]).stdin(Stdio::piped()).stdout(Stdio::piped()));
    child.stdin.take().unwrap().write_all(b"from stdin\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap()["sent"]["status"], "resumed");
    let calls = fake.calls("message");
    assert_eq!((&calls[1]["request_id"], &calls[1]["max_subagents_allowed"]), (&json!("r1"), &json!(3)));
    assert_eq!(calls[0].get("max_subagents_allowed"), None);
    assert_ne!(calls[0]["request_id"], calls[2]["request_id"]);
}

#[test]
fn a_message_that_is_refused_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, _| (method == "message").then_some(Act::Refuse("not_steerable")));
    let (code, out, err) = run(fake.roost(), &["message", "a", "hi"]);
    assert!(code == 1 && out.is_empty() && err.contains("(not_steerable)"), "{err}");
}

#[test]
fn only_a_worker_has_a_lead() {
    let dir = tempfile::tempdir().unwrap();
    let fake = replying(dir.path(), "tell_lead", json!({"message": "m7"}));
    assert_eq!(run(as_worker(fake.roost()), &["tell-lead", "half"]).1, "m7 sent\n");
    assert_eq!(fake.calls("tell_lead")[0]["text"], "half");
    let (code, _, err) = run(fake.roost(), &["tell-lead", "half"]);
    assert!(code == 2 && err.contains("(not_worker)"), "{err}");
}

#[test]
fn looking_into_the_inbox_takes_nothing_in() {
    let dir = tempfile::tempdir().unwrap();
    let items = json!([completion(3, 7), {"seq": 4, "type": "child_message", "message": "m1", "from": "b\u{1b}[2J", "worker": "w2", "text": "a\u{7}\nb"},
        {"seq": 5, "type": "undelivered", "message": "m2", "to": "c", "reason": "it has ended", "text": "hi"}]);
    let fake = replying(dir.path(), "inbox", json!({"items": items, "more": 2}));
    let (code, out, _) = run(fake.roost(), &["inbox"]);
    let expected = "3 completion of a x7: completed\n  R\n4 message m1 from b\\x1b[2J\n  a\\x07\n  b\n\
                    5 message m2 to c was never read: it has ended\n  hi\nand 2 more\n";
    assert_eq!((code, out.as_str()), (0, expected));
    assert!(fake.calls("ack").is_empty() && fake.calls("hello").iter().all(|hello| hello.get("role").is_none()));
    let (_, out, _) = run(fake.roost(), &["inbox", "--json"]);
    let listed = serde_json::from_str::<Value>(&out).unwrap();
    assert_eq!((&listed["items"][1], &listed["items"][2], &listed["more"]), (&items[1], &items[2], &json!(2)));
    let (code, _, err) = run(as_worker(fake.roost()), &["inbox", "--ack"]);
    assert!(code == 2 && err.contains("(not_root)"), "{err}");
}

#[test]
fn an_inbox_is_taken_in_page_by_page_after_it_was_printed() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let mut child = start(roost(&peer).args(["inbox", "--ack"]).stdout(Stdio::piped()));
    let (mut talk, hello) = peer.welcome(json!({"lease": 1}));
    assert_eq!(hello["role"], "root");
    talk.answer("inbox", json!({"items": [words(1, 1, "a")], "more": 1}));
    let ack = talk.call("ack");
    // Nothing is acknowledged that our reader has not got: it is in the pipe by now.
    let mut printed = [0; 29];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut printed).unwrap();
    assert_eq!(String::from_utf8_lossy(&printed), "1 message m1 from the lead\n  ");
    assert_eq!(ack.params, json!({"items": [1]}));
    talk.reply(&ack, json!({"accepted": [1], "gone": []}));
    talk.answer("inbox", json!({"items": [words(2, 2, "b")], "more": 0}));
    assert_eq!(talk.accept_all(), json!([2]));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_inbox_is_followed_until_the_lease_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let mut command = roost(&peer);
    let child = start(command.args(["inbox", "--follow", "--ack", "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut talk = peer.welcome_root();
    talk.deliver(json!([words(1, 1, "a")]));
    assert_eq!(talk.accept_all(), json!([1]));
    talk.push("lease_lost", json!({}));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), json!({"items": [words(1, 1, "a")], "more": 0}));
    assert!(String::from_utf8_lossy(&output.stderr).contains("lease"));
}

#[test]
fn a_wait_without_names_is_told_after_its_output_and_one_with_names_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let end = json!({"name": "a", "worker": "w1", "execution": "x4", "job": "j1", "task_index": 0, "outcome": {"status": "wrapped_up"}});
    let mut child = start(roost(&peer).args(["wait"]).stdout(Stdio::piped()));
    let (mut talk, _) = peer.welcome(json!({}));
    assert_eq!(talk.answer("wait", json!({"ended": [end]}))["tell_later"], true);
    let told = talk.call("told");
    let mut printed = [0; 12];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut printed).unwrap();
    assert_eq!(&printed, b"a completed:");
    assert_eq!(told.params, json!({"executions": ["x4"]}));
    talk.reply(&told, json!({}));
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let mut child = start(roost(&peer).args(["wait", "a"]).stdout(Stdio::null()));
    let (mut talk, _) = peer.welcome(json!({}));
    assert_eq!(talk.answer("wait", json!({"ended": [end]})).get("tell_later"), None);
    talk.end();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_wait_whose_output_nobody_takes_is_not_told() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let end = json!({"name": "a", "worker": "w1", "execution": "x4", "job": "j1", "task_index": 0, "outcome": {"status": "completed"}});
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut child = start(roost(&peer).args(["wait"]).stdout(full).stderr(Stdio::null()));
    let (mut talk, _) = peer.welcome(json!({}));
    talk.answer("wait", json!({"ended": [end]}));
    talk.end();
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_result_is_had_by_execution_when_no_worker_has_that_name() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        (method == "result").then(|| match params["execution"].as_str() {
            Some("x12") => Act::Reply(json!({"ended": fake::result("a", json!({"status": "completed"}), "old", None)})),
            _ => Act::Refuse("unknown_worker"),
        })
    });
    assert_eq!(run(fake.roost(), &["result", "x12"]), (0, "old\n".into(), String::new()));
    assert_eq!(fake.calls("result")[0]["name"], "x12");
    let (code, _, err) = run(fake.roost(), &["result", "nobody"]);
    assert!(code == 1 && err.contains("(unknown_worker)"), "{err}");
}

fn usage() -> Value {
    let totals = |own: (u64, u64), total: (u64, u64), workers: u64| json!({"own": {"input": own.0, "cost": own.1, "turns": 1}, "total": {"input": total.0, "cost": total.1, "tool_calls": 2}, "workers": workers});
    let worker = |name: &str, id: &str, lead: Option<&str>, totals: Value| {
        let mut worker = json!({"name": name, "worker": id, "executions": 1});
        worker.as_object_mut().unwrap().extend(totals.as_object().unwrap().clone());
        if let Some(lead) = lead {
            worker["lead"] = lead.into();
        }
        worker
    };
    let mut unknown = totals((4, 0), (4, 0), 1);
    unknown["own"]["cost_unknown"] = true.into();
    unknown["total"]["cost_unknown"] = true.into();
    unknown["partial"] = true.into();
    json!({"tree": "t1", "totals": totals((0, 0), (234, 437_500_000), 2), "workers": [
        worker("A", "w1", None, totals((200, 250_000_000), (234, 437_500_000), 2)), worker("B", "w2", Some("w1"), unknown)]})
}

#[test]
fn usage_is_drawn_with_own_and_total_and_an_unknown_price_is_not_zero() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        (method == "usage").then(|| {
            let mut reply = usage();
            if params["each"] == false {
                reply.as_object_mut().unwrap().remove("workers");
            }
            Act::Reply(reply)
        })
    });
    let head = "tree t1  2 workers  own 0 tokens, $0.00, 1 turn  total 234 tokens, $0.4375, 2 tool calls\n";
    let tree = "  A  own 200 tokens, $0.25, 1 turn  total 234 tokens, $0.4375, 2 tool calls\n    \
                B  own 4 tokens, price unknown, 1 turn  total 4 tokens, price unknown, 2 tool calls  partial\n";
    assert_eq!(run(fake.roost(), &["usage"]).1, head);
    assert_eq!(run(fake.roost(), &["usage", "--tree"]).1, format!("{head}{tree}"));
    assert_eq!(run(fake::roost(&fake.socket), &["usage", "--each", "--tree", "t1"]).1, format!("{head}{tree}"));
    let calls = fake.calls("usage");
    assert_eq!((calls[1].get("tree"), &calls[2]["tree"]), (None, &json!("t1")));
    let (_, out, _) = run(fake.roost(), &["usage", "A", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["totals"]["total"]["cost"], 437_500_000);
    assert_eq!(fake.calls("usage")[3]["name"], "A");
    // The id is only left out where that means something.
    let (code, _, err) = run(fake.roost(), &["status", "--tree"]);
    assert!(code == 2 && err.contains("--tree needs the ID"), "{err}");
}

fn event(number: u64, event: &str, more: Value) -> Value {
    let mut value = json!({"number": number, "at_ms": 1_500, "event": event});
    value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    value
}

fn subject(execution: &str) -> Value {
    json!({"name": "a\u{1b}", "worker": "w1", "execution": execution})
}

fn ended() -> Value {
    let mut ended = subject("x1");
    ended["outcome"] = json!({"status": "failed", "kind": "exit", "code": 3});
    event(3, "ended", ended)
}

#[test]
fn events_are_lines_by_pages_and_under_both_kinds_of_names() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        (method == "events").then(|| {
            Act::Reply(match params["from"].as_u64().unwrap() {
                1 => json!({"tree": "t1", "events": [event(1, "opened", json!({})), event(2, "started", subject("x1"))], "next": 3, "end": 4}),
                3 => json!({"tree": "t1", "events": [ended()], "next": 4, "end": 4}),
                other => panic!("{other}"),
            })
        })
    });
    let (code, out, _) = run(fake.roost(), &["events"]);
    let expected = "1 1970-01-01 00:00:01.500 opened\n2 1970-01-01 00:00:01.500 started a\\x1b x1\n\
                    3 1970-01-01 00:00:01.500 ended a\\x1b x1 outcome=failed/exit\n";
    assert_eq!((code, out.as_str()), (0, expected));
    let (_, out, _) = run(fake.roost(), &["events", "--names", "--from", "1"]);
    let expected = "2 1970-01-01 00:00:01.500 subagents:started a\\x1b x1\n\
                    3 1970-01-01 00:00:01.500 subagents:failed a\\x1b x1 outcome=failed/exit\n";
    assert_eq!(out, expected);
    let (_, out, _) = run(fake::roost(&fake.socket), &["events", "--json", "--tree", "t1", "--from", "3"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), ended());
    assert_eq!(fake.calls("events").last().unwrap()["tree"], "t1");
}

#[test]
fn events_are_followed_over_a_break_and_a_gap_without_losing_or_repeating_one() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let numbered = |number: u64| event(number, "interrupted", json!({}));
    let page = |events: &[u64], end: u64| {
        let next = events.last().map_or(end, |last| last + 1);
        json!({"tree": "t1", "events": events.iter().map(|number| numbered(*number)).collect::<Vec<_>>(), "next": next, "end": end})
    };
    let mut child = start(roost(&peer).args(["events", "-f", "--json"]).stdout(Stdio::piped()));
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let mut seen = |number: u64| {
        let line = lines.next().unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap()["number"], number);
    };
    let (mut talk, _) = peer.welcome(json!({}));
    let first = talk.call("events");
    assert_eq!(first.params, json!({"from": 1, "follow": true}));
    talk.reply(&first, page(&[1, 2], 3));
    talk.push("events", page(&[3], 4));
    // A repeat.
    talk.push("events", page(&[2, 3, 4], 5));
    (1..=4).for_each(&mut seen);
    // One was left out: asked for again by number, on a connection of which nobody knows anything bad.
    talk.push("events", page(&[6], 7));
    let (mut talk, _) = peer.welcome(json!({}));
    assert_eq!(talk.answer("events", page(&[5, 6], 7))["from"], 5);
    (5..=6).for_each(&mut seen);
    drop(talk);
    let (mut talk, _) = peer.welcome(json!({}));
    assert_eq!(talk.answer("events", page(&[7], 8))["from"], 7);
    seen(7);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_transcript_is_harmless_and_its_torn_end_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    fs::create_dir_all(state.join("transcripts")).unwrap();
    let whole = "{\"at_ms\":1500,\"epoch\":1,\"kind\":\"report\",\"text\":\"do \\u001b[2J it\\nnow\"}\nnonsense\n{\"at_ms\":1500,\"epoch\":1,\"kind\":\"gap\",\"lost\":2,\"why\":\"io\"}\n";
    let torn = format!("{whole}{{\"at_");
    for execution in ["x1", "x9"] {
        fs::write(state.join("transcripts").join(format!("{execution}.jsonl")), &torn).unwrap();
    }
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        (method == "status").then(|| match params["name"].as_str() {
            Some("w") => Act::Reply(json!({"trees": [], "workers": [fake::worker("w", "ended", &[], &[])]})),
            _ => Act::Refuse("unknown_worker"),
        })
    });
    let roost = || {
        let mut command = fake.roost();
        command.env("ROOST_STATE_DIR", &state);
        command
    };
    let expected = "1970-01-01 00:00:01.500 report epoch=1\n  do \\x1b[2J it\n  now\n(a record of 9 bytes that cannot be read)\n1970-01-01 00:00:01.500 gap epoch=1 lost=2 why=io\n";
    for name in ["w", "x9"] {
        let (code, out, err) = run(roost(), &["logs", name, "--transcript"]);
        assert_eq!((code, out.as_str()), (0, expected));
        assert!(err.contains("not whole"), "{err}");
    }
    assert_eq!(run(roost(), &["logs", "w", "--transcript", "--raw"]).1, torn);
    let (code, _, err) = run(roost(), &["logs", "x8", "--transcript"]);
    assert!(code == 1 && err.contains("x8.jsonl"), "{err}");
    let (code, _, err) = run(roost(), &["logs", "nobody", "--transcript"]);
    assert!(code == 1 && err.contains("(unknown_worker)"), "{err}");
}

#[test]
fn a_new_tree_says_how_completions_reach_its_lead() {
    let dir = tempfile::tempdir().unwrap();
    let asked: Arc<Mutex<Value>> = Arc::default();
    let shared = Arc::clone(&asked);
    let fake = Fake::start(&dir.path().join("s"), move |method, params| {
        (method == "open").then(|| {
            *shared.lock().unwrap() = params["settings"].clone();
            Act::Reply(fake::opened())
        })
    });
    let (code, _, err) = run(fake::roost(&fake.socket), &["open", "--delivery", "follow_up", "--join", "smart"]);
    assert_eq!(code, 0, "{err}");
    let settings = asked.lock().unwrap().clone();
    assert_eq!((&settings["delivery"], &settings["join"]), (&json!("follow_up"), &json!("smart")));
}
