//! The soak: random trees and random kills for as long as it is told, then whether memory, descriptors and files stayed flat.
//!
//! `cargo run -p roost-tests --example soak -- MINUTES [SEED]`, after the workspace was built. Every round counts a random directory
//! tree with `examples/tally` under a random cap, and checks the totals against what it had made. Meanwhile the broker is killed at
//! random moments; in some rounds a worker or the supervisor is. Prints a table and ends with 1 when something was wrong.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

use roost_tests::real::Home;
use roost_tests::sim::rng::Rng;

/// Ended workers that the daemon keeps, so that its memory has a bound that is reached soon.
const KEEP: &str = "500";
/// How much more memory the last quarter may need than the second, in percent: what allocators keep is not the same every time.
const GROWTH_PERCENT_MAX: u64 = 20;

/// What a round does to the daemon.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Harm {
    None,
    Brokers(u64),
    Worker,
    Supervisor,
}

/// What was seen after a round.
struct Sample {
    resident_kib: u64,
    descriptors: usize,
    state_kib: u64,
}

/// A number of a sample.
type Reading = fn(&Sample) -> u64;

#[derive(Default)]
struct Tally {
    only_brokers: bool,
    rounds: u64,
    directories: u64,
    brokers: u64,
    workers: u64,
    supervisors: u64,
    wrong: Vec<String>,
    samples: Vec<Sample>,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let minutes = words.next().unwrap_or(15);
    let seed = words.next().unwrap_or(1);
    let end = Instant::now() + Duration::from_secs(minutes * 60);
    let home = Home::new();
    home.roost(["daemon", "start", "--keep", KEEP, "--idle-exit", "0"]).run().ok();
    let mut rng = Rng::of(seed, "soak");
    let mut tally = Tally { only_brokers: words.next() == Some(1), ..Tally::default() };
    while Instant::now() < end && tally.wrong.len() < 10 {
        round(&home, &mut rng, &mut tally);
    }
    report(&tally, minutes, seed)
}

fn round(home: &Home, rng: &mut Rng, tally: &mut Tally) {
    tally.rounds += 1;
    let below = format!("tree-{}", tally.rounds);
    let expected = grow(home, rng, &below, tally);
    let harm = match if tally.only_brokers { 5 } else { rng.below(10) } {
        0..=4 => Harm::None,
        5..=7 => Harm::Brokers(1 + rng.below(2)),
        8 => Harm::Worker,
        _ => Harm::Supervisor,
    };
    let cap = (1 + rng.below(6)).to_string();
    let example = home.example("tally");
    let words = ["run", "--cap", &cap, "--budget", "100000", "--"];
    let run = home.roost(words).arg(example).arg(home.file(&below)).within(Duration::from_secs(120)).start();
    do_harm(home, rng, harm, tally);
    let done = run.end();
    let untouched = matches!(harm, Harm::None | Harm::Brokers(_));
    if untouched && (done.code() != 0 || done.text() != expected) {
        tally.wrong.extend(complaints(home));
        tally.wrong.push(format!(
            "round {}: code {}, {:?} instead of {expected:?}: {}",
            tally.rounds,
            done.code(),
            done.text(),
            done.err()
        ));
    } else if !untouched && done.code() == 0 && done.text() != expected {
        tally.wrong.push(format!("round {}: a wrong answer passed for a right one: {:?}", tally.rounds, done.text()));
    }
    let status = home.daemon_status();
    if status["live"] != 0 || status["queued"] != 0 || !home.workers().is_empty() {
        tally.wrong.push(format!("round {}: something is left: {status}, {:?}", tally.rounds, home.workers()));
    }
    if home.zombies() > 0 {
        tally.wrong.push(format!("round {}: {} zombies", tally.rounds, home.zombies()));
    }
    std::fs::remove_dir_all(home.file(&below)).expect("our own directory");
    tally.samples.push(sample(home));
}

/// What workers had to complain about, of all rounds that were not meant to fail.
fn complaints(home: &Home) -> Vec<String> {
    let entries = std::fs::read_dir(home.state_dir().join("executions")).into_iter().flatten().flatten();
    let errors = entries.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "err"));
    let texts = errors.filter_map(|entry| Some((entry.path(), std::fs::read_to_string(entry.path()).ok()?)));
    texts.filter(|(_, text)| !text.is_empty()).map(|(path, text)| format!("{}: {text}", path.display())).collect()
}

