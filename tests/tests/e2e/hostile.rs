//! Clients that leave, send junk, send too much or send nothing: each costs its own connection and nothing else.

use std::time::{Duration, Instant};

use roost_tests::real::{Home, Tree, Wire, find, is_up, kind_of};
use serde_json::{Value, json};

/// A deadline that is in no way a measure: bad connections are closed or answered at once, silent ones after 10 s.
const SOON: Duration = Duration::from_secs(8);

fn hello() -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {"protocol_min": 1, "protocol_max": 1, "client": "junk"}}).to_string()
        + "\n"
}

/// The kind of the next answer's error.
fn refused(wire: &mut Wire) -> String {
    let answer = wire.answer(SOON).expect("an answer");
    kind_of(&answer["error"]).to_owned()
}

// B04.
#[test]
fn one_bad_client_harms_nobody() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("w", "exec sleep 600");
    let pids = home.daemon();
    let before = find(pids.broker).unwrap().resident_kib();
    let socket = home.socket();
    let connect = || Wire::connect(&socket);
    // (i) connects and leaves, (ii) leaves in the middle of a line.
    drop(connect());
    let mut half = connect();
    half.bytes(b"{\"a\":").unwrap();
    drop(half);
    // (iii) 64 MiB without a line end, before and after hello; the daemon may close before all is written.
    for greeting in [String::new(), hello()] {
        let mut flood = connect();
        flood.bytes(greeting.as_bytes()).unwrap();
        let piece = vec![b'a'; 1 << 20];
        let taken = (0..64).take_while(|_| flood.bytes(&piece).is_ok()).count();
        assert!(flood.is_closed_within(SOON) && taken < 64, "{taken} MiB were taken");
    }
    // (iv) no UTF-8, (v) a hundred thousand brackets, (vi) a length prefix, and things that are JSON and no call.
    for bytes in [b"\xff\xfe\x00\n".to_vec(), [b"[".repeat(100_000), b"\n".to_vec()].concat(), b"\xff\xff\xff\xff\n".to_vec()] {
        let mut junk = connect();
        junk.bytes(hello().as_bytes()).unwrap();
        junk.answer(SOON).expect("a welcome");
        junk.bytes(&bytes).unwrap();
        assert_eq!(refused(&mut junk), "parse");
        // The connection is good for a good call afterwards.
        junk.call("daemon.status", &json!({})).unwrap();
    }
    for line in [
        "null",
        "[]",
        "{}",
        "3",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"status\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":-1,\"method\":\"status\"}",
    ] {
        let mut junk = connect();
        junk.bytes(hello().as_bytes()).unwrap();
        junk.answer(SOON).expect("a welcome");
        junk.bytes(format!("{line}\n").as_bytes()).unwrap();
        assert_eq!(refused(&mut junk), "invalid_request", "{line}");
    }
    // (vii) an unknown verb, wrong parameters, and anything before hello.
    let mut wire = home.wire();
    assert_eq!(kind_of(&wire.call("stauts", &json!({})).unwrap_err()), "unknown_method");
    assert_eq!(kind_of(&wire.call("stop", &json!({"names": 3})).unwrap_err()), "invalid_params");
    assert_eq!(kind_of(&wire.hello(None).unwrap_err()), "invalid_request");
    assert_eq!(kind_of(&connect().call("daemon.status", &json!({})).unwrap_err()), "hello_first");
    let versions = json!({"protocol_min": 99, "protocol_max": 100, "client": "future"});
    assert_eq!(kind_of(&connect().call("hello", &versions).unwrap_err()), "protocol_version");
    // (viii) a field that nobody knows is ignored, as `proto/src/message.rs` says.
    wire.call("daemon.status", &json!({"extra": {"deep": [1]}})).unwrap();
    // (ix) one byte every 10 ms: as slow as the case wants it, and served all the same.
    let mut slow = connect();
    for byte in hello().as_bytes() {
        slow.bytes(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(slow.answer(SOON).expect("a welcome")["result"]["role"], "operator");
    // R1: the same daemon, the worker runs, memory is back.
    assert_eq!(home.daemon(), pids);
    assert!(is_up(&tree.worker("w")));
    let after = find(pids.broker).unwrap().resident_kib();
    assert!(after < before + (32 << 10), "{before} KiB -> {after} KiB");
}

#[test]
fn a_client_that_says_nothing_is_cut_and_the_others_never_notice() {
    let home = Home::new();
    home.start_daemon(&[]);
    let mut silent: Vec<Wire> = (0..50).map(|_| Wire::connect(&home.socket())).collect();
    let since = Instant::now();
    for _ in 0..20 {
        let done = home.roost(["daemon", "status", "--json"]).run().ok();
        assert!(done.took < Duration::from_secs(1), "{done}");
    }
    // Hello must come within 10 s.
    let answer = silent[0].answer(Duration::from_secs(13)).expect("a last word");
    assert_eq!(kind_of(&answer["error"]), "hello_first");
    assert!(silent.iter_mut().all(|wire| wire.is_closed_within(Duration::from_secs(5))));
    assert!(since.elapsed() >= Duration::from_secs(9));
    assert_eq!(home.daemon_status()["connections"], 1);
}

#[test]
fn a_client_that_never_reads_costs_bounded_memory_and_stalls_nobody() {
    let home = Home::new();
    let tree = Tree::open(&home, &["--budget", "1000"]);
    for round in 0..5 {
        tree.spawn(&format!("w{round}"), "head -c 60000 /dev/zero | tr '\\0' x");
        tree.result(&format!("w{round}"));
    }
    let broker = home.daemon().broker;
    let before = find(broker).unwrap().resident_kib();
    let deaf: Vec<Wire> = (0..4)
        .map(|_| {
            let mut wire = tree.wire();
            let call = json!({"jsonrpc": "2.0", "id": 9, "method": "result", "params": {"name": "w0"}}).to_string() + "\n";
            // As many as it takes until the daemon takes no more, at most 20,000: 1.2 GB of answers that nobody reads.
            let burst = call.repeat(500);
            wire.nonblocking();
            let taken = (0..40).take_while(|_| wire.bytes(burst.as_bytes()).is_ok()).count();
            assert!(taken < 40, "the daemon takes calls whose answers nobody reads without end");
            wire
        })
        .collect();
    for _ in 0..10 {
        let done = tree.roost(["result", "w1"]).run().ok();
        assert!(done.took < Duration::from_secs(2), "{done}");
    }
    let after = find(broker).unwrap().resident_kib();
    assert!(after < before + (160 << 10), "{before} KiB -> {after} KiB");
    drop(deaf);
    assert_eq!(home.daemon_status()["live"], 0);
}

#[test]
fn a_peer_with_a_worker_token_of_a_closed_tree_is_nobody() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.roost(["close"]).run().ok();
    let mut wire = Wire::connect(&home.socket());
    // The root of a closed tree may look, and launch nothing.
    wire.hello(Some(json!({"tree": tree.id, "token": tree.token}))).unwrap();
    wire.call("status", &json!({})).unwrap();
    let launch = json!({
        "request_id": "r", "submitter": {"env": [], "cwd": "/", "umask": 18}, "tasks": [{"argv": ["true"]}],
    });
    assert_eq!(kind_of(&wire.call("launch", &launch).unwrap_err()), "tree_closed");
    let mut operator = home.wire();
    for (method, params) in
        [("launch", launch), ("cap", json!({"cap": 3})), ("wait", json!({"request_id": "x"})), ("stop", json!({"names": ["x"]}))]
    {
        let error = operator.call(method, &params).unwrap_err();
        assert_eq!((kind_of(&error), error["data"]["hint"] == Value::Null), ("no_tree", false), "{method}");
    }
}
