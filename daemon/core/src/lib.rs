//! The Roost broker as a pure function: `step(now, command) -> events + effects`. No clock, no disk, no socket, no randomness.

pub mod broker;
pub mod command;
pub mod effect;
pub mod event;
pub mod invariants;
pub mod recover;
pub mod rejection;
pub mod schedule;
pub mod state;
pub mod step;
pub mod stream;
pub mod time;
pub mod usage_view;
pub mod view;

mod answer;
mod calls;
mod hand_over;
mod holders;
mod lifecycle;
mod older;
