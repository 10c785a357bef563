//! A journal that is not as it should be: said on the first command, by file and with the next step; nothing wiped, a copy kept.

use std::fs::{self, File};
use std::path::Path;

use roost_tests::real::{Home, Tree, journal_file, not_tested};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use serde_json::Value;

/// Where SQLite keeps `user_version`, our format.
const VERSION: std::ops::Range<usize> = 60..64;

/// A tree with one end and one worker that waits in a paused queue; its daemon has left in order.
fn a_tree_at_rest(home: &Home) -> Tree<'_> {
    let tree = Tree::open(home, &["--cap", "1"]);
    tree.spawn("first", "printf 'the first answer'");
    assert_eq!(tree.answer("first"), "the first answer");
    tree.roost(["pause"]).run().ok();
    tree.spawn("second", "printf 'the second answer'");
    home.roost(["daemon", "stop"]).run().ok();
    tree
}

/// The tree goes on where it was.
fn goes_on(tree: &Tree<'_>) {
    tree.roost(["resume"]).run().ok();
    assert_eq!(tree.answer("second"), "the second answer");
    assert_eq!(tree.answer("first"), "the first answer");
}

/// A start on demand fails, and says what this is about.
#[track_caller]
fn refused(tree: &Tree<'_>, what: &str, words: &[&str]) {
    let done = tree.roost(["status"]).run();
    assert_eq!(done.code(), 4, "{what}: {done}");
    for word in words {
        assert!(done.err().contains(word), "{what}: {word:?} is not in: {done}");
    }
}

/// The copies beside the journal.
fn copies(home: &Home) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(home.state_dir()).unwrap().flatten().map(|entry| entry.path());
    // Beside each there may be the copy of a log.
    let is_copy =
        |path: &std::path::PathBuf| path.to_string_lossy().contains("roost.db.damaged-") && !path.to_string_lossy().ends_with("-wal");
    let mut found: Vec<_> = entries.filter(is_copy).collect();
    found.sort();
    found
}

