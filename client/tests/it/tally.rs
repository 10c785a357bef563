//! `examples/tally` under a broker of forty lines: it runs each worker, and what a worker launched once it has parked.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

use roost::proto::bytes::Bytes;
use serde_json::{Value, json};

use crate::bounded;
use crate::fake::{self, Act, Fake};

/// What the workers asked for: launches per worker, and the last context.
#[derive(Default)]
struct Asked {
    launches: BTreeMap<String, Vec<Value>>,
    parked: Option<Bytes>,
    current: String,
    workers: u64,
    /// What the current worker may launch.
    allowance: u64,
}

struct Broker {
    asked: Arc<Mutex<Asked>>,
    fake: Fake,
    context: PathBuf,
    /// Hand answers over one by one instead of all at once.
    early: bool,
}

impl Broker {
    fn start(dir: &Path, early: bool) -> Self {
        let asked: Arc<Mutex<Asked>> = Arc::default();
        let shared = Arc::clone(&asked);
        let fake = Fake::start(&dir.join("s"), move |method, params| {
            let mut asked = shared.lock().unwrap();
            Some(Act::Reply(match method {
                "hello" => {
                    json!({"protocol": 1, "daemon": "fake", "role": "worker", "budget_remaining": asked.allowance})
                }
                "launch" => {
                    let tasks = params["tasks"].as_array().unwrap().clone();
                    assert!(tasks.len() <= 20);
                    let worker = asked.current.clone();
                    asked.launches.entry(worker).or_default().extend(tasks);
                    fake::receipt("x")
                }
                "park" => {
                    asked.parked = Some(serde_json::from_value(params["context"].clone()).unwrap());
                    json!({})
                }
                _ => return None,
            }))
        });
        Self { asked, fake, context: dir.join("context"), early }
    }

    fn process(&self, worker: &str, argv: &[Bytes], epoch: u32, wake: Option<Value>) -> Output {
        let mut command = Command::new(argv[0].as_os_str());
        command.args(argv[1..].iter().map(Bytes::as_os_str)).env("ROOST_SOCKET", &self.fake.socket).env("ROOST_TREE", "t1");
        command.env("ROOST_TOKEN", fake::TOKEN).env("ROOST_WORKER", worker).env("ROOST_EPOCH", epoch.to_string());
        command.stdin(std::process::Stdio::null());
        if let Some(wake) = wake {
            let input = self.context.with_extension("in");
            fs::write(&input, wake.to_string()).unwrap();
            command.env("ROOST_WAKE", "1").env("ROOST_CONTEXT", &self.context).stdin(fs::File::open(input).unwrap());
        }
        self.asked.lock().unwrap().current = worker.to_owned();
        bounded::start(command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped())).wait_with_output().unwrap()
    }

    /// Runs a worker with all that descends from it to its end.
    fn work(&self, argv: &[Bytes], allowance: u64) -> Output {
        let worker = {
            let mut asked = self.asked.lock().unwrap();
            asked.allowance = allowance;
            asked.workers += 1;
            format!("w{}", asked.workers)
        };
        let mut output = self.process(&worker, argv, 1, None);
        let mut context = self.asked.lock().unwrap().parked.take();
        let children = self.asked.lock().unwrap().launches.remove(&worker).unwrap_or_default();
        let mut items: Vec<Value> = children.iter().enumerate().map(|(index, task)| self.child(index, task)).collect();
        let mut epoch = 1;
        while let Some(saved) = context.take() {
            let rest = if self.early { items.split_off(1.min(items.len())) } else { Vec::new() };
            let wake = json!({"reason": "settled", "active_children": rest.len(), "items": items});
            fs::write(&self.context, &saved.0).unwrap();
            epoch += 1;
            output = self.process(&worker, argv, epoch, Some(wake));
            context = self.asked.lock().unwrap().parked.take();
            items = rest;
        }
        output
    }

    fn child(&self, index: usize, task: &Value) -> Value {
        let argv: Vec<Bytes> = serde_json::from_value(task["argv"].clone()).unwrap();
        let output = self.work(&argv, task["max_subagents_allowed"].as_u64().unwrap_or(0));
        let outcome = match output.status.code() {
            Some(0) => json!({"status": "completed"}),
            code => json!({"status": "failed", "kind": "exit", "code": code}),
        };
        let mut item = fake::result(&format!("child{index}"), outcome, &String::from_utf8(output.stdout).unwrap(), None);
        (item["type"], item["seq"]) = ("completion".into(), index.into());
        item
    }
}

