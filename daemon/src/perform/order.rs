//! The order for a process: its program, its surroundings, and what it finds on its standard input.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use roost_core::command::Command;
use roost_core::effect::Spawn;
use roost_core::event::Place;
use roost_proto::bytes::Bytes;
use roost_proto::link::{SpawnOrder, Stdin};

use super::{LoadedSpecs, NotOrdered};
use crate::driver::Driver;
use crate::journal::{LoadError, Loaded, context_of};
use crate::outputs::bytes_of;
use crate::session::translate;

impl Driver {
    /// The order for a process, or why there is none.
    pub(super) fn order(&mut self, spawn: &Spawn, loaded: &mut LoadedSpecs) -> Result<SpawnOrder, NotOrdered> {
        let incarnation = spawn.incarnation;
        let failed = |reason: String, transient| NotOrdered::Failed(Command::SpawnFailed { incarnation, reason, transient });
        let Some((_, loaded)) = loaded.pop_front() else { return Err(failed("nothing is stored about how it is started".into(), false)) };
        let Loaded { spec, context } = loaded.map_err(|error| match &error {
            LoadError::ContextDamaged { .. } => NotOrdered::Failed(Command::ContextCorrupt { incarnation, reason: error.to_string() }),
            LoadError::NoSpec { .. } | LoadError::SpecDamaged { .. } => failed(error.to_string(), false),
        })?;
        let mut env = (*spec.env).clone();
        for (name, value) in spec.env_extra {
            set(&mut env, name, value);
        }
        env.extend(self.own_variables(spawn));
        let written = |what: &str, error: io::Error| {
            let is_full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded].contains(&error.kind());
            if is_full { NotOrdered::NoSpace } else { failed(format!("{what} cannot be written: {error}"), true) }
        };
        let stdin = match &spawn.wake {
            // One that speaks is handed its task and its items by its connection.
            None if spawn.speaks => Stdin::Pipe,
            None if spec.task.is_empty() => Stdin::Null,
            None => {
                let path =
                    self.outputs.write_stdin(incarnation, spec.task.as_bytes()).map_err(|error| written("its standard input", error))?;
                Stdin::File(bytes_of(&path))
            }
            Some(wake) => {
                let corrupt = |reason: &str| NotOrdered::Failed(Command::ContextCorrupt { incarnation, reason: reason.into() });
                let context = context.ok_or(corrupt("the journal has none"))?;
                let path = match wake.context.place {
                    Place::Journal if context_of(&context) != wake.context => return Err(corrupt("the journal has another one")),
                    Place::Journal => {
                        self.outputs.write_context(incarnation, &context).map_err(|error| written("its saved context", error))?
                    }
                    Place::Path => {
                        let path = PathBuf::from(OsString::from_vec(context));
                        if !self.verified.remove(&incarnation) {
                            return Err(NotOrdered::Unverified(path));
                        }
                        path
                    }
                };
                env.push(("ROOST_WAKE".into(), "1".into()));
                env.push(("ROOST_CONTEXT".into(), Bytes(bytes_of(&path))));
                if spawn.speaks {
                    Stdin::Pipe
                } else {
                    let shelf = self.shelf();
                    let mut items = serde_json::to_vec(&translate::wake(wake, &shelf)).map_err(|error| failed(error.to_string(), false))?;
                    items.push(b'\n');
                    let path = self.outputs.write_stdin(incarnation, &items).map_err(|error| written("its standard input", error))?;
                    // A start that finds no room is made again, and told once.
                    self.transcripts.woken(spawn, &items);
                    Stdin::File(bytes_of(&path))
                }
            }
        };
        if spawn.wake.is_none() {
            self.transcripts.started(spawn, &spec.task);
        }
        Ok(SpawnOrder {
            incarnation,
            argv: spec.argv.into_iter().map(|argument| argument.0).collect(),
            env: env.into_iter().map(|(name, value)| (name.0, value.0)).collect(),
            cwd: spec.cwd.0,
            umask: spec.umask,
            stdin,
            stdout_path: bytes_of(&self.outputs.stdout(incarnation)),
            stderr_path: bytes_of(&self.outputs.stderr(incarnation)),
            leftovers_grace_ms: spawn.leftovers_grace_ms,
        })
    }

    /// What every worker learns about itself. The submitter's `ROOST_*` variables were left out when its launch was accepted.
    fn own_variables(&self, spawn: &Spawn) -> Vec<(Bytes, Bytes)> {
        let text = |name: &str, value: String| (Bytes::from(name), Bytes(value.into_bytes()));
        vec![
            ("ROOST_SOCKET".into(), Bytes::from(self.paths.socket.as_os_str())),
            ("ROOST_STATE_DIR".into(), Bytes::from(self.paths.state_dir.as_os_str())),
            text("ROOST_TREE", spawn.tree.to_string()),
            text("ROOST_WORKER", spawn.worker.to_string()),
            text("ROOST_TOKEN", spawn.token.reveal()),
            text("ROOST_EPOCH", spawn.incarnation.epoch.to_string()),
            text("ROOST_EXECUTION", spawn.incarnation.execution.to_string()),
        ]
    }
}

/// Sets a variable, in place where it is set already.
fn set(env: &mut Vec<(Bytes, Bytes)>, name: Bytes, value: Bytes) {
    match env.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => env.push((name, value)),
    }
}
