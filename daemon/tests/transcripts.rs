//! Transcripts: the writer over small bounds and bad disks, and a real daemon that writes them.
// Helpers of a test are tests too; clippy sees only the functions with the attribute.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/src/not_tested.rs"]
mod not_tested;
mod transcripts {
    pub mod daemon;
    pub mod disk;
}

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use roost_proto::id::{Epoch, ExecutionId};
use roostd::transcript::{Bounds, Line, Places, Transcripts, What};
use serde_json::Value;
use transcripts::disk::{SmallDisk, until};

const X1: ExecutionId = ExecutionId(1);
const X2: ExecutionId = ExecutionId(2);

struct World {
    dir: tempfile::TempDir,
    bounds: Bounds,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("executions")).unwrap();
        Self { dir, bounds: Bounds { kept_free: 0, ..Bounds::default() } }
    }

    fn places(&self) -> Places {
        Places { directory: self.dir.path().join("transcripts"), executions: self.dir.path().join("executions") }
    }

    fn path(&self, execution: ExecutionId) -> PathBuf {
        self.places().directory.join(format!("{execution}.jsonl"))
    }

    fn lines(&self, execution: ExecutionId) -> Vec<Value> {
        lines(&fs::read(self.path(execution)).unwrap())
    }

    /// Writes these with a broker of their own, from its start to its end. Says what is lossy before that end and after it.
    fn write(&self, put: &[(ExecutionId, &str)]) {
        let (transcripts, writer) = Transcripts::new(self.places(), self.bounds);
        put.iter().for_each(|(execution, text)| transcripts.put(*execution, line(text)));
        let thread = std::thread::spawn(|| writer.run());
        drop(transcripts);
        thread.join().unwrap();
    }

    /// As a later broker sees it.
    fn is_lossy(&self, execution: ExecutionId) -> bool {
        let (transcripts, writer) = Transcripts::new(self.places(), self.bounds);
        let is_lossy = transcripts.is_lossy(execution);
        let thread = std::thread::spawn(|| writer.run());
        drop(transcripts);
        thread.join().unwrap();
        is_lossy
    }
}

fn line(text: &str) -> Line {
    Line { at_ms: 7, epoch: Epoch(2), what: What::Report { text: text.to_owned() } }
}

/// All lines, each whole.
fn lines(bytes: &[u8]) -> Vec<Value> {
    assert!(bytes.is_empty() || bytes.ends_with(b"\n"), "{}", String::from_utf8_lossy(bytes));
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| serde_json::from_slice(line).unwrap()).collect()
}

fn text(line: &Value) -> &str {
    assert_eq!((&line["at_ms"], &line["epoch"]), (&7.into(), &2.into()), "{line}");
    if line["kind"] == "gap" { line["why"].as_str().unwrap() } else { line["text"].as_str().unwrap() }
}

fn texts(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(text).collect()
}

#[test]
fn a_tail_that_is_not_whole_is_cut_at_every_byte_and_told() {
    let world = World::new();
    world.write(&[(X1, "one"), (X1, "two\u{2028}\n\u{e9}")]);
    let whole = fs::read(world.path(X1)).unwrap();
    assert_eq!(texts(&lines(&whole)), ["one", "two\u{2028}\n\u{e9}"]);
    let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for cut in 0..=whole.len() {
        let world = World::new();
        fs::create_dir(world.places().directory).unwrap();
        fs::write(world.path(X1), &whole[..cut]).unwrap();
        world.write(&[(X1, "three")]);
        let is_torn = cut > 0 && cut != first && cut != whole.len();
        let kept = if cut < first { 0 } else { 1 + usize::from(cut == whole.len()) };
        let expected = [&["one", "two\u{2028}\n\u{e9}"][..kept], &["torn"][..usize::from(is_torn)], &["three"]].concat();
        assert_eq!(texts(&world.lines(X1)), expected, "cut at {cut}");
        assert_eq!(world.is_lossy(X1), is_torn, "cut at {cut}");
    }
}

#[test]
fn a_torn_tail_is_told_once_and_may_be_long_and_of_zeros() {
    let world = World::new();
    world.write(&[(X1, "one")]);
    let mut bytes = fs::read(world.path(X1)).unwrap();
    bytes.extend(vec![0; 200_000]);
    fs::write(world.path(X1), &bytes).unwrap();
    world.write(&[(X1, "two"), (X1, "three")]);
    world.write(&[(X1, "four")]);
    assert_eq!(texts(&world.lines(X1)), ["one", "torn", "two", "three", "four"]);
}

#[test]
fn what_finds_no_room_in_the_queue_is_counted_where_it_would_stand() {
    let mut world = World::new();
    let big = "b".repeat(1_500);
    (world.bounds.bytes_waiting_max, world.bounds.lines_waiting_max) = (2_500, 6);
    world.write(&[
        (X1, &big),
        (X1, &big),
        (X2, &big),
        (X1, &big),
        (X1, "small"),
        (X1, &big),
        // As many entries as there may be, gaps among them.
        (X2, "x"),
        (X2, "y"),
        (X1, "z"),
    ]);
    let found = world.lines(X1);
    assert_eq!(texts(&found), [&big, "overflow", "small", "overflow"]);
    assert_eq!((&found[1]["lost"], &found[3]["lost"]), (&2.into(), &2.into()));
    let found = world.lines(X2);
    assert_eq!(texts(&found), ["overflow", "x", "overflow"]);
    assert_eq!((&found[0]["lost"], &found[2]["lost"]), (&1.into(), &1.into()));
    assert!(world.is_lossy(X1) && world.is_lossy(X2) && !world.is_lossy(ExecutionId(3)));
}

