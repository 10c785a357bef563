//! Hostile clients against the real daemon, in large numbers and of every kind, while a good client looks on. One private daemon per
//! test; what single bad connections are answered is in `e2e/hostile.rs`.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

#[path = "hostile/bounds.rs"]
mod bounds;
#[path = "hostile/crowds.rs"]
mod crowds;
#[path = "hostile/identity.rs"]
mod identity;
#[path = "hostile/matrix.rs"]
mod matrix;
#[path = "hostile/onlooker.rs"]
mod onlooker;
#[path = "hostile/single.rs"]
mod single;
