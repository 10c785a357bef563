//! For a program that runs as a plain command of a tree: was it woken, with what, and how it parks.
//!
//! ```no_run
//! use roost::{Config, Connection, Error, plain};
//!
//! fn main() -> Result<(), Error> {
//!     let mut connection = Connection::dial(Config::from_env()?)?;
//!     match plain::woken()? {
//!         None => {
//!             // The first process: launch children, then
//!             match plain::park(&mut connection, b"how far I am")? {}
//!         }
//!         Some(woken) => println!("{} children have ended", woken.wake.items.len()),
//!     }
//!     Ok(())
//! }
//! ```

use std::convert::Infallible;
use std::env;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

use roost_proto::bytes::Bytes;
use roost_proto::message::park::{Park, Wake};

use crate::connection::Connection;
use crate::error::Error;

/// What a woken process was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Woken {
    /// The context that the process before it saved.
    pub context: Vec<u8>,
    /// Why it was woken, and the children's ends that it is owed.
    pub wake: Wake,
}

/// Whether this process was woken, and with what. Reads standard input then; call it once.
pub fn woken() -> Result<Option<Woken>, Error> {
    if env::var_os("ROOST_WAKE").is_none_or(|value| value != "1") {
        return Ok(None);
    }
    let path = env::var_os("ROOST_CONTEXT")
        .ok_or_else(|| Error::Environment { variable: "ROOST_CONTEXT", message: "it is not set, although ROOST_WAKE is".into() })?;
    let context = fs::read(&path).map_err(Error::io(format!("cannot read the context {}", path.display())))?;
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text).map_err(Error::io("cannot read the wake on standard input"))?;
    let wake = serde_json::from_slice(&text)
        .map_err(|error| Error::Io { what: "the wake on standard input cannot be read".into(), source: error.into() })?;
    Ok(Some(Woken { context, wake }))
}

/// Saves the context and ends this process. It returns only when it could not park; then nothing was saved.
pub fn park(connection: &mut Connection, context: &[u8]) -> Result<Infallible, Error> {
    connection.park(&Park { context: Some(Bytes(context.to_vec())), context_path: None })?;
    std::process::exit(0)
}

/// The same with a file of the worker's own as its context, of up to 1 GiB: the next process finds its path in `ROOST_CONTEXT`. It must
/// stay as it is until then; Roost never removes it.
pub fn park_with_file(connection: &mut Connection, path: &Path) -> Result<Infallible, Error> {
    let path = std::path::absolute(path).map_err(Error::io(format!("the path {} means nothing", path.display())))?;
    connection.park(&Park { context: None, context_path: Some(Bytes::from(path.as_os_str())) })?;
    std::process::exit(0)
}
