//! One worker's spec and context out of the tables, verified. What is wrong with one worker is no error of the journal.

use roost_proto::id::WorkerId;
use rusqlite::{Connection, OptionalExtension, Row};

use super::batch::{Loaded, Spec, sha256};
use super::environments::Environments;
use super::error::LoadError;
use super::write::{SpecBody, spec_crc};

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
