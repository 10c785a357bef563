//! The command `roost`, verb by verb: what it prints, and how it ends.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::bounded::{output, start};
use crate::fake::{self, Act, Fake};

fn text(output: &Output) -> (i32, String, String) {
    let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), string(&output.stdout), string(&output.stderr))
}

fn run(command: &mut Command, words: &[&str]) -> (i32, String, String) {
    text(&output(command.args(words)))
}

fn with_stdin(command: &mut Command, words: &[&str], input: &[u8]) -> (i32, String, String) {
    let mut child = start(command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    child.stdin.take().unwrap().write_all(input).unwrap();
    text(&child.wait_with_output().unwrap())
}

fn replying(dir: &Path, method: &'static str, reply: Value) -> Fake {
    Fake::start(&dir.join("s"), move |called, _| (called == method).then(|| Act::Reply(reply.clone())))
}

#[test]
fn without_a_daemon_it_says_where_it_looked() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let (code, out, err) = run(&mut fake::roost(&socket), &["status"]);
    assert_eq!((code, out.as_str()), (4, ""));
    assert!(err.contains(socket.to_str().unwrap()) && err.contains("(no_daemon)") && err.contains("hint: "), "{err}");
    let (code, out, _) = run(&mut fake::roost(&socket), &["status", "--json"]);
    let error: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &error["error"]["kind"]), (4, &json!("no_daemon")));
    assert_eq!(run(&mut fake::roost(&socket), &["daemon", "status"]).0, 4);
    assert_eq!(run(&mut fake::roost(&socket), &["daemon", "stop"]), (0, "no daemon is running\n".into(), String::new()));
}

#[test]
fn spawn_prints_its_receipt() {
    let dir = tempfile::tempdir().unwrap();
    let reply = json!({"job": "j1", "tasks": [
        {"name": "a", "worker": "w1", "execution": "x1", "status": "started"},
        {"name": "b", "worker": "w2", "execution": "x2", "status": "queued", "place": 3, "reason": "the cap of 1 is full"},
    ]});
    let fake = replying(dir.path(), "launch", reply.clone());
    let words =
        ["spawn", "--name", "a", "--timeout", "2m", "--env", "K=V=W", "--descendants", "3", "--task", "hello", "--", "sh", "-c", "x"];
    let (code, out, err) = run(&mut fake.roost(), &words);
    assert_eq!((code, out.as_str()), (0, "a started\nb queued 3 (the cap of 1 is full)\n"), "{err}");
    let call = &fake.calls("launch")[0];
    let task = json!({"argv": ["sh", "-c", "x"], "task": "hello", "name": "a", "env": [["K", "V=W"]], "max_subagents_allowed": 3, "timeout_ms": 120_000});
    assert_eq!((&call["tasks"], call["request_id"].as_str().unwrap().len()), (&json!([task]), 32));
    assert!(!call.to_string().contains(fake::TOKEN));
    let tasks = br#"[{"argv":["a"]},{"argv":["b"],"name":"b"}]"#;
    let (code, out, _) = with_stdin(&mut fake.roost(), &["spawn", "--tasks", "-", "--json", "--request-id", "r7"], tasks);
    assert_eq!((code, serde_json::from_str::<Value>(&out).unwrap()), (0, reply));
    assert_eq!(fake.calls("launch")[1]["request_id"], "r7");
    let (code, _, err) = with_stdin(&mut fake.roost(), &["spawn", "--tasks", "-"], br#"[{"argv":["a"],"nmae":1}]"#);
    assert!(code == 2 && err.contains("task 0") && err.contains("nmae"), "{err}");
}

#[test]
fn without_a_tree_it_says_how_to_get_one() {
    let dir = tempfile::tempdir().unwrap();
    for words in [&["spawn", "--", "true"][..], &["wait"], &["cap"], &["result", "a"], &["logs", "a"], &["status", "a"]] {
        let fake_dir = dir.path().join(words[0]);
        fs::create_dir(&fake_dir).unwrap();
        let fake = replying(&fake_dir, "none", Value::Null);
        let (code, _, err) = run(&mut fake::roost(&fake.socket), words);
        assert!(code == 2 && err.contains("roost open"), "{words:?}: {err}");
    }
    let (code, _, err) = run(&mut fake::roost(&dir.path().join("s")), &["park"]);
    assert!(code == 2 && err.contains("ROOST_WORKER"), "{err}");
}

#[test]
fn wait_ends_as_its_workers_did() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        let end = |name: &str, outcome: Value| json!({"name": name, "worker": "w1", "execution": "x1", "job": "j1", "task_index": 0, "outcome": outcome});
        let good = end("a", json!({"status": "completed"}));
        let bad = end("b", json!({"status": "failed", "kind": "exit", "code": 3}));
        (method == "wait").then(|| match params["names"][0].as_str() {
            Some("b") => Act::Reply(json!({"ended": [good, bad]})),
            Some("c") => Act::Reply(json!({"ended": [good], "pending": ["c"], "timed_out": true})),
            _ => Act::Reply(json!({"ended": [good]})),
        })
    });
    assert_eq!(run(&mut fake.roost(), &["wait"]), (0, "a completed\n".into(), String::new()));
    assert_eq!(run(&mut fake.roost(), &["wait", "b"]), (1, "a completed\nb failed: exit code 3\n".into(), String::new()));
    let (code, out, err) = run(&mut fake.roost(), &["wait", "c", "--timeout", "5s"]);
    assert!(code == 124 && out == "a completed\n" && err.contains("pending: c"), "{err}");
    let (code, _, err) = run(&mut fake.roost(), &["wait", "--timeout", "soon"]);
    assert!(code == 2 && err.contains("500ms, 30s, 5m, 2h"), "{err}");
}

