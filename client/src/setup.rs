//! The global options, turned into connections: as whom, to which daemon, and what when there is none.

use roost::proto::id::TreeId;
use roost::proto::message::tree::Attach;
use roost::{Config, Connection, Places, Start};

use crate::failure::Failure;

/// What all commands have in common.
#[derive(Debug, Clone)]
pub struct Setup {
    /// `--socket`, `--state-dir`.
    pub places: Places,
    /// `--tree`.
    pub tree: Option<TreeId>,
    /// `--no-start`.
    pub no_start: bool,
}

impl Setup {
    /// How to reach the daemon, as whom the environment says; with `--tree` as an operator.
    pub fn config(&self) -> Result<Config, Failure> {
        let mut config = Config::with_places(self.places.clone())?;
        config.client = concat!("roost-cli ", env!("CARGO_PKG_VERSION")).into();
        if self.no_start {
            config.start = Start::Never;
        }
        Ok(if self.tree.is_some() { config.without_identity() } else { config })
    }

    /// A connection that speaks for the tree of the environment, or as the root of `--tree`.
    pub fn in_tree(&self) -> Result<Connection, Failure> {
        let config = self.config()?;
        match self.tree {
            Some(tree) => {
                let mut connection = Connection::dial(config)?;
                connection.attach(&Attach { tree })?;
                Ok(connection)
            }
            None if config.identity.is_none() => Err(Failure::no_tree()),
            None => Ok(Connection::dial(config)?),
        }
    }

    /// A connection to look around with: as in the environment, or as an operator, who may name a tree in the call.
    pub fn looking(&self) -> Result<Connection, Failure> {
        Ok(Connection::dial(self.config()?)?)
    }

    /// Whether this process is a worker of a tree and speaks as one.
    pub fn in_worker(&self) -> Result<bool, Failure> {
        Ok(self.config()?.identity.is_some_and(|identity| identity.worker.is_some()))
    }
}
