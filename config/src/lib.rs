//! The configuration of Roost: one TOML file per user, one per project, variables of the environment, and what holds without any of
//! them. `docs/config.md` is this crate for people; a test compares the two.
//!
//! It reads files and starts nothing. The command takes the settings of new trees and the profiles from it, the daemon its own flags.

mod file;
mod keys;
mod layers;
mod near;
mod parse;
mod places;
mod problem;
mod profile;
mod value;

pub use file::Whose;
pub use keys::{KEYS, Key, Section, key};
pub use layers::{Around, Config, Source};
pub use near::nearest;
pub use parse::{Parsed, parse};
pub use problem::{Level, Problem};
pub use profile::{Asked, FIELDS, PROJECT_FIELDS, Part, Profile, ProfileError};
pub use value::{Kind, Value};
