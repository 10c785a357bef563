//! The link between supervisor and broker.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| roost_tests::decoders::link(bytes));
