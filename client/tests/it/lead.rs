//! `roost::Lead`: the lease, what is owed, and a broker that comes back.

use std::thread;
use std::time::Duration;

use roost::proto::message::deliver::Item;
use roost::proto::message::session::DeliveryMode;
use roost::proto::message::tree::Settings;
use roost::proto::rpc::ErrorKind;
use roost::{Lead, LeadEvent, Seen};
use serde_json::json;

use crate::bounded::PATIENCE;
use crate::peer::{Peer, completion, words};

const SOON: Option<Duration> = Some(Duration::ZERO);
const WITHIN: Option<Duration> = Some(PATIENCE);

fn play(daemon: impl FnOnce(&Peer) + Send + 'static, client: impl FnOnce(Lead)) {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let config = peer.root_config();
    let played = thread::spawn(move || daemon(&peer));
    client(Lead::connect(config, Seen::default()).unwrap());
    played.join().unwrap();
}

fn items(event: Option<LeadEvent>) -> Vec<Item> {
    let Some(LeadEvent::Items(items)) = event else { panic!("{event:?}") };
    items.items
}

fn numbers(items: &[Item]) -> Vec<u64> {
    items.iter().map(|item| item.seq).collect()
}

#[test]
fn it_opens_as_an_operator_and_speaks_as_the_root() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    let config = peer.root_config();
    let played = thread::spawn(move || {
        let (mut talk, hello) = peer.welcome(json!({"role": "operator"}));
        assert_eq!((hello.get("role"), hello.get("identity")), (None, None));
        talk.answer("open", crate::fake::opened());
        let (mut talk, hello) = peer.welcome(json!({"lease": 4, "delivery": "follow_up"}));
        assert_eq!((&hello["role"], &hello["identity"]["tree"]), (&json!("root"), &json!("t1")));
        talk.deliver(json!([completion(1, 1)]));
        assert_eq!(talk.accept_all(), json!([1]));
    });
    let mut lead = Lead::open(config, Settings::default(), Some("k".into())).unwrap();
    assert_eq!((lead.delivery(), lead.tree().to_string()), (DeliveryMode::FollowUp, "t1".into()));
    let owed = items(lead.next(WITHIN).unwrap());
    assert_eq!(numbers(&lead.accept(owed).unwrap()), [1]);
    drop(lead);
    played.join().unwrap();
}

#[test]
fn b15_a_completion_is_taken_in_once_over_three_reconnects_and_a_lost_answer() {
    play(
        |peer| {
            for _ in 0..3 {
                peer.welcome_root().deliver(json!([completion(1, 1)]));
            }
            let mut talk = peer.welcome_root();
            talk.deliver(json!([completion(1, 1)]));
            // Taken in, and the answer to that is lost: the second try is the same call, and gets the same answer.
            let first = talk.call("ack").params;
            drop(talk);
            let mut talk = peer.welcome_root();
            assert_eq!(talk.answer("ack", json!({"accepted": [1], "gone": []})), first);
            assert_eq!(first["items"], json!([1]));
            // The broker is restarted, and repeats itself; another completion is new.
            drop(talk);
            let mut talk = peer.welcome_root();
            talk.deliver(json!([completion(1, 1), completion(2, 2)]));
            assert_eq!(talk.accept_all(), json!([2]));
            talk.end();
        },
        |mut lead| {
            let first = items(lead.next(WITHIN).unwrap());
            assert_eq!(numbers(&first), [1]);
            // The other connections come and go while somebody listens.
            assert_eq!(lead.next(Some(Duration::from_millis(300))).unwrap(), None);
            assert_eq!(numbers(&lead.accept(first).unwrap()), [1]);
            let second = items(lead.next(WITHIN).unwrap());
            assert_eq!(numbers(&lead.accept(second).unwrap()), [2]);
        },
    );
}

#[test]
fn what_was_read_elsewhere_while_the_broker_was_away_is_not_taken_in() {
    let (tell_gone, gone) = std::sync::mpsc::channel();
    let (tell_handed, handed) = std::sync::mpsc::channel();
    play(
        move |peer| {
            let mut talk = peer.welcome_root();
            talk.deliver(json!([completion(1, 1), completion(2, 2)]));
            handed.recv_timeout(PATIENCE).unwrap();
            drop(talk);
            tell_gone.send(()).unwrap();
            let mut talk = peer.welcome_root();
            talk.deliver(json!([completion(1, 1)]));
            assert_eq!(talk.answer("ack", json!({"accepted": [1], "gone": [2]}))["items"], json!([1, 2]));
            talk.end();
        },
        |mut lead| {
            let both = items(lead.next(WITHIN).unwrap());
            tell_handed.send(()).unwrap();
            gone.recv_timeout(PATIENCE).unwrap();
            assert_eq!(numbers(&lead.accept(both).unwrap()), [1]);
        },
    );
}

