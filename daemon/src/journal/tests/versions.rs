//! Older files are migrated with a backup, newer ones are not touched.

use super::*;
use crate::journal::schema::{MIGRATIONS, Migration};

fn colours(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("ALTER TABLE events ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'; CREATE TABLE colours(x TEXT) STRICT")
}

fn fails(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch("CREATE TABLE half(x); CREATE TABLE half(x)")
}

const NEXT: &[Migration] = &[MIGRATIONS[0], MIGRATIONS[1], colours];
const AFTER: &[Migration] = &[MIGRATIONS[0], MIGRATIONS[1], colours, |_| Ok(())];
const FAILING: &[Migration] = &[MIGRATIONS[0], MIGRATIONS[1], fails];

fn open_next(dir: &Path) -> Result<(Journal, Recovered), OpenError> {
    Journal::open_with(dir, &Options { migrations: NEXT, ..options() })
}

/// Everything in the directory but the ballast.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let mut contents: Vec<_> = entries
        .filter(|entry| entry.file_name() != "ballast")
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .filter(|(name, content)| !(name.ends_with("-wal") && content.is_empty()))
        .collect();
    contents.sort();
    contents
}

// Scenario `upgrade_in_place`: the way up.
#[test]
fn an_older_file_is_migrated_and_backed_up_first() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, records(1..=30));
    drop(journal);
    let (journal, found) = open_next(dir.path()).unwrap();
    assert_eq!(found.records, records(1..=30).records);
    assert!(found.notes[0].contains("from format 2 to 3") && found.notes[0].contains("roost.db.v2-backup"), "{:?}", found.notes);
    commit(&journal, records(31..=31));
    drop(journal);
    assert_eq!(open_next(dir.path()).unwrap().1.records.len(), 31);

    let restored = TempDir::new().unwrap();
    fs::copy(dir.path().join("roost.db.v2-backup"), restored.path().join("roost.db")).unwrap();
    assert_eq!(open(restored.path()).1.records, records(1..=30).records);
    let names: Vec<_> = contents(dir.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["roost.db", "roost.db.v2-backup"]);
}

#[test]
fn an_older_file_with_an_unfinished_log_is_backed_up_whole() {
    let (from, dir) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (journal, _) = open(from.path());
    commit(&journal, records(1..=30));
    for name in ["roost.db", "roost.db-wal"] {
        fs::copy(from.path().join(name), dir.path().join(name)).unwrap();
    }
    drop(journal);
    assert_eq!(open_next(dir.path()).unwrap().1.records.len(), 30);
    fs::rename(dir.path().join("roost.db.v2-backup"), from.path().join("roost.db")).unwrap();
    assert_eq!(open(from.path()).1.records.len(), 30);
}

#[test]
fn a_new_file_goes_through_all_migrations_without_a_backup() {
    let dir = TempDir::new().unwrap();
    drop(open_next(dir.path()).unwrap());
    assert_eq!(count(dir.path(), "colours"), 0);
    assert_eq!(contents(dir.path()).len(), 1);
}

// Scenario `upgrade_in_place`: the way back.
#[test]
fn a_newer_file_is_left_untouched_with_and_without_a_log() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = Journal::open_with(dir.path(), &Options { migrations: AFTER, ..options() }).unwrap();
    commit(&journal, records(1..=3));
    let with_log = TempDir::new().unwrap();
    for name in ["roost.db", "roost.db-wal"] {
        fs::copy(dir.path().join(name), with_log.path().join(name)).unwrap();
    }
    drop(journal);
    // A newer format may have another journal mode.
    let other_mode = TempDir::new().unwrap();
    fs::copy(dir.path().join("roost.db"), other_mode.path().join("roost.db")).unwrap();
    raw(other_mode.path()).execute_batch("PRAGMA journal_mode = DELETE").unwrap();
    for dir in [&dir, &with_log, &other_mode] {
        let before = contents(dir.path());
        let error = refusal(dir.path());
        assert!(matches!(error, OpenError::Newer { found: 4, known: 2, .. }), "{error}");
        assert!(error.to_string().contains("v2-backup"), "{error}");
        assert_eq!(contents(dir.path()), before);
    }
    let (_journal, found) = Journal::open_with(with_log.path(), &Options { migrations: AFTER, ..options() }).unwrap();
    assert_eq!(found.records.len(), 3);
}

#[test]
fn a_migration_that_fails_or_finds_damage_leaves_the_old_format() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = open(dir.path());
    commit(&journal, records(1..=3));
    drop(journal);
    let before = fs::read(dir.path().join("roost.db")).unwrap();
    let error = Journal::open_with(dir.path(), &Options { migrations: FAILING, ..options() }).err().unwrap();
    assert!(error.to_string().contains("half"), "{error}");
    assert_eq!(fs::read(dir.path().join("roost.db")).unwrap(), before);
    raw(dir.path()).execute("DELETE FROM events WHERE seq = 2", ()).unwrap();
    let before = fs::read(dir.path().join("roost.db")).unwrap();
    let error = open_next(dir.path()).err().unwrap();
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    assert_eq!(fs::read(dir.path().join("roost.db")).unwrap(), before);
}

/// What the first release wrote is read by this one, and goes on in its own format.
#[test]
fn the_first_format_becomes_this_one() {
    let dir = TempDir::new().unwrap();
    let (journal, _) = Journal::open_with(dir.path(), &Options { migrations: &MIGRATIONS[..1], ..options() }).unwrap();
    commit(&journal, records(1..=3));
    drop(journal);
    let (journal, found) = open(dir.path());
    assert_eq!(found.records, records(1..=3).records);
    assert!(found.notes[0].contains("from format 1 to 2") && found.notes[0].contains("roost.db.v1-backup"), "{:?}", found.notes);
    let text = Batch { texts: vec![(4, roost_proto::id::TreeId(1), b"said".to_vec())], load_texts: vec![4], ..records(4..=4) };
    assert_eq!(commit(&journal, text).texts, [(4, b"said".to_vec())].into());
}
