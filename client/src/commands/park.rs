//! `roost park`: for `exec` in a plain command. Saves a context and leaves; anything wrong and nothing is saved.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use roost::proto::bytes::Bytes;
use roost::proto::message::park::Park;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::setup::Setup;
use crate::values;

/// Save a context and leave; the same command is started again when children have ended
#[derive(Debug, Args)]
#[command(
    after_help = "Example (a worker's script):\n  if [ \"$ROOST_WAKE\" = 1 ]; then cat \"$ROOST_CONTEXT\"; exit; fi   # the children's ends are JSON on stdin\n  \
    roost spawn -- ./part.sh\n  echo 'how far I am' > ctx; exec roost park --context ctx"
)]
pub struct ParkArgs {
    /// What the next process finds in the file $ROOST_CONTEXT: a file, or `-` for standard input [default: nothing]
    #[arg(long, value_name = "FILE")]
    context: Option<OsString>,
    /// Instead: a file of your own, up to 1 GiB, that stays where it is; $ROOST_CONTEXT names it then, and it must not have changed
    #[arg(long, value_name = "FILE", conflicts_with = "context")]
    context_path: Option<PathBuf>,
}

impl ParkArgs {
    /// Parks.
    pub fn run(self, setup: &Setup) -> Result<Exit, Failure> {
        if setup.tree.is_some() || !setup.in_worker()? {
            return Err(Failure::Usage {
                kind: "not_worker",
                message: "only a worker can park, and ROOST_WORKER is not set".into(),
                hint: Some("use it as the last command of a script that runs under `roost run` or `roost spawn`".into()),
            });
        }
        // The broker waits for the worker's main process to exit: that must be this one. A worker leads its session; a command that
        // its script has forked does not.
        if rustix::process::getsid(None) != Ok(rustix::process::getpid()) {
            return Err(Failure::Usage {
                kind: "not_main_process",
                message: "this process is not the worker's main one, and parking ends only that".into(),
                hint: Some("replace the script by it, as its last command: exec roost park ...".into()),
            });
        }
        let request = match self.context_path {
            Some(path) => {
                let absolute = std::path::absolute(&path);
                let path = absolute.map_err(|source| Failure::Input { what: path.display().to_string(), source })?;
                Park { context: None, context_path: Some(Bytes::from(path.as_os_str())) }
            }
            None => {
                let context = self.context.as_deref().map_or_else(|| Ok(Vec::new()), values::read_input)?;
                Park { context: Some(Bytes(context)), context_path: None }
            }
        };
        setup.in_tree()?.park(&request)?;
        Ok(Exit::Ok)
    }
}
