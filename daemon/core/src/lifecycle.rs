//! The verbs of a worker's life, one file each. Verbs never import each other; what several need is in `lifecycle/close_out.rs`
//! (how executions end), `lifecycle/unblock.rs` (how waits do), `lifecycle/authority.rs` (who may) and `lifecycle/bounds.rs` (what is too
//! much).

pub mod authority;
pub mod bounds;
pub mod close_out;
pub mod connect;
pub mod deliver;
pub mod launch;
pub mod open;
pub mod park;
pub mod process;
pub mod report;
pub mod retention;
pub mod settle;
pub mod stop;
pub mod timers;
pub mod unblock;
pub mod wait;
pub mod words;
