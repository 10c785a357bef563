//! One file per verb: its arguments, its call, what it prints.

pub mod cap;
pub mod close;
pub mod completions;
pub mod daemon;
pub mod doctor;
pub mod events;
pub mod export;
pub mod inbox;
pub mod interrupt;
pub mod logs;
pub mod message;
pub mod open;
pub mod park;
pub mod pause;
pub mod progress;
pub mod result;
pub mod run;
pub mod service;
pub mod spawn;
pub mod status;
pub mod stop;
pub mod tell_lead;
pub mod timeline;
pub mod usage;
pub mod wait;
pub mod watch;
