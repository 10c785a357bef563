//! The journal as its users see it: what goes in comes out, or it is said why not. Damage, versions and full disks have files of their own.

use std::fs;
use std::path::Path;
use std::time::Duration;

use roost_core::event::Event;
use roost_core::time::{Mono, Now};
use roost_proto::bytes::Bytes;
use roost_proto::id::WorkerId;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

mod damage;
mod events;
mod space;
mod versions;

/// Runs one call to its end.
fn wait<T>(call: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(call)
}

fn options() -> Options {
    Options { busy_timeout: Duration::from_millis(200), ..Options::default() }
}

fn open(dir: &Path) -> (Journal, Recovered) {
    Journal::open_with(dir, &options()).unwrap()
}

fn refusal(dir: &Path) -> OpenError {
    match Journal::open_with(dir, &options()) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

fn commit(journal: &Journal, batch: Batch) -> Committed {
    wait(journal.commit(batch)).unwrap()
}

fn record(seq: u64) -> Record {
    let at = Now { mono: Mono(seq * 10), wall_ms: 1_700_000_000_000 + seq };
    Record { seq, at, event: Event::Blocked { worker: WorkerId(seq) } }
}

fn records(seqs: std::ops::RangeInclusive<u64>) -> Batch {
    Batch { records: seqs.map(record).collect(), ..Batch::default() }
}

fn text(text: &str) -> Bytes {
    Bytes::from(text)
}

fn spec(task: &str) -> Spec {
    Spec {
        argv: vec![text("sh"), Bytes(vec![0xff, 0xfe, b'a', 0])],
        env: Arc::new(vec![(text("PATH"), text("/bin")), (text("ODD"), Bytes(vec![0x80, b'=', 0xc3]))]),
        env_extra: vec![(Bytes(vec![0xfe]), text("x"))],
        cwd: Bytes(b"/tmp/\xff".to_vec()),
        umask: 0o077,
        task: task.to_owned(),
    }
}

/// A look into the file from outside; nobody has it open.
fn raw(dir: &Path) -> Connection {
    Connection::open(dir.join("roost.db")).unwrap()
}

fn count(dir: &Path, table: &str) -> i64 {
    raw(dir).query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap()
}

fn loaded(journal: &Journal, worker: u64) -> Result<Loaded, LoadError> {
    let batch = Batch { load: vec![WorkerId(worker)], ..Batch::default() };
    commit(journal, batch).loaded.remove(0).1
}

#[test]
fn what_is_committed_is_there_after_opening_again() {
    let dir = TempDir::new().unwrap();
    let (journal, begun) = open(dir.path());
    assert!(begun.snapshot.is_none() && begun.records.is_empty() && begun.clock.is_none());
    assert!(begun.notes[0].contains("new journal"), "{:?}", begun.notes);
    commit(&journal, records(1..=3));
    commit(&journal, records(4..=4));
    drop(journal);
    let (_journal, again) = open(dir.path());
    assert_eq!(again.records, (1..=4).map(record).collect::<Vec<_>>());
    assert!(again.notes.is_empty(), "{:?}", again.notes);
}

#[test]
fn files_are_only_for_their_owner() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, records(1..=1));
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap()).collect();
    assert!(names.len() >= 3, "{names:?}");
    for entry in names {
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{entry:?}");
    }
}

#[test]
fn a_batch_that_would_leave_a_gap_is_refused_and_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, records(1..=2));
    for (seqs, found) in [(4..=4, 4), (2..=3, 2), (0..=0, 0)] {
        let mut batch = records(seqs);
        batch.specs.push((WorkerId(1), spec("x")));
        let error = wait(journal.commit(batch)).unwrap_err();
        assert!(matches!(error, CommitError::Gap { expected: 3, found: it } if it == found), "{error}");
    }
    let mut inside = records(3..=5);
    inside.records.remove(1);
    assert!(matches!(wait(journal.commit(inside)), Err(CommitError::Gap { expected: 4, found: 5 })));
    assert_eq!(loaded(&journal, 1), Err(LoadError::NoSpec { worker: WorkerId(1) }));
    commit(&journal, records(3..=3));
}

#[test]
fn batches_sent_without_waiting_are_committed_in_their_order() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    let results = wait(async {
        let journal = &journal;
        let mut calls: Vec<_> = (1..=40).map(|seq| Box::pin(journal.commit(records(seq..=seq)))).collect();
        std::future::poll_fn(|context| {
            for call in &mut calls {
                assert!(call.as_mut().poll(context).is_pending());
            }
            std::task::Poll::Ready(())
        })
        .await;
        let mut results = Vec::new();
        for call in calls {
            results.push(call.await);
        }
        results
    });
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    drop(journal);
    assert_eq!(open(dir.path()).1.records.len(), 40);
}

