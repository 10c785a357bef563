//! Cuts, flipped bits, missing rows: detected and refused with a copy kept, or without effect. Never other records, never a panic.

use std::path::PathBuf;

use super::*;
use crate::journal::open::Opened;

/// In memory where there is such a place: these tests open thousands of files.
fn fast_dir() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

fn open_only(dir: &Path) -> Result<Opened, OpenError> {
    open::open(dir, &options())
}

/// A database and its log in a directory of their own.
fn put(db: &[u8], wal: Option<&[u8]>) -> TempDir {
    let dir = fast_dir();
    fs::write(dir.path().join("roost.db"), db).unwrap();
    if let Some(wal) = wal {
        fs::write(dir.path().join("roost.db-wal"), wal).unwrap();
    }
    dir
}

fn assert_damaged(dir: &Path, what: &str) -> PathBuf {
    let error = refusal(dir);
    let said = error.to_string();
    let OpenError::Damaged { copy: DamageCopy::At(copy), .. } = error else { panic!("{said}") };
    assert!(said.contains(what) && said.contains(copy.to_str().unwrap()) && said.contains("move it"), "{said}");
    copy
}

/// Seven batches that have not been worked off: database, log, and the last record of each batch.
fn unfinished() -> (Vec<u8>, Vec<u8>, Vec<u64>) {
    let dir = fast_dir();
    let (journal, _) = open(dir.path());
    let mut ends = vec![0];
    for records_more in [1, 3, 1, 40, 2, 1, 5] {
        let last = ends.last().unwrap();
        let batch = Batch { contexts: vec![(WorkerId(1), vec![records_more as u8; 3_000])], ..records(last + 1..=last + records_more) };
        ends.push(last + records_more);
        commit(&journal, batch);
    }
    let read = |name| fs::read(dir.path().join(name)).unwrap();
    (read("roost.db"), read("roost.db-wal"), ends)
}

// Scenario `journal_every_byte`, with the test below.
#[test]
fn a_log_cut_anywhere_gives_a_prefix_of_whole_batches() {
    let (db, wal, ends) = unfinished();
    let mut longest = 0;
    for cut in (0..wal.len()).step_by(97).chain([wal.len()]) {
        let dir = put(&db, Some(&wal[..cut]));
        let found = open_only(dir.path()).unwrap_or_else(|error| panic!("cut at {cut}: {error}")).recovered;
        let last = found.records.len() as u64;
        assert!(ends.contains(&last) && last >= longest, "cut at {cut}: {last} after {longest}");
        assert_eq!(found.records, records(1..=last).records);
        longest = last;
    }
    assert_eq!(longest, *ends.last().unwrap());
}

/// One commit for several commands is there whole or not at all: cut at every byte, and with the rest zeroed, as a file system leaves
/// a file whose size was written before its content.
#[test]
fn the_last_commit_cut_at_any_byte_is_there_whole_or_not_at_all() {
    let dir = fast_dir();
    let (journal, _) = open(dir.path());
    commit(&journal, Batch { specs: vec![(WorkerId(1), spec("one"))], ..records(1..=3) });
    let read = |name| fs::read(dir.path().join(name)).unwrap();
    let before = read("roost.db-wal").len();
    commit(&journal, Batch { contexts: vec![(WorkerId(1), vec![7; 700])], ..records(4..=20) });
    let (db, wal) = (read("roost.db"), read("roost.db-wal"));
    drop(journal);
    assert!(wal.len() > before + 2 * 4096, "{before} to {}", wal.len());
    let try_cut = |cut: usize, zeroed: bool| {
        let mut short = wal[..cut].to_vec();
        if zeroed {
            short.resize(wal.len(), 0);
        }
        // Zeros may be what was there.
        let is_whole = short == wal;
        let dir = put(&db, Some(&short));
        let opened = open_only(dir.path()).unwrap_or_else(|error| panic!("cut at {cut}, zeroed {zeroed}: {error}"));
        let loaded = load::load(&opened.connection, WorkerId(1), &mut environments::Environments::default()).unwrap();
        let (last, context) = if is_whole { (20, Some(vec![7; 700])) } else { (3, None) };
        assert_eq!(opened.recovered.records, records(1..=last).records, "cut at {cut}, zeroed {zeroed}");
        assert_eq!(loaded.context, context, "cut at {cut}, zeroed {zeroed}");
    };
    std::thread::scope(|threads| {
        for half in 0..2 {
            let try_cut = &try_cut;
            let cuts = (before..=wal.len()).filter(move |cut| cut % 2 == half);
            // The zeroed ones cost as much as the others: some of them.
            threads.spawn(move || {
                cuts.for_each(|cut| [false, true].iter().take(1 + usize::from(cut % 31 == 0)).for_each(|it| try_cut(cut, *it)))
            });
        }
    });
}