/// Makes a random directory tree and says what counting it must print.
fn grow(home: &Home, rng: &mut Rng, below: &str, tally: &mut Tally) -> String {
    let mut directories = vec![home.file(below)];
    std::fs::create_dir(&directories[0]).expect("a fresh name");
    let (mut files, mut lines, mut bytes) = (0, 0, 0);
    let mut largest: Option<(usize, std::path::PathBuf)> = None;
    for number in 0..5 + rng.below(60) {
        let parent = directories[usize::try_from(rng.below(directories.len() as u64)).expect("small")].clone();
        let directory = parent.join(format!("d {number}"));
        std::fs::create_dir(&directory).expect("a fresh name");
        for file in 0..rng.below(4) {
            let path = directory.join(format!("f{file}"));
            let text = "line\n".repeat(usize::try_from(rng.below(200)).expect("small"));
            files += 1;
            lines += text.lines().count();
            bytes += text.len();
            let better = largest.as_ref().is_none_or(|(size, known)| text.len() > *size || (text.len() == *size && path < *known));
            std::fs::write(&path, &text).expect("a file of ours");
            if better {
                largest = Some((text.len(), path));
            }
        }
        directories.push(directory);
    }
    tally.directories += directories.len() as u64;
    let largest = largest.map_or(String::new(), |(_, path)| format!(" {}", path.display()));
    let mut text = String::new();
    writeln!(text, "files {files}\nlines {lines}\nbytes {bytes}\nlargest{largest}").expect("a string takes it");
    text
}

fn do_harm(home: &Home, rng: &mut Rng, harm: Harm, tally: &mut Tally) {
    // A random moment is what is tested; there is no event to wait for.
    let mut moment = || sleep(Duration::from_millis(rng.below(300)));
    match harm {
        Harm::None => {}
        Harm::Brokers(times) => {
            for _ in 0..times {
                moment();
                home.kill_broker();
                tally.brokers += 1;
            }
        }
        Harm::Worker => {
            moment();
            let victim = home.workers().into_values().next().and_then(|processes| processes.first().map(|process| process.pid));
            if let Some(watched) = victim.and_then(roost_tests::real::Watched::try_new) {
                watched.kill();
                tally.workers += 1;
            }
        }
        Harm::Supervisor => {
            moment();
            home.kill_supervisor();
            tally.supervisors += 1;
            // As the next user would: whoever starts it again says what to keep.
            home.roost(["daemon", "start", "--keep", KEEP, "--idle-exit", "0"]).run().ok();
        }
    }
}

fn sample(home: &Home) -> Sample {
    let (supervisors, brokers) = home.daemons();
    let (of_supervisor, of_broker) = home.descriptors();
    Sample {
        resident_kib: supervisors.iter().chain(&brokers).map(|process| process.resident_kib()).sum(),
        descriptors: of_supervisor + of_broker,
        state_kib: size_kib(&home.state_dir()),
    }
}

fn size_kib(directory: &std::path::Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size_kib(&entry.path()),
        Ok(metadata) => metadata.len().div_ceil(1024),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

fn median(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(0)
}

fn report(tally: &Tally, minutes: u64, seed: u64) -> ExitCode {
    let quarter = |nth: usize, of: Reading| {
        let count = tally.samples.len();
        median(tally.samples[count * (nth - 1) / 4..count * nth / 4].iter().map(of).collect())
    };
    let rows: [(&str, Reading); 3] = [
        ("memory of supervisor and broker, KiB", |sample| sample.resident_kib),
        ("descriptors of both", |sample| sample.descriptors as u64),
        ("state directory, KiB", |sample| sample.state_kib),
    ];
    println!(
        "{minutes} minutes, seed {seed}: {} rounds, {} workers' directories; killed: {} brokers, {} workers, {} supervisors",
        tally.rounds, tally.directories, tally.brokers, tally.workers, tally.supervisors
    );
    println!("| median of | 1st quarter | 2nd | 3rd | 4th |\n|---|---|---|---|---|");
    let mut flat = true;
    for (what, of) in rows {
        let [first, second, third, fourth] = [1, 2, 3, 4].map(|nth| quarter(nth, of));
        println!("| {what} | {first} | {second} | {third} | {fourth} |");
        flat &= fourth * 100 <= second * (100 + GROWTH_PERCENT_MAX);
    }
    tally.wrong.iter().for_each(|wrong| println!("WRONG: {wrong}"));
    println!("{}", if flat { "flat" } else { "NOT FLAT" });
    if flat && tally.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
