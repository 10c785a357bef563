//! Opening the file: lock, version, migration, recovery. Everything here can still refuse and leave the file as it was.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::batch::Recovered;
use super::damage::{self, wal_of};
use super::error::{Fault, Meaning, OpenError, meaning};
use super::head::Head;
use super::recover::{self, Found};
use super::schema::{self, APPLICATION_ID, MIGRATIONS, Migration};
use super::wal;

/// The journal's name in the state directory.
const FILE: &str = "roost.db";
/// What SQLite's file header takes.
const HEADER_BYTES: u64 = 100;
/// A write-ahead log that grew beyond this is cut back when it is begun anew.
const WAL_BYTES_KEPT: i64 = 16 << 20;
/// Page cache, in KiB (SQLite counts those negative).
const CACHE_KIB: i64 = -8 << 10;

/// What a test may want otherwise.
#[derive(Debug, Clone)]
pub(super) struct Options {
    /// How long a dying older broker is waited for.
    pub(super) busy_timeout: Duration,
    /// How long nothing is asked for before the write-ahead log is worked off.
    pub(super) idle: Duration,
    /// The steps to the newest version.
    pub(super) migrations: &'static [Migration],
    /// Most pages of the file.
    pub(super) pages_max: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { busy_timeout: Duration::from_secs(10), idle: Duration::from_millis(250), migrations: MIGRATIONS, pages_max: None }
    }
}

/// An open journal.
pub(super) struct Opened {
    pub(super) connection: Connection,
    pub(super) head: Head,
    /// The newest snapshot that is sound.
    pub(super) good_snapshot: Option<u64>,
    pub(super) recovered: Recovered,
}

pub(super) fn open(state_dir: &Path, options: &Options) -> Result<Opened, OpenError> {
    let file = state_dir.join(FILE);
    // By the time an error is looked at the connection is closed: a copy of the file through another descriptor takes no lock away.
    attempt(&file, options).map_err(|fault| match fault {
        Fault::Refused(error) => error,
        Fault::Damage(what) => damage::refuse(&file, what),
        Fault::Sqlite(source) => match meaning(&source) {
            Meaning::InUse => {
                let waited_ms = u64::try_from(options.busy_timeout.as_millis()).unwrap_or(u64::MAX);
                OpenError::InUse { file: file.clone(), waited_ms }
            }
            Meaning::NoSpace => OpenError::NoSpace { file: file.clone() },
            Meaning::Storage => OpenError::Storage { file: file.clone(), source },
            Meaning::Damage => damage::refuse(&file, source.to_string()),
        },
    })
}

fn attempt(file: &Path, options: &Options) -> Result<Opened, Fault> {
    make(file)?;
    let mut connection = connect(file, options)?;
    let version = version(&connection, file, schema::newest(options.migrations))?;
    let mut notes = Vec::new();
    notes.extend(wal::inspect(&wal_of(file))?);
    configure(&connection, options)?;
    notes.extend(prepare_migration(&connection, file, version, options.migrations)?);

    // In one transaction, so that a migrated file is committed only when it could be read back.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    schema::migrate(&transaction, version, options.migrations)?;
    schema::check(&transaction, options.migrations)?;
    let Found { head, snapshot, records } = recover::recover(&transaction, &mut notes)?;
    transaction.commit()?;

    restrict(file)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    if let Err(error) = checkpoint(&connection, "TRUNCATE") {
        match meaning(&error) {
            // It is complete where it is.
            Meaning::NoSpace | Meaning::InUse => notes.push(format!("the write-ahead log could not be worked off yet: {error}")),
            // After a failed sync nobody knows what a later one that succeeds has really written.
            Meaning::Storage | Meaning::Damage => return Err(error.into()),
        }
    }
    let good_snapshot = snapshot.as_ref().map(|snapshot| snapshot.seq);
    let recovered = Recovered { snapshot, records, clock: head.clock.clone(), notes };
    Ok(Opened { connection, head, good_snapshot, recovered })
}

