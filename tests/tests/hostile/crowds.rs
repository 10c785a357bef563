//! Many peers at once.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use roost_proto::limits::CONNECTIONS_MAX;
use roost_tests::real::{Home, Wire, kind_of};
use serde_json::json;

use crate::onlooker::Peace;
use crate::single::{greeted, hello};

#[test]
fn a_thousand_idle_connections_cost_little_and_one_more_is_told_so() {
    let home = Home::new();
    let peace = Peace::new(&home);
    // The good client has one.
    let mut idle: Vec<UnixStream> = (1..CONNECTIONS_MAX).map(|_| greeted(&home)).collect();
    let mut one_more = Wire::connect(&home.socket());
    let answer = one_more.answer(Duration::from_secs(10)).expect("an answer");
    assert_eq!(kind_of(&answer["error"]), "limit");
    assert!(one_more.is_closed_within(Duration::from_secs(10)));
    idle.pop();
    // Its place is free a moment later; each try is an event of its own.
    let until = Instant::now() + Duration::from_secs(10);
    while !is_let_in(&home) {
        assert!(Instant::now() < until, "the place of an ended connection is not given again");
    }
    let growth = peace.growth_kib();
    assert!(growth < 32 << 10, "{growth} KiB for idle connections");
    drop(idle);
    peace.holds();
}

/// The refusal for want of a place comes before the hello is read, and names no call; the connection may be gone already.
fn is_let_in(home: &Home) -> bool {
    let mut wire = Wire::connect(&home.socket());
    let hello = json!({"protocol_min": 1, "protocol_max": 1, "client": "roost-tests"});
    wire.send_as(1, "hello", &hello).is_ok() && wire.answer(Duration::from_secs(10)).is_some_and(|answer| answer["error"].is_null())
}

/// Peers that say nothing hold no place that somebody with a name wants.
#[test]
fn strangers_keep_nobody_out() {
    let home = Home::new();
    let peace = Peace::new(&home);
    let silent: Vec<UnixStream> = (0..CONNECTIONS_MAX + 50).map(|_| UnixStream::connect(home.socket()).unwrap()).collect();
    for _ in 0..20 {
        let done = home.roost(["daemon", "status", "--json"]).run().ok();
        assert!(done.took < Duration::from_secs(2), "{done}");
    }
    drop(silent);
    peace.holds();
}

#[test]
fn storms_of_peers_that_connect_and_leave() {
    let home = Home::new();
    let peace = Peace::new(&home);
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let socket = home.socket();
            threads.spawn(move || {
                for round in 0..2_000 {
                    let mut stream = UnixStream::connect(&socket).unwrap();
                    // A third leaves at once, a third within its hello, a third without waiting for the answer. Whether it is
                    // still heard does not matter.
                    let words = hello();
                    let said = [0, 20, words.len()][(round + thread) % 3];
                    stream.write_all(&words.as_bytes()[..said]).ok();
                }
            });
        }
    });
    peace.holds();
}

/// Forty times six MiB of lines that do not end: no single one is too long, all together are.
#[test]
fn long_lines_are_bounded_in_sum_and_short_ones_go_on() {
    let home = Home::new();
    let peace = Peace::new(&home);
    let mut open = Vec::new();
    for _ in 0..40 {
        let mut stream = greeted(&home);
        stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        // Who is refused may hear it by a closed connection in the middle of its write.
        if stream.write_all(&vec![b' '; 6 << 20]).is_ok() {
            open.push(stream);
        }
    }
    let growth = peace.growth_kib();
    assert!(growth < 64 << 10, "{growth} KiB for lines that do not end");
    // A large launch has room again as soon as one of them is gone.
    drop(open);
    let big = "x".repeat(4 << 20);
    let launch = json!({
        "request_id": "big", "submitter": {"env": [["PATH", "/usr/bin:/bin"]], "cwd": "/", "umask": 18},
        "tasks": [{"argv": ["wc", "-c"], "task": big, "name": "big"}],
    });
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let mut root = peace.tree.wire();
        match root.call("launch", &launch) {
            Ok(_) => break,
            Err(error) => assert!(kind_of(&error) == "limit" && Instant::now() < until, "{error}"),
        }
    }
    assert_eq!(peace.tree.answer("big").trim(), (4 << 20).to_string());
    peace.holds_within(64 << 10);
}
