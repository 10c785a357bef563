//! `roost::Worker`: turns, parking, waiting calls, and what a break of the connection does to them.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::Duration;

use roost::proto::message::deliver::{Item, ItemKind};
use roost::proto::message::result::{ReadResult, ResultReply, Wait};
use roost::proto::message::session::Capability;
use roost::proto::message::worker::{Activity, Next, Report, SavedContext};
use roost::proto::rpc::ErrorKind;
use roost::{Items, Seen, Turn, Waited, Worker, WorkerEvent};
use serde_json::json;

use crate::bounded::PATIENCE;
use crate::peer::{self, Peer, Talk, completion, words};

const SOON: Option<Duration> = Some(Duration::ZERO);
const WITHIN: Option<Duration> = Some(PATIENCE);

/// A worker on the one side and the daemon, played by the test, on the other.
fn play(daemon: impl FnOnce(&Peer) + Send + 'static, client: impl FnOnce(Worker)) {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let config = peer.worker_config();
    let played = thread::spawn(move || daemon(&peer));
    client(Worker::connect_with(config, vec![Capability::Park, Capability::Steer], None).unwrap());
    played.join().unwrap();
}

fn items(event: Option<WorkerEvent>) -> Items {
    let Some(WorkerEvent::Items(items)) = event else { panic!("{event:?}") };
    items
}

fn numbers(items: &[Item]) -> Vec<u64> {
    items.iter().map(|item| item.seq).collect()
}

fn park(talk: &mut Talk) {
    talk.push("park", json!({"deadline_ms": 60_000}));
}

fn context(text: &str) -> Option<SavedContext> {
    Some(SavedContext::Bytes(text.into()))
}

#[test]
fn a_task_a_turn_and_the_end() {
    play(
        |peer| {
            let (mut talk, hello) = peer.welcome(peer::worker(json!({})));
            assert_eq!((&hello["role"], &hello["capabilities"]), (&json!("worker"), &json!(["park", "steer"])));
            assert_eq!((&hello["identity"]["worker"], &hello["identity"]["epoch"]), (&json!("w1"), &json!(1)));
            // Separators of other alphabets, a CR and a NUL are data.
            talk.deliver(json!([{"seq": 1, "type": "task", "text": "a\u{2028}b\u{85}c\r\nd\0e"}]));
            assert_eq!(talk.accept_all(), json!([1]));
            assert_eq!(talk.answer("report", json!({})), json!({"activity": "busy"}));
            let settle = talk.answer("settle", json!({"next": "exit"}));
            assert_eq!((&settle["answer"], &settle["context"]), (&json!("done"), &json!({"bytes": "ctx"})));
            assert_eq!(settle["request_id"].as_str().unwrap().len(), 32);
        },
        |mut worker| {
            assert_eq!((worker.me().name.as_str(), worker.continues(), worker.context().unwrap()), ("w", None, None));
            let task = items(worker.next(WITHIN).unwrap());
            assert!(task.wake);
            let input = worker.accept(task.items).unwrap();
            assert_eq!(input[0].what, ItemKind::Task { text: "a\u{2028}b\u{85}c\r\nd\0e".into() });
            worker.report(&Report { activity: Some(Activity::Busy), ..Report::default() }).unwrap();
            let turn = Turn { answer: Some("done".into()), context: context("ctx"), ..Turn::default() };
            assert_eq!(worker.settle(&turn).unwrap(), Next::Exit);
        },
    );
}

#[test]
fn a_settle_whose_answer_was_lost_is_the_same_settle_and_the_role_is_taken_again() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            let first = talk.call("settle").params;
            drop(talk);
            let (mut talk, hello) = peer.welcome(peer::worker(json!({})));
            assert_eq!((&hello["role"], &hello["capabilities"]), (&json!("worker"), &json!(["park", "steer"])));
            assert_eq!(talk.answer("settle", json!({"next": "wait"})), first);
        },
        |mut worker| assert_eq!(worker.settle(&Turn::default()).unwrap(), Next::Wait),
    );
}

