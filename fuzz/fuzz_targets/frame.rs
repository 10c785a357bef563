//! The reader of lines: public socket, first thing that a peer's bytes meet.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| roost_tests::decoders::frame(bytes));
