//! The journal of a daemon that has ended, as any SQLite reads it: what it has recorded, event by event.

use std::path::PathBuf;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

use super::home::Home;

/// The journal's file.
pub fn journal_file(home: &Home) -> PathBuf {
    home.state_dir().join("roost.db")
}

/// All events, in their order. Only after the daemon has ended in order: the write-ahead log is worked off then.
#[track_caller]
pub fn recorded(home: &Home) -> Vec<Value> {
    let file = journal_file(home);
    let connection =
        Connection::open_with_flags(&file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut statement = connection.prepare("SELECT body FROM events ORDER BY seq").expect("the table of events");
    let bodies = statement.query_map((), |row| row.get::<_, String>(0)).expect("its rows");
    bodies.map(|body| serde_json::from_str(&body.expect("a text")).expect("an event")).collect()
}