/// Removes the copies, and the empty log that an attempt may have left.
fn forget(home: &Home) {
    for entry in fs::read_dir(home.state_dir()).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("roost.db.damaged-") || name == "roost.db-wal" {
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[test]
fn a_damaged_file_is_refused_and_kept_and_a_good_copy_goes_on() {
    let home = Home::new();
    let tree = a_tree_at_rest(&home);
    let file = journal_file(&home);
    let good = fs::read(&file).unwrap();
    let text = b"job_accepted";
    // All of them: a page may hold what was once written there and counts no more.
    let records: Vec<usize> = (0..good.len() - text.len()).filter(|at| good[*at..].starts_with(text)).collect();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    for (what, bytes) in [
        ("half of it", changed(&|bytes| bytes.truncate(good.len() / 2))),
        ("cut inside of a page", changed(&|bytes| bytes.truncate(good.len() - 1_000))),
        ("one byte of it", changed(&|bytes| bytes.truncate(1))),
        ("zeros", vec![0; good.len()]),
        ("pages of zeros", changed(&|bytes| records.iter().for_each(|at| bytes[at / 4096 * 4096..][..4096].fill(0)))),
        ("a flipped bit in a record", changed(&|bytes| records.iter().for_each(|at| bytes[*at] ^= 1))),
        ("a flipped bit in the header", changed(&|bytes| bytes[16] ^= 1)),
        ("another kind of file", b"#!/bin/sh\necho this is no journal\n".repeat(200)),
    ] {
        fs::write(&file, &bytes).unwrap();
        let path = file.to_str().unwrap();
        // Twice: the second start finds what the first has left, and makes no second copy.
        for _ in 0..2 {
            refused(&tree, what, &[path, "is damaged", "Put a good copy in its place, or move it"]);
        }
        assert!(fs::read(&file).unwrap() == bytes, "{what}: the file was changed");
        let copies = copies(&home);
        let [copy] = &copies[..] else { panic!("{what}: {copies:?}") };
        assert!(fs::read(copy).unwrap() == bytes, "{what}: the copy is another");
        forget(&home);
    }
    fs::write(&file, &good).unwrap();
    goes_on(&tree);
}

#[test]
fn no_flipped_bit_changes_what_is_told() {
    let home = Home::new();
    let tree = a_tree_at_rest(&home);
    let expected = tree.status();
    home.roost(["daemon", "stop"]).run().ok();
    let file = journal_file(&home);
    let good = fs::read(&file).unwrap();
    // All over the file, at places that look like none in particular.
    let places = (0..24).map(|number| (number * good.len() / 24 + number * 397) % good.len());
    let mut refusals = 0;
    for place in places {
        let mut bytes = good.clone();
        bytes[place] ^= 1 << (place % 8);
        fs::write(&file, &bytes).unwrap();
        let done = tree.roost(["status", "--json"]).run();
        if done.code() == 0 {
            // Free space, or a page that has nothing to say: then nothing of it was believed.
            assert_eq!(done.json(), expected, "a flipped bit at {place}");
            home.roost(["daemon", "stop"]).run().ok();
        } else {
            let error: Value = done.json();
            assert!(error["error"]["message"].as_str().unwrap().contains(file.to_str().unwrap()), "at {place}: {done}");
            refusals += 1;
        }
        forget(&home);
    }
    assert!(refusals > 0);
    fs::write(&file, &good).unwrap();
    goes_on(&tree);
}

#[test]
fn garbage_behind_the_end_is_no_part_of_it() {
    let home = Home::new();
    let tree = a_tree_at_rest(&home);
    let file = journal_file(&home);
    let append = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        bytes.extend((0..5_000_u32).map(|number| (number * 31 % 251) as u8));
        fs::write(path, bytes).unwrap();
    };
    append(&file);
    let expected = tree.status();
    // The log, which is not empty after a record and a kill.
    tree.roost(["cap", "2"]).run().ok();
    home.kill_daemon();
    append(&home.state_dir().join("roost.db-wal"));
    let status = tree.status();
    assert_eq!((&status["workers"], &status["trees"][0]["cap"]), (&expected["workers"], &Value::from(2)));
    assert!(copies(&home).is_empty());
    goes_on(&tree);
}

#[test]
fn a_newer_format_is_left_untouched() {
    let home = Home::new();
    let tree = a_tree_at_rest(&home);
    let file = journal_file(&home);
    let good = fs::read(&file).unwrap();
    let mut newer = good.clone();
    newer[VERSION].copy_from_slice(&99_u32.to_be_bytes());
    fs::write(&file, &newer).unwrap();
    refused(&tree, "newer", &[file.to_str().unwrap(), "format 99", "start the newer roostd"]);
    assert!(fs::read(&file).unwrap() == newer && copies(&home).is_empty());
    fs::write(&file, &good).unwrap();
    goes_on(&tree);
}

#[test]
fn a_journal_that_is_gone_beside_its_log_is_not_begun_anew() {
    let home = Home::new();
    let tree = Tree::open(&home, &[]);
    tree.spawn("first", "printf 'the first answer'");
    assert_eq!(tree.answer("first"), "the first answer");
    home.kill_daemon();
    let (file, log) = (journal_file(&home), home.state_dir().join("roost.db-wal"));
    let good = (fs::read(&file).unwrap(), fs::read(&log).unwrap());
    fs::remove_file(&file).unwrap();
    refused(&tree, "gone", &[file.to_str().unwrap(), "missing", "write-ahead log"]);
    assert!(fs::read(&log).unwrap() == good.1);
    fs::write(&file, &good.0).unwrap();
    assert_eq!(tree.answer("first"), "the first answer");
}

/// A file that not even root may write.
struct Immutable(File);

impl Immutable {
    fn make(path: &Path) -> Option<Self> {
        let file = File::open(path).unwrap();
        let set = ioctl_getflags(&file).and_then(|flags| ioctl_setflags(&file, flags | IFlags::IMMUTABLE));
        set.inspect_err(|error| not_tested(&format!("no file can be made immutable: {error}"))).ok().map(|()| Self(file))
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        let flags = ioctl_getflags(&self.0).and_then(|flags| ioctl_setflags(&self.0, flags - IFlags::IMMUTABLE));
        if let Err(error) = flags {
            eprintln!("a file stays immutable: {error}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let home = Home::new();
    let tree = a_tree_at_rest(&home);
    let file = journal_file(&home);
    let good = fs::read(&file).unwrap();
    let Some(immutable) = Immutable::make(&file) else { return };
    refused(&tree, "immutable", &[file.to_str().unwrap(), "can be written"]);
    drop(immutable);
    assert!(fs::read(&file).unwrap() == good && copies(&home).is_empty());
    goes_on(&tree);
}