#[test]
fn a_spec_comes_back_byte_by_byte_also_in_its_own_batch() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    let batch = Batch {
        specs: vec![(WorkerId(7), spec("a\0b\u{1F426}")), (WorkerId(u64::MAX), spec(""))],
        load: vec![WorkerId(u64::MAX), WorkerId(7), WorkerId(8)],
        ..records(1..=1)
    };
    let back = commit(&journal, batch).loaded;
    assert_eq!(back[0], (WorkerId(u64::MAX), Ok(Loaded { spec: spec(""), context: None })));
    assert_eq!(back[1], (WorkerId(7), Ok(Loaded { spec: spec("a\0b\u{1F426}"), context: None })));
    assert_eq!(back[2], (WorkerId(8), Err(LoadError::NoSpec { worker: WorkerId(8) })));
    drop(journal);
    assert_eq!(loaded(&open(dir.path()).0, 7).unwrap().spec, spec("a\0b\u{1F426}"));
}

#[test]
fn each_environment_is_stored_once_shared_when_loaded_and_gone_with_its_last_spec() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    let other = Spec { env: Arc::new(Vec::new()), ..spec("other") };
    let specs = vec![(WorkerId(1), spec("a")), (WorkerId(2), spec("b")), (WorkerId(3), other.clone())];
    commit(&journal, Batch { specs, ..Batch::default() });
    drop(journal);
    assert_eq!(count(dir.path(), "environments"), 2);

    let (journal, _) = open(dir.path());
    let (one, two) = (loaded(&journal, 1).unwrap(), loaded(&journal, 2).unwrap());
    assert!(Arc::ptr_eq(&one.spec.env, &two.spec.env));
    commit(&journal, Batch { forget: vec![WorkerId(1), WorkerId(3), WorkerId(99)], ..Batch::default() });
    assert_eq!(loaded(&journal, 2).unwrap().spec, spec("b"));
    // Replaced: the old environment goes, the new one comes back although it was known and removed before.
    commit(&journal, Batch { specs: vec![(WorkerId(2), other.clone())], ..Batch::default() });
    assert_eq!(loaded(&journal, 2).unwrap().spec, other);
    drop(journal);
    assert_eq!((count(dir.path(), "environments"), count(dir.path(), "specs")), (1, 1));
    let (journal, _) = open(dir.path());
    assert_eq!(loaded(&journal, 2).unwrap().spec, other);
}

#[test]
fn more_environments_than_are_kept_in_memory() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    let with = |number: u64| Spec { env: Arc::new(vec![(text("N"), text(&number.to_string()))]), ..spec("") };
    let specs = (0..30).map(|number| (WorkerId(number), with(number))).collect();
    let back = commit(&journal, Batch { specs, load: (0..30).map(WorkerId).collect(), ..Batch::default() }).loaded;
    for (number, (worker, it)) in (0..).zip(back) {
        assert_eq!((worker, it.unwrap().spec), (WorkerId(number), with(number)));
    }
}

#[test]
fn the_newest_context_counts_and_the_one_before_is_kept() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, Batch { specs: vec![(WorkerId(1), spec("")), (WorkerId(2), spec(""))], ..Batch::default() });
    for generation in 0..5_u8 {
        commit(&journal, Batch { contexts: vec![(WorkerId(1), vec![generation; 9_000])], ..Batch::default() });
    }
    assert_eq!(loaded(&journal, 1).unwrap().context, Some(vec![4; 9_000]));
    assert_eq!(loaded(&journal, 2).unwrap().context, None);
    drop(journal);
    assert_eq!(count(dir.path(), "contexts"), 2);
    raw(dir.path()).execute("UPDATE contexts SET bytes = x'00' WHERE generation = 5", ()).unwrap();
    let (journal, _) = open(dir.path());
    let error = loaded(&journal, 1).unwrap_err();
    assert!(matches!(error, LoadError::ContextDamaged { worker: WorkerId(1), .. }), "{error}");
    commit(&journal, Batch { forget: vec![WorkerId(1)], ..Batch::default() });
    drop(journal);
    assert_eq!(count(dir.path(), "contexts"), 0);
}

#[test]
fn a_context_is_described_by_the_first_half_of_its_sha256() {
    let context = context_of(b"abc");
    assert_eq!(context.digest.0, 0xba78_16bf_8f01_cfea_4141_40de_5dae_2223);
    assert_eq!(context.bytes, 3);
}

#[test]
fn a_snapshot_replaces_the_records_before_it_and_the_one_before_is_kept() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    for seq in [2, 4, 6] {
        let snapshot = Some(Snapshot { seq, bytes: vec![seq as u8; 5_000] });
        commit(&journal, Batch { snapshot, ..records(seq - 1..=seq) });
    }
    commit(&journal, records(7..=8));
    drop(journal);
    assert_eq!((count(dir.path(), "snapshots"), count(dir.path(), "events")), (2, 8));
    // Nothing before the snapshot is read: this would be damage.
    raw(dir.path()).execute("UPDATE events SET body = 'x' WHERE seq = 5", ()).unwrap();
    let (journal, found) = open(dir.path());
    assert_eq!(found.snapshot, Some(Snapshot { seq: 6, bytes: vec![6; 5_000] }));
    assert_eq!(found.records, [record(7), record(8)]);

    for seq in [5, 9] {
        let snapshot = Some(Snapshot { seq, bytes: Vec::new() });
        let error = wait(journal.commit(Batch { snapshot, ..Batch::default() })).unwrap_err();
        assert!(matches!(error, CommitError::MisplacedSnapshot { oldest: 6, newest: 8, .. }), "{error}");
    }
}

