//! One batch into the tables. The transaction around it, and what becomes of an error, are the writer's.

use std::borrow::Cow;

use roost_core::event::Record;
use roost_proto::bytes::Bytes;
use roost_proto::id::WorkerId;
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};

use super::batch::{Batch, Snapshot, Spec, sha256};
use super::crc::Crc;
use super::environments::{self, EnvironmentDigest, Environments};
use super::error::CommitError;
use super::head::Head;
use super::recover::{record_crc, snapshot_crc};

/// Most old records that one commit removes, so that none takes long.
const FORGET_MAX: i64 = 10_000;

/// How far the journal goes, in memory.
#[derive(Debug, Clone)]
pub(super) struct Reach {
    pub(super) head: Head,
    /// The newest snapshot that is sound: it stays until there are two newer ones.
    pub(super) good_snapshot: Option<u64>,
}

impl Reach {
    /// What it is after this batch, or why the batch cannot follow.
    pub(super) fn after(&self, batch: &Batch) -> Result<Reach, CommitError> {
        let mut after = self.clone();
        if let Some(clock) = &batch.clock {
            after.head.set_clock(clock);
        }
        for record in &batch.records {
            let expected = after.head.last_seq + 1;
            if record.seq != expected {
                return Err(CommitError::Gap { expected, found: record.seq });
            }
            after.head.last_seq = expected;
            after.head.saw(record.at.mono.0);
        }
        if let Some(snapshot) = &batch.snapshot {
            let (oldest, newest) = (self.good_snapshot.unwrap_or(0), after.head.last_seq);
            if !(oldest..=newest).contains(&snapshot.seq) {
                return Err(CommitError::MisplacedSnapshot { found: snapshot.seq, oldest, newest });
            }
            after.good_snapshot = Some(snapshot.seq);
        }
        Ok(after)
    }
}

/// Writes everything but the head. `before` is how far the journal went without this batch.
pub(super) fn write(connection: &Connection, batch: &Batch, before: &Reach, environments: &mut Environments) -> rusqlite::Result<()> {
    for record in &batch.records {
        put_record(connection, record)?;
    }
    for (worker, spec) in &batch.specs {
        put_spec(connection, *worker, spec, environments)?;
    }
    for (worker, bytes) in &batch.contexts {
        put_context(connection, *worker, bytes)?;
    }
    for (seq, tree, bytes) in &batch.texts {
        let sql = "INSERT INTO texts(seq, tree, bytes, crc) VALUES (?1, ?2, ?3, ?4)";
        let crc = text_crc(*seq, bytes);
        connection.prepare_cached(sql)?.execute(params![seq.cast_signed(), tree.0.cast_signed(), bytes, crc])?;
    }
    for seq in &batch.forget_texts {
        connection.prepare_cached("DELETE FROM texts WHERE seq = ?1")?.execute([seq.cast_signed()])?;
    }
    for (tree, event) in &batch.stream {
        let body = serde_json::to_string(event).map_err(not_stored)?;
        let sql = "INSERT INTO stream(tree, number, body) VALUES (?1, ?2, ?3)";
        connection.prepare_cached(sql)?.execute(params![tree.0.cast_signed(), event.number.cast_signed(), body])?;
    }
    for tree in &batch.forget_trees {
        connection.prepare_cached("DELETE FROM texts WHERE tree = ?1")?.execute([tree.0.cast_signed()])?;
        connection.prepare_cached("DELETE FROM stream WHERE tree = ?1")?.execute([tree.0.cast_signed()])?;
    }
    for worker in &batch.forget {
        forget(connection, *worker)?;
    }
    if let Some(snapshot) = &batch.snapshot {
        put_snapshot(connection, snapshot, before.good_snapshot)?;
    }
    if let Some(seq) = batch.forget_records_to {
        forget_records(connection, seq)?;
    }
    Ok(())
}

fn put_record(connection: &Connection, record: &Record) -> rusqlite::Result<()> {
    let body = serde_json::to_string(&record.event).map_err(not_stored)?;
    let (mono_ms, wall_ms) = (record.at.mono.0, record.at.wall_ms);
    let crc = record_crc(record.seq, mono_ms, wall_ms, body.as_bytes());
    connection.prepare_cached("INSERT INTO events(seq, mono_ms, wall_ms, body, crc) VALUES (?1, ?2, ?3, ?4, ?5)")?.execute(params![
        record.seq.cast_signed(),
        mono_ms.cast_signed(),
        wall_ms.cast_signed(),
        body,
        crc
    ])?;
    Ok(())
}

/// What a row of `specs` holds beside the environment.
#[derive(Serialize, Deserialize)]
pub(super) struct SpecBody<'a> {
    pub(super) argv: Cow<'a, [Bytes]>,
    pub(super) env_extra: Cow<'a, [(Bytes, Bytes)]>,
    pub(super) cwd: Cow<'a, Bytes>,
    pub(super) umask: u32,
    pub(super) task: Cow<'a, str>,
}