#[test]
fn a_result_is_harmless_or_exact() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out");
    fs::write(&file, b"a\x1b[2J\x07\xff\n\tb").unwrap();
    let reply = json!({"ended": fake::result("a", json!({"status": "completed"}), "?", Some(&file))});
    let fake = replying(dir.path(), "result", reply);
    assert_eq!(run(&mut fake.roost(), &["result", "a"]), (0, "a\\x1b[2J\\x07\u{fffd}\n\tb\n".into(), String::new()));
    assert_eq!(output(fake.roost().args(["result", "a", "--raw"])).stdout, b"a\x1b[2J\x07\xff\n\tb");
    let (code, out, _) = run(&mut fake.roost(), &["result", "a", "--json"]);
    assert_eq!((code, &serde_json::from_str::<Value>(&out).unwrap()["outcome"]["status"]), (0, &json!("completed")));
}

#[test]
fn a_result_that_is_not_there_yet_is_its_state() {
    let dir = tempfile::tempdir().unwrap();
    let fake = replying(dir.path(), "result", json!({"active": {"name": "a", "state": "parked"}}));
    let (code, out, err) = run(&mut fake.roost(), &["result", "a"]);
    assert!(code == 1 && out.is_empty() && err.contains("parked"), "{err}");
}

#[test]
fn bad_caps_are_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let fake = replying(dir.path(), "cap", json!({"cap": 2, "live": 1, "queued": 0}));
    assert_eq!(run(&mut fake.roost(), &["cap", "2"]), (0, "cap 2  live 1  queued 0\n".into(), String::new()));
    for bad in ["0", "-1", "1.5", "abc", "1000000000000"] {
        let (code, _, err) = run(&mut fake.roost(), &["cap", bad]);
        assert!(code == 2 && err.contains("cap"), "{bad}: {err}");
    }
    assert_eq!(fake.calls("cap").len(), 1);
}

