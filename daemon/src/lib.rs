//! The shells around the core: supervisor, broker, and the three wings that do not know each other.

mod audit;
pub mod boot;
pub mod broker;
pub mod clock;
pub mod config;
pub mod configured;
pub mod context_file;
pub mod driver;
pub mod identity;
pub mod journal;
pub mod link;
pub mod logging;
mod lookouts;
mod metrics;
pub mod outputs;
pub mod perform;
pub mod process;
pub mod session;
mod shelf;
mod speaking;
pub mod supervisor;
pub mod transcript;
