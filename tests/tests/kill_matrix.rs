//! The kill matrix: whoever is killed, in whatever state, once or five times in a row, every execution has one outcome, every item
//! is handed over once, nothing is left and no slot is lost.
//!
//! One cell is one private daemon with one tree. Cells run side by side, a few at a time. `ROOST_CELLS=parked/broker` runs those
//! whose name contains the text.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "kill_matrix/cell.rs"]
mod cell;
#[path = "kill_matrix/proof.rs"]
mod proof;
#[path = "kill_matrix/scene.rs"]
mod scene;
#[path = "kill_matrix/strike.rs"]
mod strike;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Instant;

use cell::Cell;

/// How many cells run at one time. Most of their time is waiting.
const SIDE_BY_SIDE: usize = 8;

#[test]
fn every_cell() {
    let wanted = std::env::var("ROOST_CELLS").unwrap_or_default();
    let cells: Vec<Cell> = Cell::all().filter(|cell| cell.to_string().contains(&wanted)).collect();
    let count = cells.len();
    // The long ones first, so that none of them is left over for the end.
    let queue = Mutex::new(cells);
    let failed = Mutex::new(Vec::new());
    let since = Instant::now();
    let work = || {
        loop {
            // Not in the condition: the lock would be held for the whole cell.
            let next = queue.lock().unwrap().pop();
            let Some(cell) = next else { return };
            let began = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| cell.run()));
            eprintln!("{cell}: {:?}{}", began.elapsed(), if outcome.is_err() { " FAILED" } else { "" });
            if outcome.is_err() {
                failed.lock().unwrap().push(cell.to_string());
            }
        }
    };
    std::thread::scope(|scope| (0..SIDE_BY_SIDE).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {count} cells failed: {}", failed.len(), failed.join(", "));
    eprintln!("{count} cells in {:?}", since.elapsed());
}
