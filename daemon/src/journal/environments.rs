//! Environments, each distinct one stored once, and the last few kept parsed: a storm of workers from one shell shares one.

use std::collections::VecDeque;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, params};

use super::batch::{Environment, sha256};
use super::write::not_stored;

/// Most environments that are kept in memory.
const RECENT_MAX: usize = 8;

pub(super) type EnvironmentDigest = [u8; 32];

/// The last few environments. It says nothing about what is in the file.
#[derive(Debug, Default)]
pub(super) struct Environments {
    recent: VecDeque<(EnvironmentDigest, Environment)>,
}

impl Environments {
    /// The row of this environment, made if need be, and its digest.
    pub(super) fn store(&mut self, connection: &Connection, env: &Environment) -> rusqlite::Result<(i64, EnvironmentDigest)> {
        let known = self.recent.iter().find(|(_, recent)| Arc::ptr_eq(recent, env)).map(|(digest, _)| *digest);
        let (digest, body) = match known {
            Some(digest) => (digest, None),
            None => {
                let body = encode(env)?;
                (sha256(body.as_bytes()), Some(body))
            }
        };
        self.remember(digest, env);
        let row =
            connection.prepare_cached("SELECT id FROM environments WHERE digest = ?1")?.query_row([digest], |row| row.get(0)).optional()?;
        if let Some(id) = row {
            return Ok((id, digest));
        }
        let body = body.map_or_else(|| encode(env), Ok)?;
        connection.prepare_cached("INSERT INTO environments(digest, body) VALUES (?1, ?2)")?.execute(params![digest, body])?;
        Ok((connection.last_insert_rowid(), digest))
    }

    /// The environment of this row, or what is wrong with it.
    pub(super) fn load(&mut self, connection: &Connection, id: i64) -> Result<(Environment, EnvironmentDigest), String> {
        let digest: EnvironmentDigest = connection
            .prepare_cached("SELECT digest FROM environments WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([id], |row| row.get(0)))
            .map_err(|error| format!("its environment cannot be read: {error}"))?;
        if let Some((_, env)) = self.recent.iter().find(|(recent, _)| *recent == digest) {
            let env = Arc::clone(env);
            self.remember(digest, &env);
            return Ok((env, digest));
        }
        let body: String = connection
            .prepare_cached("SELECT body FROM environments WHERE id = ?1")
            .and_then(|mut statement| statement.query_row([id], |row| row.get(0)))
            .map_err(|error| format!("its environment cannot be read: {error}"))?;
        if sha256(body.as_bytes()) != digest {
            return Err("its environment does not match its digest".to_owned());
        }
        let env = Arc::new(serde_json::from_str(&body).map_err(|error| format!("its environment is not understood: {error}"))?);
        self.remember(digest, &env);
        Ok((env, digest))
    }

    fn remember(&mut self, digest: EnvironmentDigest, env: &Environment) {
        let env = match self.recent.iter().position(|(recent, _)| *recent == digest).and_then(|at| self.recent.remove(at)) {
            Some((_, known)) => known,
            None => Arc::clone(env),
        };
        self.recent.truncate(RECENT_MAX - 1);
        self.recent.push_front((digest, env));
    }
}

/// Removes this environment if no spec refers to it any more.
pub(super) fn sweep(connection: &Connection, id: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM environments WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM specs WHERE environment = ?1)")?
        .execute([id])?;
    Ok(())
}

fn encode(env: &Environment) -> rusqlite::Result<String> {
    serde_json::to_string(&**env).map_err(not_stored)
}
