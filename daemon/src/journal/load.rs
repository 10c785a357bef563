//! One worker's spec and context out of the tables, verified. What is wrong with one worker is no error of the journal.

use roost_proto::id::{TreeId, WorkerId};
use rusqlite::{Connection, OptionalExtension, Row};

use super::batch::{Loaded, Spec, sha256};
use super::environments::Environments;
use super::error::LoadError;
use super::write::{SpecBody, spec_crc, text_crc};

pub(super) fn load(connection: &Connection, worker: WorkerId, environments: &mut Environments) -> Result<Loaded, LoadError> {
    let (spec, generation) = spec(connection, worker, environments)
        .map_err(|what| LoadError::SpecDamaged { worker, what })?
        .ok_or(LoadError::NoSpec { worker })?;
    let context = context(connection, worker, generation).map_err(|what| LoadError::ContextDamaged { worker, what })?;
    Ok(Loaded { spec, context })
}

/// The spec, and which generation of the context is the newest, 0 for none.
fn spec(connection: &Connection, worker: WorkerId, environments: &mut Environments) -> Result<Option<(Spec, i64)>, String> {
    let row: Option<(i64, String, u32, i64)> = connection
        .prepare_cached("SELECT environment, body, crc, generation FROM specs WHERE worker = ?1")
        .and_then(|mut statement| {
            let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
            statement.query_row([worker.0.cast_signed()], columns).optional()
        })
        .map_err(|error| error.to_string())?;
    let Some((environment, body, crc, generation)) = row else {
        return Ok(None);
    };
    let (env, digest) = environments.load(connection, environment)?;
    if spec_crc(worker, &digest, body.as_bytes()) != crc {
        return Err("its checksum does not match".to_owned());
    }
    let body: SpecBody<'_> = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    let spec = Spec {
        argv: body.argv.into_owned(),
        env,
        env_extra: body.env_extra.into_owned(),
        cwd: body.cwd.into_owned(),
        umask: body.umask,
        task: body.task.into_owned(),
    };
    Ok(Some((spec, generation)))
}

fn context(connection: &Connection, worker: WorkerId, generation: i64) -> Result<Option<Vec<u8>>, String> {
    let row: Option<(i64, [u8; 32], Vec<u8>)> = connection
        .prepare_cached("SELECT generation, digest, bytes FROM contexts WHERE worker = ?1 ORDER BY generation DESC LIMIT 1")
        .and_then(|mut statement| {
            statement.query_row([worker.0.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        })
        .map_err(|error| error.to_string())?;
    match row {
        None if generation == 0 => Ok(None),
        None => Err(format!("generation {generation} is missing")),
        Some((found, _, _)) if found != generation => Err(format!("generation {generation} is missing, {found} is there")),
        Some((_, digest, bytes)) if sha256(&bytes) == digest => Ok(Some(bytes)),
        Some(_) => Err("it does not match its digest".to_owned()),
    }
}

/// A text, verified. One that is missing or damaged is told in the log and is nobody else's fault.
pub(super) fn text(connection: &Connection, seq: u64) -> Option<Vec<u8>> {
    let row: rusqlite::Result<Option<(Vec<u8>, u32)>> = connection
        .prepare_cached("SELECT bytes, crc FROM texts WHERE seq = ?1")
        .and_then(|mut statement| statement.query_row([seq.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?))).optional());
    match row {
        Ok(Some((bytes, crc))) if text_crc(seq, &bytes) == crc => return Some(bytes),
        Ok(Some(_)) => tracing::error!(seq, "a text in the journal does not match its checksum"),
        Ok(None) => tracing::error!(seq, "a text is missing in the journal"),
        Err(error) => tracing::error!(seq, %error, "a text cannot be read"),
    }
    None
}

/// A worker's task.
pub(super) fn task(connection: &Connection, worker: WorkerId, environments: &mut Environments) -> Option<String> {
    match spec(connection, worker, environments) {
        Ok(Some((spec, _))) => return Some(spec.task),
        Ok(None) => tracing::error!(%worker, "the task of a worker is missing in the journal"),
        Err(error) => tracing::error!(%worker, error, "the task of a worker cannot be read"),
    }
    None
}

/// Events of a tree's stream, as they were written.
pub(super) fn stream(connection: &Connection, tree: TreeId, from: u64, most: u32) -> Vec<String> {
    let read = || {
        let sql = "SELECT body FROM stream WHERE tree = ?1 AND number >= ?2 ORDER BY number LIMIT ?3";
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(rusqlite::params![tree.0.cast_signed(), from.cast_signed(), most], |row| row.get(0))?;
        rows.collect::<rusqlite::Result<Vec<String>>>()
    };
    read().unwrap_or_else(|error| {
        tracing::error!(%tree, %error, "the stream of a tree cannot be read");
        Vec::new()
    })
}
