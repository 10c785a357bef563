//! `roost open`: a tree for a script that is its own root.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use clap::Args;
use roost::Connection;

use crate::conf::Conf;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use crate::settings::SettingsArgs;
use crate::setup::Setup;
use crate::values;

/// Open a tree and print shell exports, so that a script is its root
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  eval \"$(roost open --cap 4)\"\n  roost spawn -- make test\n  roost wait\n  roost close")]
pub struct OpenArgs {
    /// A name by which a later session finds the tree again
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    settings: SettingsArgs,
}

impl OpenArgs {
    /// Opens and prints.
    pub fn run(self, setup: &Setup, out: &mut Out) -> Result<Exit, Failure> {
        if setup.tree.is_some() {
            return Err(Failure::usage("--tree names a tree that is open already", None));
        }
        let config = setup.config()?.without_identity();
        let paths = config.paths.clone();
        let settings = self.settings.settings(Conf::default().loaded()?);
        let opened = Connection::dial(config)?.open(settings, self.key, false)?;
        if !opened.created {
            self.settings.note_without_effect(&opened.settings);
        }
        if out.json {
            out.json(&serde_json::json!({
                "socket": paths.socket, "state_dir": paths.state_dir, "tree": opened.tree, "token": opened.token,
                "created": opened.created, "settings": opened.settings,
            }))?;
            return Ok(Exit::Ok);
        }
        let mut export = |name: &str, value: &OsStr| {
            let quoted = values::shell_quoted(value);
            out.bytes(&[b"export ", name.as_bytes(), b"=", quoted.as_bytes(), b"\n"].concat())
        };
        export("ROOST_SOCKET", paths.socket.as_os_str())?;
        export("ROOST_STATE_DIR", paths.state_dir.as_os_str())?;
        export("ROOST_TREE", opened.tree.to_string().as_ref())?;
        export("ROOST_TOKEN", opened.token.reveal().as_ref())?;
        out.line("unset ROOST_WORKER ROOST_EPOCH")?;
        Ok(Exit::Ok)
    }
}