#[test]
fn what_is_pushed_during_a_call_is_not_lost_and_a_repeat_after_a_break_is_dropped() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            let report = talk.call("report");
            talk.deliver(json!([words(1, 1, "a")]));
            talk.reply(&report, json!({}));
            assert_eq!(talk.accept_all(), json!([1]));
            drop(talk);
            let mut talk = peer.welcome_worker();
            // The acknowledgement is known to both; this one was on its way all the same. And m2 is new.
            talk.deliver(json!([words(1, 1, "a"), words(2, 2, "b")]));
            assert_eq!(talk.accept_all(), json!([2]));
        },
        |mut worker| {
            worker.report(&Report::default()).unwrap();
            let first = items(worker.next(WITHIN).unwrap());
            assert_eq!(numbers(&worker.accept(first.items).unwrap()), [1]);
            let second = items(worker.next(WITHIN).unwrap());
            assert_eq!(numbers(&second.items), [2]);
            worker.accept(second.items).unwrap();
        },
    );
}

#[test]
fn an_item_that_is_gone_is_not_used_and_a_withdrawn_one_is_not_even_asked_for() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            talk.deliver(json!([completion(1, 1), completion(2, 2), completion(3, 3)]));
            let report = talk.call("report");
            talk.push("withdraw", json!({"items": [3]}));
            talk.reply(&report, json!({}));
            assert_eq!(talk.answer("ack", json!({"accepted": [1], "gone": [2]}))["items"], json!([1, 2]));
        },
        |mut worker| {
            let handed = items(worker.next(WITHIN).unwrap());
            assert_eq!(numbers(&handed.items), [1, 2, 3]);
            worker.report(&Report::default()).unwrap();
            assert_eq!(numbers(&worker.accept(handed.items).unwrap()), [1]);
        },
    );
}

#[test]
fn a_bare_wake_is_accepted_settled_and_over() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            talk.deliver(json!([]));
            assert_eq!(talk.accept_all(), json!([]));
            talk.answer("settle", json!({"next": "exit"}));
            talk.end();
        },
        |mut worker| {
            let turn = items(worker.next(WITHIN).unwrap());
            assert_eq!((turn.wake, turn.items.len()), (true, 0));
            assert_eq!(worker.accept(turn.items).unwrap(), []);
            assert_eq!(worker.settle(&Turn::default()).unwrap(), Next::Exit);
        },
    );
}

#[test]
fn what_lay_here_before_a_new_welcome_is_not_told_unless_it_comes_again() {
    play(
        |peer| {
            let mut slow = peer::worker(json!({}));
            slow["hold_ms"] = json!(5_000);
            let (mut talk, _) = peer.welcome(slow);
            talk.deliver(json!([completion(1, 1), words(2, 1, "a")]));
            drop(talk);
            // Meanwhile the first was read by another way.
            let mut talk = peer.welcome_worker();
            talk.deliver(json!([words(2, 1, "a")]));
            assert_eq!(talk.accept_all(), json!([2]));
            talk.end();
        },
        |mut worker| {
            let turn = items(worker.next(WITHIN).unwrap());
            assert_eq!(numbers(&turn.items), [2]);
            worker.accept(turn.items).unwrap();
        },
    );
}

#[test]
fn a_daemon_that_was_away_hears_again_what_its_worker_does() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            assert_eq!(talk.answer("report", json!({})), json!({"activity": "tool"}));
            drop(talk);
            let mut talk = peer.welcome_worker();
            assert_eq!(talk.answer("report", json!({})), json!({"activity": "tool"}));
            talk.deliver(json!([words(1, 1, "a")]));
            assert_eq!(talk.accept_all(), json!([1]));
            talk.answer("settle", json!({"next": "wait"}));
            drop(talk);
            // Between turns there is nothing to say.
            let mut talk = peer.welcome_worker();
            talk.deliver(json!([words(2, 2, "b")]));
            assert_eq!(talk.accept_all(), json!([2]));
            talk.end();
        },
        |mut worker| {
            worker.report(&Report { activity: Some(Activity::Tool), ..Report::default() }).unwrap();
            let turn = items(worker.next(WITHIN).unwrap());
            worker.accept(turn.items).unwrap();
            worker.settle(&Turn::default()).unwrap();
            let turn = items(worker.next(WITHIN).unwrap());
            worker.accept(turn.items).unwrap();
        },
    );
}