#[test]
fn open_makes_a_shell_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let odd = dir.path().join("it's odd");
    fs::create_dir(&odd).unwrap();
    let fake = replying(&odd, "open", fake::opened());
    let mut shell = Command::new("sh");
    shell.env_clear().env("PATH", "/usr/bin:/bin").env("ROOST_WORKER", "w9").env("ROOST_EPOCH", "1").args([
        "-ec",
        r#"
        eval "$("$0" open --cap 3 --group-cap w=1 --socket "$1")"
        echo "$ROOST_SOCKET|$ROOST_TREE|$ROOST_TOKEN|${ROOST_WORKER-unset}|${ROOST_EPOCH-unset}""#,
    ]);
    let (code, out, err) = run(shell.arg(env!("CARGO_BIN_EXE_roost")).arg(&fake.socket), &[]);
    assert_eq!((code, out), (0, format!("{}|t1|{}|unset|unset\n", fake.socket.display(), fake::TOKEN)), "{err}");
    let open = &fake.calls("open")[0];
    assert_eq!((&open["settings"]["cap"], &open["settings"]["group_caps"]["w"], &open["ephemeral"]), (&json!(3), &json!(1), &json!(false)));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let fake = replying(dir.path(), "status", json!({"trees": []}));
    let (read, write) = std::io::pipe().unwrap();
    drop(read);
    let output = start(fake::roost(&fake.socket).arg("status").stdout(write).stderr(Stdio::piped())).wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

#[test]
fn status_pages_and_names_are_harmless() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        let mut tree = fake::progress(1);
        for (field, value) in [("budget_remaining", 8), ("budget", 10), ("opened_at_ms", 0)] {
            tree[field] = value.into();
        }
        let mut second = fake::worker("b\u{7}", "queued", &[], &[]);
        (second["worker"], second["lead"], second["place"], second["reason"]) = ("w2".into(), "w1".into(), 4.into(), "cap".into());
        (method == "status").then(|| match params["after"].as_str() {
            None => Act::Reply(json!({"trees": [tree], "workers": [fake::worker("a", "parked", &[], &[])], "next": "w1"})),
            Some(_) => Act::Reply(json!({"trees": [tree], "workers": [second]})),
        })
    });
    let (code, out, err) = run(&mut fake.roost(), &["status"]);
    let lines: Vec<_> = out.lines().collect();
    assert_eq!((code, lines.len()), (0, 3), "{out}{err}");
    assert!(lines[0].contains("tree t1") && lines[0].contains("budget 2/10"), "{out}");
    assert_eq!(lines[1..], ["  a  parked", "    b\\x07  queued 4 (cap)"]);
}

#[test]
fn small_verbs() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, params| {
        Some(Act::Reply(match method {
            "attach" => fake::opened(),
            "interrupt" => json!({"stopped": 0, "generation": 2}),
            "pause" => json!({"paused": params["paused"]}),
            "close" => json!({"stopped": 2}),
            "stop" => json!({"workers": [{"name": "a", "result": "stopped"}, {"name": "b", "result": "already_settled"}]}),
            "daemon.status" => {
                json!({"supervisor_pid": 1, "broker_pid": 2, "version": "v", "protocol": 1, "socket": "/s", "state_dir": "/d",
                                      "trees": 0, "live": 0, "queued": 0, "connections": 1})
            }
            _ => return None,
        }))
    });
    for (words, wanted) in [
        (&["interrupt"][..], "nothing to do\n"),
        (&["pause"], "paused\n"),
        (&["resume"], "running\n"),
        (&["close", "--now"], "closed, 2 stopped\n"),
        (&["stop", "a", "b"], "a stopped\nb already settled\n"),
        (&["interrupt", "--tree", "t1"], "nothing to do\n"),
        (&["daemon", "start"], "running (process 1)\n"),
    ] {
        assert_eq!(run(&mut fake.roost(), words), (0, wanted.into(), String::new()), "{words:?}");
    }
    assert_eq!(fake.calls("attach").len(), 1);
    let (_, out, _) = run(&mut fake.roost(), &["daemon", "status", "--json"]);
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&status["supervisor_pid"], &status["versions"]["protocol"]), (&json!(1), &json!(1)));
}

#[test]
fn a_foreign_runtime_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    if std::os::unix::fs::chown(dir.path(), Some(12_345), None).is_err() {
        // Only root can make a directory somebody else's; the rule itself has a unit test.
        return;
    }
    let mut command = fake::roost(Path::new(""));
    let (code, _, err) = run(command.env("XDG_RUNTIME_DIR", dir.path()), &["status"]);
    assert!(code == 2 && err.contains("XDG_RUNTIME_DIR") && err.contains("12345"), "{err}");
}