#[test]
fn who_has_lost_the_lease_neither_accepts_nor_takes_it_back_by_reconnecting() {
    play(
        |peer| {
            let mut talk = peer.welcome_root();
            talk.deliver(json!([completion(1, 1)]));
            let cap = talk.call("cap");
            talk.push("lease_lost", json!({}));
            talk.reply(&cap, json!({"cap": 1, "live": 0, "queued": 0}));
            let ack = talk.call("ack");
            talk.refuse(&ack, "stale_lease");
            drop(talk);
            // A caller like any other, until it asks for the lease.
            let (mut talk, hello) = peer.welcome(json!({"role": "root"}));
            assert_eq!((hello.get("role"), &hello["identity"]["tree"]), (None, &json!("t1")));
            talk.answer("cap", json!({"cap": 1, "live": 0, "queued": 0}));
            let (mut talk, hello) = peer.welcome(json!({"lease": 3}));
            assert_eq!(hello["role"], "root");
            talk.deliver(json!([words(2, 1, "b")]));
            talk.end();
        },
        |mut lead| {
            let cap = roost::proto::message::tree::Cap { cap: None };
            let owed = items(lead.next(WITHIN).unwrap());
            lead.connection().cap(&cap).unwrap();
            assert_eq!(lead.next(WITHIN).unwrap(), Some(LeadEvent::LeaseLost));
            assert_eq!(lead.accept(owed).unwrap_err().refusal(), Some(ErrorKind::StaleLease));
            lead.connection().cap(&cap).unwrap();
            lead.take_lease().unwrap();
            assert_eq!(numbers(&items(lead.next(WITHIN).unwrap())), [2]);
        },
    );
}

#[test]
fn a_lease_that_is_taken_again_begins_anew() {
    play(
        |peer| {
            let mut talk = peer.welcome_root();
            talk.deliver(json!([words(1, 1, "a")]));
            let cap = talk.call("cap");
            talk.push("lease_lost", json!({}));
            talk.reply(&cap, json!({"cap": 1, "live": 0, "queued": 0}));
            let ack = talk.call("ack");
            talk.refuse(&ack, "stale_lease");
            drop(talk);
            let mut talk = peer.welcome_root();
            // The first was taken in by who had the lease meanwhile, and would count as accepted.
            talk.deliver(json!([words(2, 2, "b")]));
            assert_eq!(talk.accept_all(), json!([]));
            assert_eq!(talk.accept_all(), json!([2]));
            talk.end();
        },
        |mut lead| {
            let owed = items(lead.next(WITHIN).unwrap());
            lead.connection().cap(&roost::proto::message::tree::Cap { cap: None }).unwrap();
            // The loss is known by then, and was not told.
            assert_eq!(lead.accept(owed.clone()).unwrap_err().refusal(), Some(ErrorKind::StaleLease));
            lead.take_lease().unwrap();
            assert_eq!(lead.accept(owed).unwrap(), []);
            let owed = items(lead.next(WITHIN).unwrap());
            assert_eq!(numbers(&lead.accept(owed).unwrap()), [2]);
        },
    );
}

#[test]
fn it_waits_for_events_and_for_the_end_of_the_hold_and_not_longer() {
    play(
        |peer| {
            let (mut talk, _) = peer.welcome(json!({"lease": 1, "hold_ms": 200}));
            talk.deliver(json!([completion(1, 1)]));
            talk.end();
        },
        |mut lead| {
            // Whenever it arrives: it is there after its hold, without anything else coming.
            let since = std::time::Instant::now();
            assert_eq!(numbers(&items(lead.next(WITHIN).unwrap())), [1]);
            assert!(since.elapsed() >= Duration::from_millis(150), "{:?}", since.elapsed());
            assert_eq!(lead.next(SOON).unwrap(), None);
        },
    );
}

#[test]
fn only_a_root_is_a_lead() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::new(dir.path());
    for (config, variable) in [(peer.worker_config(), "ROOST_WORKER"), (crate::fake::config(&peer.socket), "ROOST_TREE")] {
        let error = Lead::connect(config, Seen::default()).err().unwrap();
        assert!(error.to_string().contains(variable), "{error}");
    }
}