#[test]
fn the_first_hello_waits_for_a_daemon_however_long_it_is_away() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    // With no time at all for it to come back, whoever has a limit would give up at once.
    let config = roost::Config { start: roost::Start::Await, back_within: Duration::ZERO, ..peer.worker_config() };
    let played = thread::spawn(move || {
        (0..3).for_each(|_| drop(peer.accept()));
        peer.welcome_worker().end();
    });
    drop(Worker::connect_with(config, Vec::new(), None).unwrap());
    played.join().unwrap();
    // And who has one says what is missing.
    let config = roost::Config { back_within: Duration::ZERO, ..crate::fake::config(&dir.path().join("nobody")) };
    let error = roost::Connection::dial(config).err().unwrap();
    assert!(error.kind() == "no_daemon" && error.to_string().contains("nobody"), "{error}");
}

#[test]
fn a_completion_is_held_back_so_that_a_withdrawal_can_overtake_it() {
    play(
        |peer| {
            let (mut talk, _) = peer.welcome(json!({"hold_ms": 60_000, "worker": {"name": "w", "execution": "x1", "wakes": false}}));
            talk.deliver(json!([completion(1, 1), words(2, 1, "after it")]));
            talk.push("withdraw", json!({"items": [1]}));
            talk.end();
        },
        |mut worker| {
            // Nothing is left of it but what stood behind it, at once.
            assert_eq!(numbers(&items(worker.next(WITHIN).unwrap()).items), [2]);
            assert_eq!(worker.next(SOON).unwrap(), None);
        },
    );
}

#[test]
fn what_was_not_accepted_in_a_turn_comes_again_after_it() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            talk.deliver(json!([words(1, 1, "a")]));
            let settle = talk.call("settle");
            talk.reply(&settle, json!({"next": "go_on"}));
            talk.deliver(json!([words(1, 1, "a")]));
            assert_eq!(talk.accept_all(), json!([1]));
            talk.end();
        },
        |mut worker| {
            items(worker.next(WITHIN).unwrap());
            assert_eq!(worker.settle(&Turn::default()).unwrap(), Next::GoOn);
            let again = items(worker.next(WITHIN).unwrap());
            assert_eq!(numbers(&worker.accept(again.items).unwrap()), [1]);
            assert_eq!(worker.next(SOON).unwrap(), None);
        },
    );
}

#[test]
fn what_a_process_before_has_taken_in_is_acknowledged_and_not_told() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let config = peer.worker_config();
    let played = thread::spawn(move || {
        let mut talk = peer.welcome_worker();
        talk.deliver(json!([completion(4, 9), words(5, 3, "new")]));
        assert_eq!(talk.accept_all(), json!([4]));
        talk.end();
    });
    let seen: Seen = serde_json::from_value(json!({"executions": ["x9"]})).unwrap();
    let mut worker = Worker::connect_with(config, vec![Capability::Park], None).unwrap();
    worker.remember(seen);
    assert_eq!(numbers(&items(worker.next(WITHIN).unwrap()).items), [5]);
    drop(worker);
    played.join().unwrap();
}