#[test]
fn a_torn_tail_is_told_and_the_journal_goes_on_after_it() {
    let (db, wal, ends) = unfinished();
    let dir = put(&db, Some(&wal[..wal.len() - 100]));
    let (journal, found) = open(dir.path());
    let last = ends[ends.len() - 2];
    assert_eq!(found.records.len() as u64, last);
    assert!(found.notes[0].contains("cut off"), "{:?}", found.notes);
    commit(&journal, records(last + 1..=last + 2));
    drop(journal);
    assert_eq!(open(dir.path()).1.records, records(1..=last + 2).records);
}

#[test]
fn a_flipped_bit_in_the_log_costs_at_most_the_last_batch_or_is_refused() {
    let (db, wal, ends) = unfinished();
    let (all, but_one) = (ends[ends.len() - 1], ends[ends.len() - 2]);
    let mut refused = 0;
    // All over the headers of the log and of its frames, and somewhere in each page.
    let headers = (32..wal.len()).step_by(24 + 4096).flat_map(|frame| frame..frame + 24);
    for at in (0..32).chain(headers).chain((32..wal.len()).step_by(251)) {
        let mut wal = wal.clone();
        wal[at] ^= 1 << (at % 8);
        let dir = put(&db, Some(&wal));
        match open_only(dir.path()) {
            Ok(opened) => {
                let last = opened.recovered.records.len() as u64;
                assert!(last == all || last == but_one, "byte {at}: {last} of {all}");
                assert_eq!(opened.recovered.records, records(1..=last).records);
            }
            Err(OpenError::Damaged { .. }) => {
                refused += 1;
                assert_eq!(fs::read(dir.path().join("roost.db-wal")).unwrap(), wal);
                assert_eq!(fs::read(dir.path().join("roost.db")).unwrap(), db);
            }
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
    assert!(refused > 100, "{refused}");
}

fn full() -> TempDir {
    let dir = fast_dir();
    let (journal, _) = open(dir.path());
    let big = Spec { task: "t".repeat(6_000), ..spec("") };
    let other = Spec { env: Arc::new(vec![(text("A"), text("b"))]), ..spec("other") };
    for (seq, bytes) in [(20, vec![1; 700]), (40, vec![2; 9_000])] {
        commit(&journal, Batch { snapshot: Some(Snapshot { seq, bytes }), ..records(seq - 19..=seq) });
    }
    commit(&journal, Batch { specs: vec![(WorkerId(1), big), (WorkerId(2), other)], ..records(41..=120) });
    let contexts = vec![(WorkerId(1), vec![3; 5_000]), (WorkerId(2), vec![4; 10])];
    let clock = Some(ClockMark { boot_id: "boot".to_owned(), mono_ms: 2_000, offset_ms: 1 });
    commit(&journal, Batch { contexts, clock, ..Batch::default() });
    drop(journal);
    dir
}

#[test]
fn a_flipped_bit_in_the_file_is_noticed_or_changes_nothing() {
    let sound = full();
    let db = fs::read(sound.path().join("roost.db")).unwrap();
    let whole = open_only(sound.path()).unwrap().recovered;
    let load = |opened: &Opened, worker| load::load(&opened.connection, WorkerId(worker), &mut environments::Environments::default());
    let specs = [1, 2].map(|worker| load(&open_only(sound.path()).unwrap(), worker).unwrap());
    let header = (0..100).flat_map(|at| (0..8).map(move |bit| (at, bit)));
    let rest = (100..db.len()).step_by(23).map(|at| (at, at % 8));
    let (mut refused, mut opened_well) = (0, 0);
    for (at, bit) in header.chain(rest) {
        let mut db = db.clone();
        db[at] ^= 1 << bit;
        let dir = put(&db, None);
        let opened = match open_only(dir.path()) {
            Ok(opened) => opened,
            Err(error) => {
                refused += 1;
                drop(error);
                assert_eq!(fs::read(dir.path().join("roost.db")).unwrap(), db, "byte {at} bit {bit}");
                continue;
            }
        };
        opened_well += 1;
        let found = &opened.recovered;
        let seq = found.snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
        let bytes = found.snapshot.as_ref().map(|snapshot| snapshot.bytes.clone());
        let expected = match seq {
            40 => Some(vec![2; 9_000]),
            20 => Some(vec![1; 700]),
            0 => None,
            other => panic!("byte {at} bit {bit}: a snapshot of {other}"),
        };
        assert_eq!(bytes, expected, "byte {at} bit {bit}");
        assert_eq!(found.records, records(seq + 1..=120).records, "byte {at} bit {bit}");
        assert_eq!(found.clock, whole.clock, "byte {at} bit {bit}");
        for (worker, spec) in (1..).zip(&specs) {
            match load(&opened, worker) {
                Ok(loaded) if loaded.context.is_none() && spec.context.is_some() => panic!("byte {at} bit {bit}: a context vanished"),
                Ok(loaded) => assert_eq!(loaded, *spec, "byte {at} bit {bit}"),
                Err(_) => {}
            }
        }
    }
    assert!(refused > 200 && opened_well > 200, "{refused} {opened_well}");
}

#[test]
fn a_hole_a_changed_record_and_a_lost_end_are_damage() {
    for (change, what) in [
        ("DELETE FROM events WHERE seq = 50", "record 50 is missing"),
        ("DELETE FROM events WHERE seq = 41", "record 41 is missing"),
        ("DELETE FROM events WHERE seq > 100", "ends at record 100, but 120"),
        ("UPDATE events SET body = replace(body, 'w', 'x') WHERE seq = 60", "record 60: its checksum"),
        ("UPDATE events SET mono_ms = mono_ms + 1 WHERE seq = 61", "record 61: its checksum"),
        ("UPDATE events SET wall_ms = wall_ms + 1 WHERE seq = 62", "record 62: its checksum"),
        ("UPDATE head SET last_seq = 119", "where it ends does not match"),
        ("UPDATE head SET mono_ms = 1", "where it ends does not match"),
        ("UPDATE head SET boot_id = NULL", "where it ends does not match"),
        ("DELETE FROM head", "where it ends is missing"),
        ("DELETE FROM snapshots; DELETE FROM events WHERE seq <= 20", "record 1 is missing"),
        ("DROP INDEX specs_environment", "its tables"),
        ("PRAGMA user_version = 0", "no format 0"),
        ("PRAGMA user_version = -1", "no format -1"),
        ("PRAGMA application_id = 7", "not a journal of roostd"),
    ] {
        let dir = full();
        raw(dir.path()).execute_batch(change).unwrap();
        let before = fs::read(dir.path().join("roost.db")).unwrap();
        let copy = assert_damaged(dir.path(), what);
        assert_eq!(fs::read(dir.path().join("roost.db")).unwrap(), before, "{change}");
        assert_eq!(fs::read(&copy).unwrap(), before, "{change}");
        // Again and again by the supervisor: no further copy.
        assert_eq!(assert_damaged(dir.path(), what), copy);
        assert_eq!(fs::read_dir(dir.path()).unwrap().filter(|it| it.as_ref().unwrap().path().starts_with(&copy)).count(), 1);
    }
}

#[test]
fn an_event_of_another_build_is_not_skipped() {
    let dir = full();
    let body = r#"{"event":"teleported","worker":"w1"}"#;
    let crc = recover::record_crc(60, 600, 1_700_000_000_060, body.as_bytes());
    raw(dir.path()).execute("UPDATE events SET body = ?1, crc = ?2 WHERE seq = 60", rusqlite::params![body, crc]).unwrap();
    assert_damaged(dir.path(), "record 60: this roostd does not understand it (unknown variant `teleported`");
}

#[test]
fn what_is_no_database_is_refused_and_kept() {
    for content in [&b"x"[..], &b"SQLite format 3\0"[..], &[0; 512][..], &[0xa5; 10_000][..]] {
        let dir = put(content, None);
        let copy = assert_damaged(dir.path(), "not a database");
        assert_eq!(fs::read(dir.path().join("roost.db")).unwrap(), content);
        assert_eq!(fs::read(copy).unwrap(), content);
    }
    let dir = full();
    let db = fs::read(dir.path().join("roost.db")).unwrap();
    // A whole page, nearly everything, and a part of the last page, which SQLite would read as zeros.
    for bytes in [db.len() - 4096, 4096, db.len() - 1000] {
        assert_damaged(put(&db[..bytes], None).path(), "it is cut off");
    }
}

#[test]
fn somebody_elses_database_is_not_taken_over() {
    let dir = TempDir::new().unwrap();
    raw(dir.path()).execute_batch("CREATE TABLE mine(x); INSERT INTO mine VALUES (1)").unwrap();
    assert_damaged(dir.path(), "not a journal of roostd");
    assert_eq!(count(dir.path(), "mine"), 1);
}

#[test]
fn an_empty_file_begins_a_journal_unless_a_log_lies_beside_it() {
    let dir = put(b"", None);
    assert!(open(dir.path()).1.notes[0].contains("new journal"));
    let dir = put(b"", Some(b""));
    assert!(open(dir.path()).1.notes[0].contains("new journal"));

    let (_, wal, _) = unfinished();
    let dir = put(b"", Some(&wal));
    let copy = assert_damaged(dir.path(), "the file is empty, but its write-ahead log is not");
    assert_eq!(assert_damaged(dir.path(), "empty"), copy);
    fs::remove_file(dir.path().join("roost.db")).unwrap();
    let other = assert_damaged(dir.path(), "the file is missing, but its write-ahead log is not");
    assert_ne!(other, copy);
    assert_eq!(fs::read(dir.path().join("roost.db-wal")).unwrap(), wal);
    assert_eq!(fs::read(format!("{}-wal", other.display())).unwrap(), wal);
}

#[test]
fn a_crash_between_creation_and_first_commit_is_a_new_journal() {
    let dir = TempDir::new().unwrap();
    raw(dir.path()).execute_batch("PRAGMA journal_mode = WAL").unwrap();
    assert!(fs::metadata(dir.path().join("roost.db")).unwrap().len() > 0);
    assert!(open(dir.path()).1.notes[0].contains("new journal"));
}

#[test]
fn a_copy_never_overwrites_what_is_there() {
    let dir = put(b"no database", None);
    let copy = assert_damaged(dir.path(), "not a database");
    fs::write(&copy, "another one").unwrap();
    fs::create_dir(dir.path().join("roost.db.damaged-2")).unwrap();
    assert_eq!(assert_damaged(dir.path(), "not a database"), dir.path().join("roost.db.damaged-3"));
    assert_eq!(fs::read(&copy).unwrap(), b"another one");
}

#[test]
fn a_damaged_snapshot_falls_back_to_the_one_before_and_that_one_is_then_kept() {
    let dir = full();
    raw(dir.path()).execute("UPDATE snapshots SET bytes = x'00' WHERE seq = 40", ()).unwrap();
    let (journal, found) = open(dir.path());
    assert_eq!(found.snapshot, Some(Snapshot { seq: 20, bytes: vec![1; 700] }));
    assert_eq!(found.records, records(21..=120).records);
    assert!(found.notes[0].contains("the snapshot of record 40 is damaged"), "{:?}", found.notes);
    commit(&journal, Batch { snapshot: Some(Snapshot { seq: 120, bytes: vec![5] }), ..Batch::default() });
    drop(journal);
    raw(dir.path()).execute("UPDATE snapshots SET crc = crc + 1 WHERE seq = 120", ()).unwrap();
    assert_eq!(open(dir.path()).1.snapshot.map(|it| it.seq), Some(20));
    raw(dir.path()).execute("UPDATE snapshots SET crc = crc + 1 WHERE seq = 20", ()).unwrap();
    // No snapshot left, but every record.
    let found = open(dir.path()).1;
    assert_eq!((found.snapshot, found.records.len(), found.notes.len()), (None, 120, 2));
}

#[test]
fn a_context_that_vanished_is_not_taken_for_none() {
    for change in [
        "DELETE FROM contexts WHERE worker = 1",
        "UPDATE contexts SET generation = 2 WHERE worker = 1",
        "UPDATE specs SET generation = 0 WHERE worker = 1",
    ] {
        let dir = full();
        raw(dir.path()).execute_batch(change).unwrap();
        let (journal, _) = open(dir.path());
        assert!(matches!(loaded(&journal, 1), Err(LoadError::ContextDamaged { .. })), "{change}");
        assert_eq!(loaded(&journal, 2).unwrap().context, Some(vec![4; 10]), "{change}");
    }
    let dir = full();
    let (journal, _) = open(dir.path());
    commit(&journal, Batch { specs: vec![(WorkerId(1), spec("again"))], ..Batch::default() });
    assert_eq!(loaded(&journal, 1).unwrap().context, Some(vec![3; 5_000]));
}

#[test]
fn one_damaged_spec_is_no_other_workers_concern() {
    for (change, damaged) in [
        ("UPDATE specs SET body = replace(body, 'sh', 'rm') WHERE worker = 1", 1),
        ("UPDATE specs SET environment = (SELECT max(id) FROM environments) WHERE worker = 1", 1),
        ("UPDATE environments SET body = '[]' WHERE id = (SELECT environment FROM specs WHERE worker = 2)", 2),
        ("PRAGMA foreign_keys = OFF; DELETE FROM environments WHERE id = (SELECT environment FROM specs WHERE worker = 2)", 2),
    ] {
        let dir = full();
        raw(dir.path()).execute_batch(change).unwrap();
        let (journal, _) = open(dir.path());
        assert!(matches!(loaded(&journal, damaged), Err(LoadError::SpecDamaged { .. })), "{change}");
        assert!(loaded(&journal, 3 - damaged).is_ok(), "{change}");
    }
}