#[test]
fn old_records_go_only_before_the_older_snapshot() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, records(1..=10));
    let to = |seq| Batch { forget_records_to: Some(seq), ..Batch::default() };
    let at = |seq| Batch { snapshot: Some(Snapshot { seq, bytes: Vec::new() }), ..Batch::default() };
    commit(&journal, to(10));
    commit(&journal, at(4));
    commit(&journal, to(10));
    commit(&journal, at(8));
    commit(&journal, to(2));
    drop(journal);
    assert_eq!(count(dir.path(), "events"), 8);
    let (journal, _) = open(dir.path());
    commit(&journal, to(u64::MAX >> 1));
    drop(journal);
    assert_eq!(count(dir.path(), "events"), 6);
    assert_eq!(open(dir.path()).1.records.len(), 2);
}

#[test]
fn the_clock_is_kept_and_never_goes_back() {
    let dir = TempDir::new().unwrap();
    let mark = |mono_ms| ClockMark { boot_id: "b".to_owned(), mono_ms, offset_ms: -5 };
    let (journal, _) = open(dir.path());
    commit(&journal, Batch { clock: Some(mark(50)), ..records(1..=2) });
    commit(&journal, Batch { clock: Some(mark(40)), ..Batch::default() });
    drop(journal);
    let (journal, found) = open(dir.path());
    assert_eq!(found.clock, Some(mark(50)));
    commit(&journal, records(3..=9));
    drop(journal);
    assert_eq!(open(dir.path()).1.clock, Some(mark(90)));
}

#[test]
fn a_batch_that_only_loads_writes_nothing() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    let size = || fs::metadata(dir.path().join("roost.db-wal")).unwrap().len();
    let before = size();
    loaded(&journal, 1).unwrap_err();
    commit(&journal, Batch::default());
    assert_eq!(size(), before);
    commit(&journal, records(1..=1));
    assert!(size() > before);
}

#[test]
fn the_log_is_worked_off_when_idle_and_stays_bounded_when_not() {
    let dir = TempDir::new().unwrap();
    let size = |name: &str| fs::metadata(dir.path().join(name)).unwrap().len();
    let (journal, _) = Journal::open_with(dir.path(), &Options { idle: Duration::from_millis(1), ..options() }).unwrap();
    commit(&journal, Batch { contexts: vec![(WorkerId(1), vec![1; 1 << 20])], ..Batch::default() });
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while size("roost.db") < 1 << 20 && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(size("roost.db") >= 1 << 20);
    drop(journal);
    let (journal, _) = open(dir.path());
    for _ in 0..40 {
        commit(&journal, Batch { contexts: vec![(WorkerId(1), vec![2; 1 << 20])], ..Batch::default() });
    }
    assert!(size("roost.db-wal") < 20 << 20, "{}", size("roost.db-wal"));
}

#[test]
fn a_second_broker_is_refused_after_its_wait_and_the_first_one_goes_on() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, records(1..=1));
    let started = std::time::Instant::now();
    let error = refusal(dir.path());
    assert!(matches!(error, OpenError::InUse { waited_ms: 200, .. }), "{error}");
    assert!(started.elapsed() >= Duration::from_millis(150), "{:?}", started.elapsed());
    commit(&journal, records(2..=2));
    let ends = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        drop(journal);
    });
    let patient = Options { busy_timeout: Duration::from_secs(10), ..options() };
    assert_eq!(Journal::open_with(dir.path(), &patient).unwrap().1.records.len(), 2);
    ends.join().unwrap();
}

#[test]
fn a_writer_that_panics_is_broken_and_no_hang() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, records(1..=1));
    wait(journal.send(Request::Panic)).unwrap();
    for _ in 0..2 {
        let error = wait(journal.commit(records(2..=2))).unwrap_err();
        assert!(matches!(&error, CommitError::Broken(why) if why.contains("unexpectedly")), "{error}");
    }
    drop(journal);
    assert_eq!(open(dir.path()).1.records.len(), 1);
}

#[test]
fn an_error_that_is_no_full_disk_breaks_the_journal_for_good() {
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()));
    // There is no generation after this one.
    raw(dir.path()).execute("INSERT INTO contexts VALUES (1, 1, ?1, x'', x'')", [i64::MAX]).unwrap();
    let (journal, _) = open(dir.path());
    let error = wait(journal.commit(Batch { contexts: vec![(WorkerId(1), Vec::new())], ..records(1..=1) })).unwrap_err();
    assert!(matches!(&error, CommitError::Broken(why) if why.contains("UNIQUE")), "{error}");
    let error = wait(journal.commit(records(1..=1))).unwrap_err();
    assert!(matches!(&error, CommitError::Broken(why) if why.contains("UNIQUE")), "{error}");
    drop(journal);
    assert!(open(dir.path()).1.records.is_empty());
}