#[test]
fn a_request_to_park_is_answered_either_way_and_items_come_before_it() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            park(&mut talk);
            assert_eq!(talk.answer("park_decline", json!({})), json!({"not_before_ms": 1_000}));
            // Its time is over before anybody looks.
            talk.push("park", json!({"deadline_ms": 0}));
            park(&mut talk);
            talk.deliver(json!([words(1, 1, "a")]));
            let report = talk.call("report");
            talk.reply(&report, json!({}));
            talk.accept_all();
            assert_eq!(talk.answer("park_ready", json!({"parked": false}))["context"], json!({"bytes": "c"}));
            park(&mut talk);
            assert_eq!(talk.answer("park_ready", json!({"parked": true})).get("context"), None);
            talk.end();
        },
        |mut worker| {
            let Some(WorkerEvent::Park(ask)) = worker.next(WITHIN).unwrap() else { panic!("no park") };
            assert_eq!(ask.deadline_ms, Some(60_000));
            worker.park_decline(1_000).unwrap();
            worker.report(&Report::default()).unwrap();
            let first = items(worker.next(WITHIN).unwrap());
            worker.accept(first.items).unwrap();
            assert!(matches!(worker.next(WITHIN).unwrap(), Some(WorkerEvent::Park(_))));
            assert!(!worker.park_ready(context("c")).unwrap());
            assert!(matches!(worker.next(WITHIN).unwrap(), Some(WorkerEvent::Park(_))));
            assert!(worker.park_ready(None).unwrap());
        },
    );
}

#[test]
fn a_park_whose_answer_was_lost_has_happened() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            park(&mut talk);
            talk.call("park_ready");
            drop(talk);
            let mut talk = peer.accept();
            let hello = talk.call("hello");
            talk.refuse(&hello, "stale_epoch");
        },
        |mut worker| {
            assert!(matches!(worker.next(WITHIN).unwrap(), Some(WorkerEvent::Park(_))));
            assert!(worker.park_ready(context("c")).unwrap());
        },
    );
}

#[test]
fn a_wait_is_a_park_point_and_goes_on_when_it_comes_to_nothing() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            let wait = talk.call("wait");
            park(&mut talk);
            let ready = talk.call("park_ready");
            // The answer to the wait overtakes the one to the park.
            talk.reply(&wait, json!({"ended": [], "pending": ["b"], "timed_out": true}));
            talk.reply(&ready, json!({"parked": false}));
            talk.end();
        },
        |mut worker| {
            let wait = Wait { timeout_ms: Some(60_000), ..Wait::default() };
            let Waited::Park(_) = worker.wait(&wait).unwrap() else { panic!("no park") };
            assert!(!worker.park_ready(context("c")).unwrap());
            // The same call: it is not sent again.
            let Waited::Done(reply) = worker.wait(&wait).unwrap() else { panic!("not done") };
            assert!(reply.timed_out);
        },
    );
}

#[test]
fn a_woken_process_makes_the_call_again_that_the_one_before_was_parked_in() {
    play(
        |peer| {
            let (mut talk, _) = peer.welcome(peer::worker(json!({"wakes": true, "continues": "r77"})));
            let result = json!({"ended": crate::fake::result("a", json!({"status": "completed"}), "R", None)});
            let read = talk.answer("result", result.clone());
            assert_eq!((&read["request_id"], &read["name"], &read["wait"]), (&json!("r77"), &json!("a"), &json!(true)));
            // The next one is a call of its own; after a break it is sent again as it was.
            let first = talk.call("result").params;
            assert!(first["request_id"].as_str().unwrap().len() == 32);
            drop(talk);
            let mut talk = peer.welcome_worker();
            assert_eq!(talk.answer("result", result), first);
        },
        |mut worker| {
            assert_eq!(worker.continues(), Some("r77"));
            let read = ReadResult { name: "a".into(), wait: true, ..ReadResult::default() };
            assert!(matches!(worker.result(&read).unwrap(), Waited::Done(ResultReply::Ended(_))));
            assert_eq!(worker.continues(), None);
            assert!(matches!(worker.result(&read).unwrap(), Waited::Done(ResultReply::Ended(_))));
        },
    );
}

