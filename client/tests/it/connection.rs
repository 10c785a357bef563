//! What a broken, silent or refusing daemon looks like from the library.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use roost::proto::message::daemon::DaemonStop;
use roost::proto::message::launch::Launch;
use roost::proto::message::park::Park;
use roost::proto::message::result::{ReadResult, Wait};
use roost::proto::message::tree::{Close, Settings};
use roost::proto::rpc::ErrorKind;
use roost::{Connection, Error, Watcher};
use serde_json::json;

use crate::fake::{self, Act, Fake};

/// A handler that breaks the connection at the first call of `method`, and answers it with `reply` later.
fn breaks_once(method: &'static str, reply: serde_json::Value) -> impl Fn(&str, &serde_json::Value) -> Option<Act> + Send + Sync {
    let tries = AtomicU32::new(0);
    move |called, _| match called {
        "open" => Some(Act::Reply(fake::opened())),
        called if called == method => Some(if tries.fetch_add(1, Ordering::Relaxed) == 0 { Act::Break } else { Act::Reply(reply.clone()) }),
        _ => None,
    }
}

fn launch() -> Launch {
    Launch {
        request_id: roost::request_id().unwrap(),
        tasks: vec![roost::task(["true"])],
        submitter: roost::submitter().unwrap(),
        foreground: true,
        attended: false,
        generation: None,
    }
}

#[test]
fn a_broken_connection_is_a_pause_and_the_request_stays_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), breaks_once("launch", fake::receipt("a")));
    let mut root = Connection::dial(fake.config()).unwrap();
    root.open(Settings::default(), None, false).unwrap();
    assert_eq!(root.launch(&launch()).unwrap().tasks[0].name, "a");
    let launches = fake.calls("launch");
    assert_eq!(launches.len(), 2);
    assert_eq!(launches[0], launches[1]);
    // The new connection speaks for the tree that the old one had opened.
    let hellos = fake.calls("hello");
    assert_eq!((hellos.len(), hellos[0].get("identity")), (2, None));
    assert_eq!(hellos[1]["identity"]["tree"], "t1");
}

#[test]
fn a_repeated_wait_does_not_wait_longer() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), breaks_once("wait", json!({"ended": [], "timed_out": true})));
    let mut root = Connection::dial(fake.config()).unwrap();
    assert!(
        root.wait(&Wait { request_id: "r1".into(), names: vec![], any: false, timeout_ms: Some(60_000), tell_later: false })
            .unwrap()
            .timed_out
    );
    let limits: Vec<_> = fake.calls("wait").iter().map(|wait| wait["timeout_ms"].as_u64().unwrap()).collect();
    assert!(limits[0] <= 60_000 && limits[1] < limits[0], "{limits:?}");
}

#[test]
fn a_waiting_result_comes_back_after_several_breaks() {
    let dir = tempfile::tempdir().unwrap();
    let tries = AtomicU32::new(0);
    let fake = Fake::start(&dir.path().join("s"), move |method, _| {
        (method == "result").then(|| match tries.fetch_add(1, Ordering::Relaxed) {
            0..3 => Act::Break,
            _ => Act::Reply(json!({"ended": fake::result("a", json!({"status": "completed"}), "hi", None)})),
        })
    });
    let mut root = Connection::dial(fake.config()).unwrap();
    let request = ReadResult { name: "a".into(), wait: true, ..ReadResult::default() };
    root.result(&request).unwrap();
    assert_eq!(fake.calls("result").len(), 4);
}

#[test]
fn a_park_or_close_whose_answer_was_lost_has_happened() {
    let dir = tempfile::tempdir().unwrap();
    let tries = AtomicU32::new(0);
    let fake = Fake::start(&dir.path().join("s"), move |method, _| {
        let kind = match method {
            "park" => "parked",
            "close" => "tree_closed",
            _ => return None,
        };
        Some(if tries.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) { Act::Break } else { Act::Refuse(kind) })
    });
    let mut connection = Connection::dial(fake.config()).unwrap();
    connection.park(&Park { context: Some("c".into()), context_path: None }).unwrap();
    assert_eq!(connection.close(&Close { now: false }).unwrap().stopped, 0);
    let too_large =
        connection.park(&Park { context: Some(roost::proto::bytes::Bytes(vec![b'a'; (1 << 20) + 1])), context_path: None }).unwrap_err();
    assert_eq!(too_large.kind(), "too_large");
}

#[test]
fn a_daemon_is_stopped_once() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, _| (method == "daemon.stop").then_some(Act::Break));
    let mut connection = Connection::dial(fake.config()).unwrap();
    let error = connection.daemon_stop(&DaemonStop { now: true, timeout_ms: None }).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    assert_eq!(fake.calls("daemon.stop").len(), 1);
}

#[test]
fn a_silent_daemon_is_named_with_its_socket_and_process() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |_, _| Some(Act::Hang));
    let config = roost::Config { answer_within: Duration::from_millis(100), ..fake.config() };
    fs::create_dir(&config.paths.state_dir).unwrap();
    fs::write(config.paths.lock(), "4711\n").unwrap();
    let Err(error) = Connection::dial(config) else { panic!("nobody answered") };
    assert_eq!(error.kind(), "unanswered");
    let text = error.to_string();
    assert!(text.contains(fake.socket.to_str().unwrap()) && text.contains("4711") && text.contains("hello"), "{text}");
}

