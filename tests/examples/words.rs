//! What words cost: a message, a delivery, and two hundred connections that say nothing. Ratios within one run.
//!
//! `cargo run --release -p roost-tests --example words`, after `cargo build --release --workspace`. The example is its own worker: started with
//! the word `worker` it speaks the worker protocol.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use roost::proto::message::deliver::ItemKind;
use roost::proto::message::launch::{Runner, Task};
use roost::proto::message::tree::Settings;
use roost::{Config, Lead, LeadEvent, Places, Worker, WorkerEvent};
use roost_tests::real::Home;

/// Calls of one kind.
const CALLS: usize = 1_000;
/// Words of one child on their way to its lead.
const FLOOD: usize = 5_000;
/// Connections that say nothing.
const IDLE: usize = 200;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        return work();
    }
    let home = Home::new();
    home.roost(["daemon", "start", "--idle-exit", "0"]).run().ok();
    let places = Places { socket: Some(home.socket().into()), state_dir: Some(home.state_dir().into()) };
    let config = Config::with_places(places).expect("a configuration").without_identity();
    let mut lead = Lead::open(config, Settings::default(), None).expect("a tree");
    let argv = [std::env::current_exe().expect("this program").into_os_string(), "worker".into()];
    let task = Task { runner: Runner::Worker, name: Some("w".into()), ..roost::task(argv) };
    lead.launch(vec![task]).expect("a worker");
    wait_for(&mut lead, 1);

    let bare = median(CALLS, echo());
    let synced = median(CALLS, sync(&home));
    let say = |lead: &mut Lead| {
        lead.message("w", "noted", None).expect("accepted");
    };
    let message = median(CALLS, |_| say(&mut lead));
    println!("bare round trip of a socket      {:>8.1} us", bare);
    println!("one synced append of 4 KiB       {:>8.1} us", synced);
    println!("message, on disk, to its receipt {:>8.1} us   {:.2} x (round trip + sync)", message, message / (bare + synced));

    let begun = Instant::now();
    lead.message("w", &format!("flood {FLOOD}"), None).expect("accepted");
    wait_for(&mut lead, FLOOD);
    let seconds = begun.elapsed().as_secs_f64();
    println!("child to lead, acknowledged      {:>8.0} words/s", FLOOD as f64 / seconds);

    let idle: Vec<UnixStream> = (0..IDLE).map(|_| hello(&home)).collect();
    let crowded = median(CALLS, |_| say(&mut lead));
    println!("message beside {} idle           {:>8.1} us   {:.2} x without them", idle.len(), crowded, crowded / message);
    home.roost(["daemon", "stop", "--now"]).run().ok();
}

/// Takes in words until so many have come.
fn wait_for(lead: &mut Lead, count: usize) {
    let mut seen = 0;
    while seen < count {
        let Some(LeadEvent::Items(items)) = lead.next(Some(Duration::from_secs(60))).expect("a daemon") else { panic!("{seen} came") };
        let words = |kind: &ItemKind| matches!(kind, ItemKind::ChildMessage { .. });
        seen += lead.accept(items.items).expect("accepted").iter().filter(|item| words(&item.what)).count();
    }
}

/// The median of so many in microseconds.
fn median(count: usize, mut once: impl FnMut(usize)) -> f64 {
    let mut times: Vec<f64> = Vec::with_capacity(count);
    for n in 0..count {
        let begun = Instant::now();
        once(n);
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    times[count / 2]
}

/// A line there and back between two threads.
fn echo() -> impl FnMut(usize) {
    let (mut here, mut there) = UnixStream::pair().expect("a pair");
    std::thread::spawn(move || {
        let mut line = [0; 256];
        while let Ok(count @ 1..) = there.read(&mut line) {
            if there.write_all(&line[..count]).is_err() {
                return;
            }
        }
    });
    move |_| {
        here.write_all(&[b'x'; 200]).expect("written");
        here.read_exact(&mut [0; 200]).expect("read");
    }
}

fn sync(home: &Home) -> impl FnMut(usize) {
    let mut file = std::fs::File::create(home.file("synced")).expect("a file");
    move |_| {
        file.write_all(&[7; 4_096]).expect("written");
        file.sync_data().expect("synced");
    }
}

/// A connection that has said hello and says nothing more.
fn hello(home: &Home) -> UnixStream {
    let mut stream = UnixStream::connect(home.socket()).expect("a daemon");
    let hello = br#"{"jsonrpc":"2.0","id":1,"method":"hello","params":{"protocol_min":1,"protocol_max":1,"client":"idle"}}"#;
    stream.write_all(&[&hello[..], b"\n"].concat()).expect("written");
    stream.read_exact(&mut [0; 40]).expect("a welcome");
    stream
}

/// The worker: says that it is there, takes everything in, and floods its lead when it is told to.
fn work() {
    let mut worker = Worker::connect().expect("a daemon");
    worker.tell_lead("here").expect("told");
    while let Some(event) = worker.next(None).expect("a daemon") {
        let WorkerEvent::Items(items) = event else { return };
        for item in worker.accept(items.items).expect("accepted") {
            let ItemKind::LeadMessage { text, .. } = item.what else { continue };
            let flood = text.strip_prefix("flood ").and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
            for n in 0..flood {
                worker.tell_lead(&format!("word {n}")).expect("told");
            }
        }
    }
}