#[test]
fn words_that_arrive_during_a_wait_are_there_after_it() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            let launch = talk.call("launch");
            assert_eq!(launch.params["foreground"], true);
            talk.deliver(json!([words(1, 1, "meanwhile")]));
            talk.reply(&launch, crate::fake::receipt("a"));
            talk.end();
        },
        |mut worker| {
            let done = worker.launch_foreground(None, vec![roost::task(["true"])]).unwrap();
            assert!(matches!(done, Waited::Done(receipt) if receipt.tasks[0].name == "a"));
            assert_eq!(numbers(&items(worker.next(SOON).unwrap()).items), [1]);
        },
    );
}

#[test]
fn refusals_keep_their_kind_and_the_connection() {
    play(
        |peer| {
            let mut talk = peer.welcome_worker();
            for (method, kind) in
                [("message", "not_resumable"), ("tell_lead", "lead_parked"), ("stop", "unknown_worker"), ("wait", "deadlock")]
            {
                let call = talk.call(method);
                talk.refuse(&call, kind);
            }
            talk.answer("message", json!({"message": "m1", "sent": {"status": "steering", "execution": "x2"}}));
        },
        |mut worker| {
            assert_eq!(worker.message("a", "hi", Some(2)).unwrap_err().refusal(), Some(ErrorKind::NotResumable));
            assert_eq!(worker.tell_lead("hi").unwrap_err().refusal(), Some(ErrorKind::LeadParked));
            assert_eq!(worker.stop(&["a"]).unwrap_err().refusal(), Some(ErrorKind::UnknownWorker));
            assert_eq!(worker.wait(&Wait::default()).unwrap_err().refusal(), Some(ErrorKind::Deadlock));
            worker.message("a", "hi", None).unwrap();
        },
    );
}

#[test]
fn a_second_voice_and_a_process_that_is_no_worker_are_told_so() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let (worker, root) = (peer.worker_config(), peer.root_config());
    let played = thread::spawn(move || {
        let mut talk = peer.accept();
        let hello = talk.call("hello");
        talk.refuse(&hello, "already_connected");
    });
    let connect = |config| Worker::connect_with(config, Vec::new(), None).err().unwrap();
    assert_eq!(connect(worker).refusal(), Some(ErrorKind::AlreadyConnected));
    let error = connect(root);
    assert!(error.kind() == "environment" && error.to_string().contains("ROOST_WORKER"), "{error}");
    played.join().unwrap();
}

/// A worker whose standard input gets these pieces and ends, while it is in a call that is answered after that.
fn with_input(pieces: &'static [&'static str], client: impl FnOnce(Worker)) {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let config = peer.worker_config();
    let (read, mut write) = std::io::pipe().unwrap();
    let played = thread::spawn(move || {
        let mut talk = peer.welcome_worker();
        let call = talk.call("wait");
        for piece in pieces {
            write.write_all(piece.as_bytes()).unwrap();
        }
        drop(write);
        if pieces.concat() != "exit\n" {
            talk.reply(&call, json!({"ended": [], "pending": [], "timed_out": false}));
        }
        talk.end();
    });
    client(Worker::connect_with(config, vec![Capability::Park], Some(OwnedFd::from(read))).unwrap());
    played.join().unwrap();
}

#[test]
fn the_word_exit_on_standard_input_ends_every_wait() {
    for pieces in [&["exit\n"] as &[_], &["ex", "it\n"]] {
        with_input(pieces, |mut worker| {
            assert_eq!(worker.wait(&Wait::default()).unwrap(), Waited::Closing);
            assert_eq!(worker.next(WITHIN).unwrap(), Some(WorkerEvent::Closing));
        });
    }
}

#[test]
fn an_end_of_standard_input_without_a_word_is_the_death_of_a_supervisor() {
    for pieces in [&[] as &[_], &["exit"], &["an exit\n"], &["exit now\n"]] {
        with_input(pieces, |mut worker| {
            assert!(matches!(worker.wait(&Wait::default()).unwrap(), Waited::Done(_)));
            assert_eq!(worker.next(SOON).unwrap(), None);
        });
    }
}