#[test]
fn a_refusal_keeps_its_kind_and_the_connection() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, _| (method == "launch").then_some(Act::Refuse("budget")));
    let mut root = Connection::dial(fake.config()).unwrap();
    for _ in 0..2 {
        assert_eq!(root.launch(&launch()).unwrap_err().refusal(), Some(ErrorKind::Budget));
    }
    assert_eq!(fake.calls("hello").len(), 1);
}

#[test]
fn nonsense_is_a_protocol_error_and_not_a_hang() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, _| (method == "launch").then(|| Act::Reply(json!({"job": 7}))));
    let mut root = Connection::dial(fake.config()).unwrap();
    assert_eq!(root.launch(&launch()).unwrap_err().kind(), "protocol");
}

/// A worker's configuration. With no time at all for an answer, a call that had a time limit would fail at once.
fn worker(fake: &Fake) -> roost::Config {
    roost::Config { start: roost::Start::Await, answer_within: Duration::ZERO, ..fake.config() }
}

/// Every way in which a broker can go, or not be there yet, at this call.
const LOSSES: [(&str, Loss); 4] = [
    ("closed", || Act::Break),
    ("half a line", || Act::Half(json!({"protocol": 1, "daemon": "fake", "role": "operator"}))),
    ("hello came late", || Act::ShowOut("hello_first")),
    ("no room for another connection", || Act::ShowOut("limit")),
];
type Loss = fn() -> Act;

#[test]
fn to_a_worker_whatever_becomes_of_the_broker_is_a_pause() {
    for at in ["hello", "launch", "park"] {
        for (loss, act) in LOSSES {
            let dir = tempfile::tempdir().unwrap();
            let tries = AtomicU32::new(0);
            let fake = Fake::start(&dir.path().join("s"), move |method, _| {
                if method == at && tries.fetch_add(1, Ordering::Relaxed) < 3 {
                    return Some(act());
                }
                match method {
                    "launch" => Some(Act::Reply(fake::receipt("a"))),
                    "park" => Some(Act::Reply(json!({}))),
                    _ => None,
                }
            });
            let mut connection = Connection::dial(worker(&fake)).unwrap_or_else(|error| panic!("{at}, {loss}: {error}"));
            connection.launch(&Launch { foreground: false, ..launch() }).unwrap_or_else(|error| panic!("{at}, {loss}: {error}"));
            connection
                .park(&Park { context: Some("c".into()), context_path: None })
                .unwrap_or_else(|error| panic!("{at}, {loss}: {error}"));
            assert_eq!(fake.calls(at).len(), 4, "{at}, {loss}");
        }
    }
}

#[test]
fn a_worker_whose_call_is_refused_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Fake::start(&dir.path().join("s"), |method, _| (method == "launch").then_some(Act::Refuse("limit")));
    let mut connection = Connection::dial(worker(&fake)).unwrap();
    assert_eq!(connection.launch(&launch()).unwrap_err().refusal(), Some(ErrorKind::Limit));
    assert_eq!(fake.calls("launch").len(), 1);
}

#[test]
fn somebody_who_was_slow_to_say_hello_says_it_again_and_one_too_many_is_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let tries = AtomicU32::new(0);
    let fake = Fake::start(&dir.path().join("s"), move |_, _| match tries.fetch_add(1, Ordering::Relaxed) {
        0 => Some(Act::ShowOut("hello_first")),
        1 => None,
        _ => Some(Act::ShowOut("limit")),
    });
    Connection::dial(fake.config()).unwrap();
    let Err(error) = Connection::dial(fake.config()) else { panic!("there was no room") };
    assert_eq!((error.refusal(), fake.calls("hello").len()), (Some(ErrorKind::Limit), 3));
}

#[test]
fn a_wait_outlives_a_broker_that_is_slow_to_say_hello() {
    let dir = tempfile::tempdir().unwrap();
    let (hellos, waits) = (AtomicU32::new(0), AtomicU32::new(0));
    let fake = Fake::start(&dir.path().join("s"), move |method, _| match method {
        "hello" if hellos.fetch_add(1, Ordering::Relaxed) == 1 => Some(Act::Hang),
        "wait" if waits.fetch_add(1, Ordering::Relaxed) == 0 => Some(Act::Break),
        "wait" => Some(Act::Reply(json!({"ended": [], "timed_out": false}))),
        _ => None,
    });
    let config = roost::Config { answer_within: Duration::from_millis(500), ..fake.config() };
    let mut root = Connection::dial(config).unwrap();
    root.wait(&Wait { request_id: "r1".into(), names: vec![], any: false, timeout_ms: None, tell_later: false }).unwrap();
    assert_eq!((fake.calls("hello").len(), fake.calls("wait").len()), (3, 2));
}

#[test]
fn a_watch_goes_on_after_a_break() {
    let dir = tempfile::tempdir().unwrap();
    let tries = AtomicU32::new(0);
    let fake = Fake::start(&dir.path().join("s"), move |method, _| {
        (method == "watch").then(|| match tries.fetch_add(1, Ordering::Relaxed) {
            0 => Act::Progress(fake::progress(1), vec![fake::progress(2)]),
            _ => Act::Reply(fake::progress(3)),
        })
    });
    let mut watcher = Watcher::new(fake.config()).unwrap();
    let seen = [1, 2, 3].map(|_| watcher.next_progress().unwrap().live);
    assert_eq!(seen, [1, 2, 3]);
}