/// Over the environment too: a reference to another one must not pass.
pub(super) fn spec_crc(worker: WorkerId, env: &EnvironmentDigest, body: &[u8]) -> u32 {
    Crc::new().number(worker.0).bytes(env).bytes(body).value()
}

pub(super) fn text_crc(seq: u64, bytes: &[u8]) -> u32 {
    Crc::new().number(seq).bytes(bytes).value()
}

fn put_spec(connection: &Connection, worker: WorkerId, spec: &Spec, environments: &mut Environments) -> rusqlite::Result<()> {
    forget_spec(connection, worker)?;
    let (env, digest) = environments.store(connection, &spec.env)?;
    let body = serde_json::to_string(&SpecBody {
        argv: Cow::Borrowed(&spec.argv),
        env_extra: Cow::Borrowed(&spec.env_extra),
        cwd: Cow::Borrowed(&spec.cwd),
        umask: spec.umask,
        task: Cow::Borrowed(&spec.task),
    })
    .map_err(not_stored)?;
    let crc = spec_crc(worker, &digest, body.as_bytes());
    let sql = "INSERT INTO specs(worker, environment, body, crc, generation)
               VALUES (?1, ?2, ?3, ?4, ifnull((SELECT max(generation) FROM contexts WHERE worker = ?1), 0))";
    connection.prepare_cached(sql)?.execute(params![worker.0.cast_signed(), env, body, crc])?;
    Ok(())
}

fn put_context(connection: &Connection, worker: WorkerId, bytes: &[u8]) -> rusqlite::Result<()> {
    let worker = worker.0.cast_signed();
    let last: Option<i64> =
        connection.prepare_cached("SELECT max(generation) FROM contexts WHERE worker = ?1")?.query_row([worker], |row| row.get(0))?;
    let generation = last.unwrap_or(0).saturating_add(1);
    connection.prepare_cached("INSERT INTO contexts(worker, generation, digest, bytes) VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        worker,
        generation,
        sha256(bytes),
        bytes
    ])?;
    // Said twice: a context that vanished must not pass for none, which would be a fresh start.
    connection.prepare_cached("UPDATE specs SET generation = ?2 WHERE worker = ?1")?.execute([worker, generation])?;
    connection.prepare_cached("DELETE FROM contexts WHERE worker = ?1 AND generation < ?2")?.execute([worker, generation - 1])?;
    Ok(())
}

fn forget(connection: &Connection, worker: WorkerId) -> rusqlite::Result<()> {
    forget_spec(connection, worker)?;
    connection.prepare_cached("DELETE FROM contexts WHERE worker = ?1")?.execute([worker.0.cast_signed()])?;
    Ok(())
}

fn forget_spec(connection: &Connection, worker: WorkerId) -> rusqlite::Result<()> {
    let environment: Option<i64> = connection
        .prepare_cached("DELETE FROM specs WHERE worker = ?1 RETURNING environment")?
        .query_row([worker.0.cast_signed()], |row| row.get(0))
        .optional()?;
    environment.map_or(Ok(()), |id| environments::sweep(connection, id))
}

fn put_snapshot(connection: &Connection, snapshot: &Snapshot, good: Option<u64>) -> rusqlite::Result<()> {
    let seq = snapshot.seq.cast_signed();
    connection.prepare_cached("INSERT OR REPLACE INTO snapshots(seq, bytes, crc) VALUES (?1, ?2, ?3)")?.execute(params![
        seq,
        snapshot.bytes,
        snapshot_crc(snapshot.seq, &snapshot.bytes)
    ])?;
    match good.map(u64::cast_signed) {
        // Written again: the one before it stays the one before.
        Some(good) if good == seq => Ok(()),
        good => {
            connection.prepare_cached("DELETE FROM snapshots WHERE seq NOT IN (?1, ifnull(?2, ?1))")?.execute(params![seq, good])?;
            Ok(())
        }
    }
}

fn forget_records(connection: &Connection, seq: u64) -> rusqlite::Result<()> {
    let number = |sql: &str| connection.prepare_cached(sql)?.query_row((), |row| row.get::<_, Option<i64>>(0));
    let older_snapshot = number("SELECT CASE WHEN count(*) > 1 THEN min(seq) END FROM snapshots")?;
    let first = number("SELECT min(seq) FROM events")?;
    if let (Some(older_snapshot), Some(first)) = (older_snapshot, first) {
        let last = seq.cast_signed().min(older_snapshot).min(first.saturating_add(FORGET_MAX - 1));
        connection.prepare_cached("DELETE FROM events WHERE seq <= ?1")?.execute([last])?;
    }
    Ok(())
}

pub(super) fn not_stored(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