#[test]
fn a_line_larger_than_the_whole_queue_is_written_and_nothing_is_lossy() {
    let mut world = World::new();
    world.bounds.bytes_waiting_max = 1_000;
    let big = "b".repeat(100_000);
    world.write(&[(X1, &big)]);
    assert_eq!(texts(&world.lines(X1)), [&big]);
    assert!(!world.is_lossy(X1));
}

#[test]
fn a_transcript_that_is_full_says_so_in_its_last_line_and_stays_so() {
    let mut world = World::new();
    world.bounds.bytes_max = 2_000;
    let long = "l".repeat(300);
    world.write(&[(X1, long.as_str()); 20]);
    world.write(&[(X1, long.as_str()), (X2, "other")]);
    world.write(&[(X1, "short")]);
    let found = world.lines(X1);
    assert!(fs::metadata(world.path(X1)).unwrap().len() <= 2_000);
    let (last, before) = found.split_last().unwrap();
    assert_eq!((&last["kind"], &last["why"], last.get("lost")), (&"gap".into(), &"size".into(), None));
    assert!(before.len() >= 4 && before.iter().all(|line| text(line) == long), "{found:?}");
    assert!(world.is_lossy(X1) && !world.is_lossy(X2));
    assert_eq!(texts(&world.lines(X2)), ["other"]);
}

#[test]
fn files_are_the_users_alone_and_go_when_they_are_not_needed() {
    let mut world = World::new();
    world.bounds.bytes_max = 400;
    world.write(&[(X1, &"l".repeat(300)), (X2, "x")]);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(world.places().directory), mode(world.path(X1)), mode(world.path(X2))), (0o700, 0o600, 0o600));
    let (transcripts, writer) = Transcripts::new(world.places(), world.bounds);
    assert!(transcripts.is_lossy(X1));
    transcripts.put(X1, line("not needed any more"));
    transcripts.remove(X1);
    transcripts.remove(ExecutionId(3));
    let thread = std::thread::spawn(|| writer.run());
    drop(transcripts);
    thread.join().unwrap();
    assert!(!world.path(X1).exists() && world.path(X2).exists() && !world.is_lossy(X1));
    assert_eq!(fs::read_dir(world.places().executions).unwrap().count(), 0);
}

#[test]
fn a_link_or_pipe_in_its_place_is_not_followed_and_holds_nobody_up() {
    let world = World::new();
    fs::create_dir(world.places().directory).unwrap();
    fs::write(world.dir.path().join("precious"), "precious").unwrap();
    symlink(world.dir.path().join("precious"), world.path(X1)).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, world.path(X2), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    world.write(&[(X1, "x"), (X2, "y"), (ExecutionId(3), "z")]);
    assert_eq!(fs::read(world.dir.path().join("precious")).unwrap(), b"precious");
    assert!(world.is_lossy(X1) && world.is_lossy(X2));
    assert_eq!(texts(&world.lines(ExecutionId(3))), ["z"]);
}

#[test]
fn what_could_not_be_written_is_told_as_soon_as_writing_works_again() {
    let world = World::new();
    // Where the directory should be is a file.
    fs::write(world.places().directory, "").unwrap();
    let (transcripts, writer) = Transcripts::new(world.places(), world.bounds);
    let thread = std::thread::spawn(|| writer.run());
    for text in ["a", "b", "c"] {
        transcripts.put(X1, line(text));
    }
    until("it is marked", || transcripts.is_lossy(X1));
    // Also by a broker that never saw it.
    until("the mark is written", || world.is_lossy(X1));
    fs::remove_file(world.places().directory).unwrap();
    // Nothing more is said of it.
    until("the gap is told", || world.path(X1).exists() && fs::read(world.path(X1)).unwrap().ends_with(b"\n"));
    transcripts.put(X1, line("d"));
    drop(transcripts);
    thread.join().unwrap();
    let found = world.lines(X1);
    assert_eq!(texts(&found), ["io", "d"]);
    assert_eq!(found[0]["lost"], 3);
}

#[test]
fn a_full_disk_leaves_whole_lines_and_a_gap() {
    let world = World::new();
    let Some(disk) = SmallDisk::mount(&world.places().directory, 256) else { return };
    let (transcripts, writer) = Transcripts::new(world.places(), world.bounds);
    let thread = std::thread::spawn(|| writer.run());
    transcripts.put(X1, line("first"));
    until("the first is written", || world.path(X1).exists() && fs::read(world.path(X1)).unwrap().ends_with(b"\n"));
    // Half of this has room.
    let big = "b".repeat(400_000);
    transcripts.put(X1, line(&big));
    until("it is lossy", || world.is_lossy(X1));
    assert_eq!(texts(&world.lines(X1)), ["first"], "half a line stays");
    disk.fill();
    transcripts.put(X2, line("no room at all"));
    until("the other is lossy", || world.is_lossy(X2));
    disk.make_room();
    until("the gap is told", || world.path(X2).exists() && fs::read(world.path(X2)).unwrap().ends_with(b"\n"));
    transcripts.put(X1, line("last"));
    drop(transcripts);
    thread.join().unwrap();
    assert_eq!(texts(&world.lines(X1)), ["first", "no_space", "last"]);
    assert_eq!(texts(&world.lines(X2)), ["no_space"]);
    assert_eq!((&world.lines(X1)[1]["lost"], &world.lines(X2)[0]["lost"]), (&1.into(), &1.into()));
}

#[test]
fn the_last_of_a_disk_is_left_to_the_journal() {
    let mut world = World::new();
    world.bounds.kept_free = u64::MAX;
    fs::create_dir(world.places().directory).unwrap();
    world.write(&[(X1, "x")]);
    assert!(world.is_lossy(X1) && !world.path(X1).exists());
}