/// Makes an empty file that only we may read. One that is empty while a log lies beside it has lost what the log belongs to:
/// SQLite would delete the log.
fn make(file: &Path) -> Result<(), Fault> {
    let failed = |doing| move |source| Fault::Refused(OpenError::Io { path: file.to_owned(), doing, source });
    let size = |path: &Path| match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let bytes = size(file).map_err(failed("looking at"))?;
    let wal_is_empty = size(&wal_of(file)).map_err(failed("looking at the log of"))?.unwrap_or(0) == 0;
    if bytes.unwrap_or(0) == 0 && !wal_is_empty {
        let is = if bytes.is_some() { "empty" } else { "missing" };
        return Err(Fault::Damage(format!("the file is {is}, but its write-ahead log is not")));
    }
    if wal_is_empty
        && let Some((bytes, written)) = bytes.zip(written_bytes(file).map_err(failed("reading the header of"))?)
        && bytes < written
    {
        // SQLite would read zeros where the last page ends, and only when it comes there.
        return Err(Fault::Damage(format!("it is cut off: it has {bytes} bytes, and {written} were written")));
    }
    if bytes == Some(1) {
        // SQLite would take it for empty.
        return Err(Fault::Damage("file is not a database".to_owned()));
    }
    if bytes.is_none() {
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(failed("creating"))?;
        schema::sync_directory(file).map_err(failed("syncing the directory of"))?;
    }
    Ok(())
}

/// How large the file is by its own header, when that says so and can be believed. With a log that is not empty it may be smaller.
fn written_bytes(file: &Path) -> io::Result<Option<u64>> {
    let mut header = Vec::new();
    match fs::File::open(file) {
        Ok(file) => file.take(HEADER_BYTES).read_to_end(&mut header)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let number = |at: usize| Some(u64::from(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?)));
    let page_size = header.get(16..18).map_or(0, |bytes| u64::from(u16::from_be_bytes([bytes[0], bytes[1]])));
    // The count of pages is valid while the change counter is the one that it was written with.
    let is_valid = header.starts_with(b"SQLite format 3\0") && number(24) == number(92);
    Ok(number(28).filter(|_| is_valid).map(|pages| pages * page_size))
}

fn connect(file: &Path, options: &Options) -> Result<Connection, Fault> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(options.busy_timeout)?;
    // Until it is certain that the file is ours and sound, closing it must change nothing.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    Ok(connection)
}

/// The version of the file, 0 when nothing is in it. From here on it is locked.
fn version(connection: &Connection, file: &Path, known: u32) -> Result<u32, Fault> {
    // An exclusive transaction that writes nothing: of two that open a new file at once, one wins.
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let found = if application == APPLICATION_ID {
        match u32::try_from(version) {
            Ok(found) if found > known => return Err(OpenError::Newer { file: file.to_owned(), found, known }.into()),
            Ok(found) if found > 0 => found,
            Ok(_) | Err(_) => return Err(Fault::Damage(format!("there is no format {version}"))),
        }
    } else {
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))?;
        // One page without a table is what a crash leaves that comes between the file's creation and its first commit.
        if (application, version, tables) != (0, 0, 0) || number("page_count")? > 1 {
            return Err(Fault::Damage(format!("it is an SQLite file, but not a journal of roostd (application id {application:#x})")));
        }
        0
    };
    connection.execute_batch("ROLLBACK")?;
    Ok(found)
}

fn configure(connection: &Connection, options: &Options) -> Result<(), Fault> {
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(Fault::Damage(format!("it cannot be switched to a write-ahead log (it stays {mode})")));
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    // Commits never pay for it: see the writer.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cache_size", CACHE_KIB)?;
    if let Some(pages) = options.pages_max {
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(())
}

fn prepare_migration(connection: &Connection, file: &Path, version: u32, migrations: &[Migration]) -> Result<Option<String>, Fault> {
    let newest = schema::newest(migrations);
    if version == 0 {
        return Ok(Some(format!("began a new journal, {}", file.display())));
    }
    if version == newest {
        return Ok(None);
    }
    let backup = schema::back_up(connection, file, version)?;
    Ok(Some(format!("migrated the journal from format {version} to {newest}; as it was before it is in {}", backup.display())))
}

/// Takes the rights away that an older build, a copy or a restore may have left.
fn restrict(file: &Path) -> Result<(), Fault> {
    for path in [file.to_owned(), wal_of(file)] {
        match fs::set_permissions(&path, fs::Permissions::from_mode(0o600)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(OpenError::Io { path, doing: "restricting the rights of", source }.into()),
        }
    }
    Ok(())
}

/// Works the write-ahead log off into the file.
pub(super) fn checkpoint(connection: &Connection, how: &str) -> rusqlite::Result<()> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({how})"), (), |_| Ok(()))
}
