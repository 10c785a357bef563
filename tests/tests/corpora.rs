//! Foreign bytes, on stable and in CI: every file of `tests/data/corpora/` and some thousands of deterministic mutations of them go
//! through the same functions as the fuzz targets (`fuzz/README.md`).
//!
//! The seeds were written by the test at the end (`cargo test -p roost-tests --test corpora -- --ignored`); what a fuzzer finds is
//! added beside them under a name that says what it showed.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use roost_core::event::Record;
use roost_proto::message::METHODS;
use roost_tests::decoders;

#[path = "corpora/mutate.rs"]
mod mutate;
#[path = "corpora/seeds.rs"]
mod seeds;

use mutate::Mutator;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/corpora")
}

/// The files of a corpus, by name.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(corpora().join(name))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus {name}");
    files
}

/// Replays a corpus, and so many mutations of each of its files. What fails is kept and named.
fn replay(name: &str, mutations: u64, decode: impl Fn(&[u8])) {
    let files = corpus(name);
    let try_one = |what: &str, bytes: &[u8]| {
        if catch_unwind(AssertUnwindSafe(|| decode(bytes))).is_err() {
            let kept = std::env::temp_dir().join(format!("roost-corpus-{name}-{}", std::process::id()));
            fs::write(&kept, bytes).unwrap();
            panic!("{what} of corpus {name} failed; its bytes are in {}", kept.display());
        }
    };
    for (number, (file, bytes)) in files.iter().enumerate() {
        try_one(file, bytes);
        let other = &files[(number + 1) % files.len()].1;
        for seed in 0..mutations {
            let mutated = Mutator::new(seed).mutate(bytes, other);
            try_one(&format!("mutation {seed} of {file}"), &mutated);
        }
    }
}

#[test]
fn lines() {
    replay("frame", 2_000, decoders::frame);
}

#[test]
fn calls() {
    replay("rpc", 1_500, decoders::rpc);
}

#[test]
fn the_supervisors_link() {
    replay("link", 3_000, decoders::link);
}

/// Where nothing survives and nothing is slow.
fn scratch() -> tempfile::TempDir {
    let fast = Path::new("/dev/shm");
    let within = if fast.is_dir() { fast.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("roost-corpora-").tempdir_in(within).unwrap()
}

#[test]
fn journals() {
    let directory = scratch();
    replay("journal", 120, |bytes| drop(decoders::journal(bytes, &directory.path().join("s"))));
}

/// A fuzzer finds its way to a method only from a seed of it.
#[test]
fn every_method_and_every_message_of_the_link_has_a_seed() {
    let calls: BTreeSet<String> = corpus("rpc").iter().filter_map(|(_, bytes)| decoders::understood(bytes)).collect();
    let missing: Vec<&&str> = METHODS.iter().filter(|method| !calls.contains(**method)).collect();
    assert!(missing.is_empty(), "no seed of {missing:?}");
    let expected = |name: &str| seeds::links().into_iter().find(|(seed, _)| *seed == name).unwrap().1;
    for name in ["to-supervisor", "to-broker"] {
        assert!(fs::read(corpora().join("link").join(name)).unwrap() == expected(name), "{name} is not what the link says now");
    }
}

/// No damage is taken for a record: what a damaged journal gives is what was in the sound one, or less of its end, or nothing.
#[test]
fn a_damaged_journal_tells_no_lies() {
    let directory = scratch();
    let at = directory.path().join("s");
    for (name, bytes) in corpus("journal").into_iter().filter(|(name, _)| name.starts_with("sound-")) {
        let sound = decoders::journal(&bytes, &at).unwrap();
        assert!(sound.len() >= 3, "{name} has {} records", sound.len());
        let (mut refused, mut cut) = (0, BTreeSet::new());
        for seed in 0..150 {
            let (position, bit) = Mutator::new(seed).bit(bytes.len());
            let mut flipped = bytes.clone();
            flipped[position] ^= bit;
            match decoders::journal(&flipped, &at) {
                Ok(records) => {
                    assert!(is_start(&records, &sound), "{name}, bit {bit} of byte {position}: {records:?}");
                    cut.insert(sound.len() - records.len());
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 0, "{name}: no damage was noticed; cut were {cut:?}");
    }
}

fn is_start(records: &[Record], sound: &[Record]) -> bool {
    sound.starts_with(records)
}

#[test]
#[ignore = "writes tests/data/corpora anew"]
fn write_the_seeds() {
    for (corpus, name, bytes) in seeds::all(&scratch().path().join("s")) {
        let directory = corpora().join(corpus);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), bytes).unwrap();
    }
}