fn tally() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_roost")).parent().unwrap().join("examples/tally")
}

fn words(directory: &Path) -> Vec<Bytes> {
    vec![tally().into_os_string().into(), directory.as_os_str().into()]
}

/// What it should say, and how many directories there are.
fn expected(top: &Path) -> (Vec<u8>, u64) {
    let (mut files, mut lines, mut bytes, mut directories, mut largest) = (0, 0, 0, 0, None::<(usize, PathBuf)>);
    let mut open = vec![top.to_owned()];
    while let Some(directory) = open.pop() {
        directories += 1;
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                let content = fs::read(entry.path()).unwrap();
                files += 1;
                bytes += content.len();
                lines += content.iter().filter(|byte| **byte == b'\n').count();
                let is_larger = largest
                    .as_ref()
                    .is_none_or(|(size, path)| (content.len(), path.as_os_str().as_bytes()) > (*size, entry.path().as_os_str().as_bytes()));
                if is_larger {
                    largest = Some((content.len(), entry.path()));
                }
            }
        }
    }
    let mut text = format!("files {files}\nlines {lines}\nbytes {bytes}\nlargest").into_bytes();
    if let Some((_, path)) = largest {
        text.push(b' ');
        text.extend_from_slice(path.as_os_str().as_bytes());
    }
    text.push(b'\n');
    (text, directories)
}

fn odd_tree(top: &Path) {
    let odd: [&[u8]; 7] = [b"a b", b"new\nline", b"'quo\"te", b"\xff\xfe", b"-dash", b"plain", b"$(x)"];
    for (index, name) in odd.iter().enumerate() {
        let directory = top.join(std::ffi::OsStr::from_bytes(name));
        fs::create_dir_all(directory.join("deeper/still")).unwrap();
        fs::write(directory.join("deeper/still").join(std::ffi::OsStr::from_bytes(name)), "x\n".repeat(index % 3)).unwrap();
        fs::write(directory.join("f"), vec![b'\n'; 50]).unwrap();
    }
    for index in 0..25 {
        fs::create_dir(top.join(format!("many{index}"))).unwrap();
    }
    std::os::unix::fs::symlink("..", top.join("plain/up")).unwrap();
    std::os::unix::fs::symlink("plain/f", top.join("link")).unwrap();
}

#[test]
fn totals_are_those_of_the_tree_however_the_answers_arrive() {
    for early in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        odd_tree(&top);
        let (text, directories) = expected(&top);
        let broker = Broker::start(dir.path(), early);
        let output = broker.work(&words(&top), directories - 1);
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr)), (Some(0), "".into()));
        assert_eq!(String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&text));
        assert_eq!(output.stdout, text);
        assert_eq!(broker.asked.lock().unwrap().workers, directories);
    }
}

#[test]
fn an_empty_tree_has_no_largest_file() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().join("-top");
    fs::create_dir(&top).unwrap();
    let output = Broker::start(dir.path(), false).work(&words(&top), 0);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "files 0\nlines 0\nbytes 0\nlargest\n");
}

#[test]
fn a_small_budget_says_the_one_that_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("top/a/b/c")).unwrap();
    let output = Broker::start(dir.path(), false).work(&words(&dir.path().join("top")), 2);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && err.contains("--budget 4"), "{err}");
}

#[test]
fn a_failed_child_fails_its_lead_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::start(dir.path(), false);
    let mut item = fake::result("kid", json!({"status": "failed", "kind": "exit", "code": 1}), "", None);
    (item["type"], item["seq"]) = ("completion".into(), 1.into());
    let saved = json!({"totals": {"files": 0, "lines": 0, "bytes": 0, "largest": null}, "outstanding": 1, "launched": 1, "todo": []});
    fs::write(&broker.context, saved.to_string()).unwrap();
    let wake = json!({"reason": "settled", "active_children": 0, "items": [item]});
    let output = broker.process("w1", &words(dir.path()), 2, Some(wake));
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && err.contains("kid failed: exit code 1"), "{err}");
    // And a child that is gone without a word is not waited for for ever.
    let wake = json!({"reason": "settled", "active_children": 0, "items": []});
    assert_eq!(broker.process("w1", &words(dir.path()), 2, Some(wake)).status.code(), Some(1));
}

#[test]
fn a_directory_that_cannot_be_read_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let output = Broker::start(dir.path(), false).work(&words(&dir.path().join("gone")), 0);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && err.contains("gone"), "{err}");
}
