//! Tests of the session wing.
