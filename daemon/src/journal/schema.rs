//! The tables, their versions, and how an older file becomes a newer one.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::error::{Fault, OpenError};
use super::head::{self, Head};

/// `Rost`: marks an SQLite file as a journal of ours.
pub(super) const APPLICATION_ID: i32 = 0x526F_7374;

/// A step from one version to the next. Its place in the list is the version that it makes, from 1. A released one is never changed.
pub(super) type Migration = fn(&Connection) -> rusqlite::Result<()>;

/// All of them.
pub(super) const MIGRATIONS: &[Migration] = &[version_1, version_2];

fn version_1(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE head(
            id INTEGER PRIMARY KEY CHECK (id = 1), last_seq INTEGER NOT NULL,
            boot_id TEXT, mono_ms INTEGER, offset_ms INTEGER, crc INTEGER NOT NULL) STRICT;
         CREATE TABLE events(
            seq INTEGER PRIMARY KEY, mono_ms INTEGER NOT NULL, wall_ms INTEGER NOT NULL,
            body TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;
         CREATE TABLE snapshots(
            seq INTEGER PRIMARY KEY, bytes BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
         CREATE TABLE environments(
            id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, body TEXT NOT NULL) STRICT;
         CREATE TABLE specs(
            worker INTEGER PRIMARY KEY, environment INTEGER NOT NULL REFERENCES environments(id),
            body TEXT NOT NULL, crc INTEGER NOT NULL, generation INTEGER NOT NULL) STRICT;
         CREATE INDEX specs_environment ON specs(environment);
         CREATE TABLE contexts(
            id INTEGER PRIMARY KEY, worker INTEGER NOT NULL, generation INTEGER NOT NULL,
            digest BLOB NOT NULL, bytes BLOB NOT NULL, UNIQUE(worker, generation)) STRICT;",
    )?;
    head::write(connection, &Head::default())
}

/// Texts of workers that speak and of messages, and the numbered stream of each tree.
fn version_2(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "CREATE TABLE texts(
            seq INTEGER PRIMARY KEY, tree INTEGER NOT NULL, bytes BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
         CREATE INDEX texts_tree ON texts(tree);
         CREATE TABLE stream(
            tree INTEGER NOT NULL, number INTEGER NOT NULL, body TEXT NOT NULL,
            PRIMARY KEY(tree, number)) STRICT, WITHOUT ROWID;",
    )
}

pub(super) fn newest(migrations: &[Migration]) -> u32 {
    u32::try_from(migrations.len()).unwrap_or(u32::MAX)
}

/// Makes the newest version of this one (0: nothing there yet). For inside a transaction.
pub(super) fn migrate(connection: &Connection, version: u32, migrations: &[Migration]) -> rusqlite::Result<()> {
    if version == newest(migrations) {
        return Ok(());
    }
    for migration in migrations.iter().skip(version as usize) {
        migration(connection)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", newest(migrations))
}

/// Whether the tables are exactly those that the migrations make: the schema is data too, and can be damaged like it.
pub(super) fn check(connection: &Connection, migrations: &[Migration]) -> Result<(), Fault> {
    let model = Connection::open_in_memory()?;
    migrate(&model, 0, migrations)?;
    if describe(connection)? == describe(&model)? {
        return Ok(());
    }
    Err(Fault::Damage("its tables are not those of its format".to_owned()))
}

fn describe(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT concat_ws('|', type, name, tbl_name, sql) FROM sqlite_schema ORDER BY type, name")?;
    let rows = statement.query_map((), |row| row.get(0))?;
    rows.collect()
}

/// A copy of the whole journal beside it, complete and synced before it gets its name.
pub(super) fn back_up(connection: &Connection, file: &Path, version: u32) -> Result<PathBuf, Fault> {
    let named = |suffix: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".v{version}-backup{suffix}"));
        PathBuf::from(name)
    };
    let (target, draft) = (named(""), named(".part"));
    let failed = |source| OpenError::Io { path: draft.clone(), doing: "making a backup of the journal,", source };
    begin_draft(&draft).map_err(failed)?;
    let mut copy = Connection::open(&draft)?;
    // Not `run_to_completion`: that would sleep and try again for ever on a lock that cannot be there.
    let step = Backup::new(connection, &mut copy)?.step(-1)?;
    if step != StepResult::Done {
        return Err(failed(io::Error::other(format!("SQLite says {step:?}"))).into());
    }
    copy.close().map_err(|(_, error)| error)?;
    fs::File::open(&draft).and_then(|it| it.sync_all()).map_err(failed)?;
    fs::rename(&draft, &target).map_err(failed)?;
    sync_directory(file).map_err(failed)?;
    Ok(target)
}

fn begin_draft(draft: &Path) -> io::Result<()> {
    if let Err(error) = fs::remove_file(draft)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft).map(drop)
}

/// Makes the names in the directory of this file durable.
pub(super) fn sync_directory(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(directory) => fs::File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}
