//! One bad peer at a time, of each kind that there is.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use roost_tests::real::{Home, Tree, Wire, kind_of};
use serde_json::{Value, json};

use crate::onlooker::Peace;

/// Far above what is needed, and far below what a peer that waits for nothing would take.
const SOON: Duration = Duration::from_secs(10);

pub fn hello() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"protocol_min": 1, "protocol_max": 1, "client": "bad"}}).to_string()
        + "\n"
}

/// A raw connection that has said hello.
pub fn greeted(home: &Home) -> UnixStream {
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    stream.write_all(hello().as_bytes()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let mut byte = [0];
    while byte != *b"\n" {
        stream.read_exact(&mut byte).unwrap();
    }
    stream
}

// B04, all of it, while a good client looks on and a worker runs.
#[test]
fn bad_peers_of_every_kind_one_after_the_other() {
    let home = Home::new();
    let peace = Peace::new(&home);
    let connect = || Wire::connect(&home.socket());
    drop(connect());
    for before in [String::new(), hello()] {
        let mut half = connect();
        half.bytes(before.as_bytes()).unwrap();
        half.bytes(b"{\"a\":").unwrap();
        drop(half);
        // Oversized: whoever is cut may hear why, or only that the connection is gone.
        let mut huge = connect();
        huge.bytes(before.as_bytes()).unwrap();
        let piece = vec![b'a'; 1 << 20];
        let taken = (0..64).take_while(|_| huge.bytes(&piece).is_ok()).count();
        assert!(taken < 16 && huge.is_closed_within(SOON), "{taken} MiB were taken");
        for junk in [b"\xff\xfe\x00\n".as_slice(), b"\xff\xff\xff\xff\n", &[b"[".repeat(100_000), b"\n".to_vec()].concat()] {
            let mut wire = connect();
            wire.bytes(before.as_bytes()).unwrap();
            // A stranger's 100,000 brackets are more than a hello may have: the connection may be gone already.
            wire.bytes(junk).ok();
            let answered = (0..2).filter_map(|_| wire.answer(Duration::from_secs(3))).any(|answer| !answer["error"].is_null());
            assert!(answered || wire.is_closed_within(SOON), "junk of {} bytes gets silence", junk.len());
        }
    }
    let mut good = peace.tree.wire();
    assert_eq!(kind_of(&good.call("no.such", &json!({})).unwrap_err()), "unknown_method");
    // A field that nobody knows is not minded (proto/src/message.rs).
    good.call("status", &json!({"no_such_field": [1]})).unwrap();
    drop(good);
    peace.holds();
}

#[test]
fn a_slow_peer_is_served_normally() {
    let home = Home::new();
    let peace = Peace::new(&home);
    let mut slow = Wire::connect(&home.socket());
    let status = json!({"jsonrpc": "2.0", "id": 2, "method": "daemon.status"}).to_string() + "\n";
    for byte in [hello(), status].concat().bytes() {
        slow.bytes(&[byte]).unwrap();
        // The case's own pace.
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(slow.answer(SOON).unwrap()["result"]["role"], "operator");
    assert!(slow.answer(SOON).unwrap()["result"]["broker_pid"].is_u64());
    drop(slow);
    peace.holds();
}

#[test]
fn silent_and_half_open_peers_are_shown_out() {
    let home = Home::new();
    let peace = Peace::new(&home);
    let since = Instant::now();
    let mut silent = Wire::connect(&home.socket());
    let mut mumbling = Wire::connect(&home.socket());
    mumbling.bytes(&hello().as_bytes()[..30]).unwrap();
    // Writes no more, and never said anything: gone at once. The same after a hello, whose answer it still gets.
    for said in [String::new(), hello()] {
        let mut half_open = UnixStream::connect(home.socket()).unwrap();
        half_open.write_all(said.as_bytes()).unwrap();
        half_open.shutdown(Shutdown::Write).unwrap();
        half_open.set_read_timeout(Some(SOON)).unwrap();
        let mut heard = String::new();
        half_open.read_to_string(&mut heard).expect("the daemon closes it");
        assert_eq!(heard.contains("\"result\""), !said.is_empty(), "{heard}");
    }
    for wire in [&mut silent, &mut mumbling] {
        let last = wire.answer(Duration::from_secs(20)).expect("a last word");
        assert_eq!(kind_of(&last["error"]), "hello_first");
        assert!(wire.is_closed_within(SOON));
    }
    assert!(since.elapsed() > Duration::from_secs(9), "the deadline is 10 s");
    peace.holds();
}

#[test]
fn a_flood_of_calls_whose_answers_nobody_reads_is_cut() {
    let home = Home::new();
    let peace = Peace::new(&home);
    let mut deaf = greeted(&home);
    let calls: String = (0..1_000).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "daemon.status"}).to_string() + "\n").collect();
    // Thousands of calls; a write that waits for long is the daemon's way to say that it takes no more.
    deaf.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut sent = 0_u64;
    let failed = loop {
        match deaf.write(calls.as_bytes()) {
            Ok(bytes) => sent += bytes as u64,
            Err(error) => break error,
        }
        assert!(sent < 1 << 30, "the daemon takes calls without end");
    };
    // Cut, not left waiting.
    // Which of the two it is depends on whether the daemon had read all when it closed.
    let is_cut = matches!(failed.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset);
    assert!(is_cut, "{failed}");
    assert!(sent > 100_000, "only {sent} bytes of calls were taken");
    peace.holds();
}

/// An answer that is large, asked for again and again by peers that do not read it.
#[test]
fn large_answers_to_deaf_peers_cost_bounded_memory() {
    let home = Home::new();
    let peace = Peace::new(&home);
    let queued = Tree::open(&home, &["--budget", "100000"]);
    queued.roost(["pause"]).run().ok();
    let mut root = queued.wire();
    for job in 0..50 {
        let tasks: Vec<Value> = (0..20).map(|_| json!({"argv": ["true"]})).collect();
        let submitter = json!({"env": [], "cwd": "/", "umask": 18});
        root.call("launch", &json!({"request_id": format!("r{job}"), "submitter": submitter, "tasks": tasks})).unwrap();
    }
    let before = peace.growth_kib();
    let calls: String = (0..250)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "status", "params": {"tree": queued.id}}).to_string() + "\n")
        .collect();
    let deaf: Vec<UnixStream> = (0..8)
        .map(|_| {
            let mut stream = greeted(&home);
            stream.set_nonblocking(true).unwrap();
            // As much as fits; the rest would not change anything.
            let taken = stream.write(calls.as_bytes()).unwrap();
            assert!(taken > 1_000, "{taken} bytes were taken");
            stream
        })
        .collect();
    // Ten answers to somebody else later, all that the daemon wants to do for them is done.
    for _ in 0..10 {
        root.call("status", &json!({})).unwrap();
    }
    let growth = peace.growth_kib().saturating_sub(before);
    assert!(growth < 32 << 10, "{growth} KiB for answers that nobody reads");
    drop(deaf);
    root.call("interrupt", &json!({})).unwrap();
    drop(root);
    peace.holds();
}
