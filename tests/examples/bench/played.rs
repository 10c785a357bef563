//! What this program does as somebody else: the small process that measures raw spawning, and the workers of the rows.
//!
//! Times are those of the monotonic clock, which all processes of a machine share.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use roost::plain;
use roost::proto::bytes::Bytes;
use roost::proto::message::deliver::ItemKind;
use roost::proto::message::launch::{Allowance, Launch, Task};
use roost::proto::message::park::Park;
use roost::{Config, Connection};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds of the monotonic clock.
pub fn now() -> u64 {
    let at = clock_gettime(ClockId::Monotonic);
    u64::try_from(at.tv_sec).expect("after the boot") * 1_000_000_000 + u64::try_from(at.tv_nsec).expect("below a second")
}

/// Plays the role that the arguments name, if they name one.
pub fn play(words: &[String]) -> bool {
    let number = |at: usize| words[at].parse().expect("a number");
    let as_usize = |at: usize| usize::try_from(number(at)).expect("a count");
    match words.first().map(String::as_str) {
        Some("play-raw") => raw(as_usize(1), as_usize(2), &words[3..]),
        Some("play-raw-stop") => raw_stop(as_usize(1), &words[2..]),
        Some("play-stamp") => stamp(now()),
        Some("play-parent") => parent(now(), &words[1..]),
        Some("play-node") => node(number(1)),
        _ => return false,
    }
    true
}

/// Spawns and reaps so many, so many at a time; says how long it took.
fn raw(count: usize, width: usize, argv: &[String]) {
    let begun = now();
    let mut live = 0;
    for _ in 0..count {
        if live == width {
            reap();
            live -= 1;
        }
        spawn(argv);
        live += 1;
    }
    (0..live).for_each(|_| reap());
    eprintln!("{}", now() - begun);
}

/// Starts so many, and says how long it takes to end them all.
fn raw_stop(count: usize, argv: &[String]) {
    let pids: Vec<Pid> = (0..count).map(|_| spawn(argv)).collect();
    // Whoever measures says when: they must be at rest.
    std::io::stdin().read_exact(&mut [0]).expect("a word");
    let begun = now();
    for pid in &pids {
        kill_process(*pid, Signal::TERM).expect("our own child");
    }
    pids.iter().for_each(|_| reap());
    eprintln!("{}", now() - begun);
}

/// `posix_spawn`, as the standard library does it where it can.
#[expect(clippy::zombie_processes, reason = "`reap` takes whoever ends first")]
fn spawn(argv: &[String]) -> Pid {
    let mut command = Command::new(&argv[0]);
    let child = command.args(&argv[1..]).stdin(Stdio::inherit()).spawn().expect("a program that can be started");
    Pid::from_child(&child)
}

fn reap() {
    waitpid(None, WaitOptions::empty()).expect("a child").expect("its end");
}

/// A worker that does nothing but say when it began and when it ended.
fn stamp(began: u64) {
    say(began);
}

fn say(began: u64) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{began} {}\n", now()).as_bytes()).expect("standard output");
}

/// A worker that parks over this one child, and ends when it is woken. The woken one says when it was welcome.
fn parent(began: u64, child: &[String]) {
    let mut connection = Connection::dial(Config::from_env().expect("a worker")).expect("the daemon");
    if plain::woken().expect("a context").is_some() {
        return say(now());
    }
    launch(&mut connection, vec![roost::task(child)]);
    connection.park(&Park { context: Some(Bytes::from("parent")), context_path: None }).expect("a place");
    say(began);
}

/// What a node has so far.
#[derive(Serialize, Deserialize)]
struct Saved {
    sum: u64,
    outstanding: usize,
}

/// A node with so many in its subtree, itself counted: answers how many there were. Every node with children parks over them.
fn node(size: u64) {
    let mut saved = match plain::woken().expect("a context") {
        Some(woken) => {
            let mut saved: Saved = serde_json::from_slice(&woken.context).expect("our own context");
            for item in woken.wake.items {
                if let ItemKind::Completion { result } = item.what {
                    saved.sum += result.answer.trim().parse::<u64>().expect("a number");
                    saved.outstanding -= 1;
                }
            }
            saved
        }
        None => Saved { sum: 1, outstanding: 0 },
    };
    let is_first = saved.sum == 1 && saved.outstanding == 0;
    if (size == 1 && is_first) || (!is_first && saved.outstanding == 0) {
        return println!("{}", saved.sum);
    }
    let mut connection = Connection::dial(Config::from_env().expect("a worker")).expect("the daemon");
    if is_first {
        let left = (size - 1) / 2;
        let sizes = [size - 1 - left, left].into_iter().filter(|size| *size > 0);
        let tasks: Vec<Task> = sizes.map(child).collect();
        saved.outstanding = tasks.len();
        launch(&mut connection, tasks);
    }
    let Err(error) = plain::park(&mut connection, &serde_json::to_vec(&saved).expect("JSON"));
    panic!("no place to park: {error}");
}

/// The task of such a node.
fn child(size: u64) -> Task {
    let argv = [own(), "play-node".into(), size.to_string()];
    Task { max_subagents_allowed: Allowance::Exactly(size - 1), ..roost::task(argv) }
}

fn launch(connection: &mut Connection, tasks: Vec<Task>) {
    let (request_id, submitter) = (roost::request_id().expect("randomness"), roost::submitter().expect("surroundings"));
    let launch = Launch { request_id, tasks, submitter, foreground: false, attended: false, generation: None };
    connection.launch(&launch).expect("a receipt");
}

/// This program.
pub fn own() -> String {
    std::env::current_exe().expect("our own program").to_str().expect("a path in UTF-8").to_owned()
}
