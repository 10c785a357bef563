//! `roost logs`: all processes in order, and following to the end.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::bounded::{PATIENCE, output, start};
use crate::fake::{self, Act, Fake};

/// State and files as `status` tells them; the test changes them.
type Told = Arc<Mutex<(&'static str, Vec<PathBuf>)>>;

fn status(told: &Told) -> Value {
    let told = told.lock().unwrap();
    let paths: Vec<_> = told.1.iter().map(PathBuf::as_path).collect();
    json!({"trees": [], "workers": [fake::worker("w", told.0, &paths, &[])]})
}

#[test]
fn all_processes_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let paths = ["1", "2"].map(|name| dir.path().join(name));
    fs::write(&paths[0], "first\n").unwrap();
    fs::write(&paths[1], b"second \xff").unwrap();
    let told: Told = Arc::new(Mutex::new(("ended", paths.to_vec())));
    let fake = Fake::start(&dir.path().join("s"), move |method, _| (method == "status").then(|| Act::Reply(status(&told))));
    let output = output(fake.roost().args(["logs", "W"]));
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"first\nsecond \xff"[..]));
}

/// The watch is served by hand here, because the test decides when its notifications go out.
#[test]
fn following_ends_with_the_worker() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out");
    fs::write(&path, "one\n").unwrap();
    let told: Told = Arc::new(Mutex::new(("running", vec![path.clone()])));
    let socket = dir.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let (tell_watch, watch) = std::sync::mpsc::channel();
    let seen = Arc::clone(&told);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, seen, tell_watch) = (stream.unwrap(), Arc::clone(&seen), tell_watch.clone());
            std::thread::spawn(move || {
                let mut lines = std::io::BufRead::lines(std::io::BufReader::new(stream.try_clone().unwrap()));
                while let Some(Ok(line)) = lines.next() {
                    let call: Value = serde_json::from_str(&line).unwrap();
                    let result = match call["method"].as_str().unwrap() {
                        "status" => status(&seen),
                        "watch" => fake::progress(1),
                        _ => json!({"protocol": 1, "daemon": "fake", "role": "root"}),
                    };
                    writeln!(stream, "{}", json!({"jsonrpc": "2.0", "id": call["id"], "result": result})).unwrap();
                    if call["method"] == "watch" {
                        tell_watch.send(stream.try_clone().unwrap()).unwrap();
                    }
                }
            });
        }
    });
    let mut command = fake::roost(&socket);
    command.env("ROOST_TREE", "t1").env("ROOST_TOKEN", fake::TOKEN);
    let mut child = start(command.args(["logs", "w", "-f"]).stdout(Stdio::piped()));
    let mut stdout = child.stdout.take().unwrap();
    let mut read = |count: usize| {
        let mut bytes = vec![0; count];
        stdout.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(read(4), "one\n");
    // No notification: the file alone tells it.
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"two\n").unwrap();
    assert_eq!(read(4), "two\n");
    // A second process of the same worker, then its end.
    let second = dir.path().join("out2");
    fs::write(&second, "three\n").unwrap();
    *told.lock().unwrap() = ("ended", vec![path, second]);
    let mut watch = watch.recv_timeout(PATIENCE).unwrap();
    writeln!(watch, "{}", json!({"jsonrpc": "2.0", "method": "progress", "params": fake::progress(0)})).unwrap();
    assert_eq!(read(6), "three\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
