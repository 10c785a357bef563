//! One worker's spec and context out of the tables, verified. What is wrong with one worker is no error of the journal.

use roost_proto::id::WorkerId;
use rusqlite::{Connection, OptionalExtension};

use super::batch::{Loaded, Spec, sha256};
use super::environments::Environments;
use super::error::LoadError;
use super::write::{SpecBody, spec_crc};

pub(super) fn load(connection: &Connection, worker: WorkerId, environments: &mut Environments) -> Result<Loaded, LoadError> {
    let spec = spec(connection, worker, environments)
        .map_err(|what| LoadError::SpecDamaged { worker, what })?
        .ok_or(LoadError::NoSpec { worker })?;
    let context = context(connection, worker).map_err(|what| LoadError::ContextDamaged { worker, what })?;
    Ok(Loaded { spec, context })
}

fn spec(connection: &Connection, worker: WorkerId, environments: &mut Environments) -> Result<Option<Spec>, String> {
    let row: Option<(i64, String, u32)> = connection
        .prepare_cached("SELECT environment, body, crc FROM specs WHERE worker = ?1")
        .and_then(|mut statement| {
            statement.query_row([worker.0.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
        })
        .map_err(|error| error.to_string())?;
    let Some((environment, body, crc)) = row else {
        return Ok(None);
    };
    let (env, digest) = environments.load(connection, environment)?;
    if spec_crc(worker, &digest, body.as_bytes()) != crc {
        return Err("its checksum does not match".to_owned());
    }
    let body: SpecBody<'_> = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    Ok(Some(Spec {
        argv: body.argv.into_owned(),
        env,
        env_extra: body.env_extra.into_owned(),
        cwd: body.cwd.into_owned(),
        umask: body.umask,
        task: body.task.into_owned(),
    }))
}

fn context(connection: &Connection, worker: WorkerId) -> Result<Option<Vec<u8>>, String> {
    let row: Option<([u8; 32], Vec<u8>)> = connection
        .prepare_cached("SELECT digest, bytes FROM contexts WHERE worker = ?1 ORDER BY generation DESC LIMIT 1")
        .and_then(|mut statement| statement.query_row([worker.0.cast_signed()], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(|error| error.to_string())?;
    match row {
        None => Ok(None),
        Some((digest, bytes)) if sha256(&bytes) == digest => Ok(Some(bytes)),
        Some(_) => Err("it does not match its digest".to_owned()),
    }
}
