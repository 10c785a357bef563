//! One line of a peer: JSON, JSON-RPC, parameters, up to the command for the core.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| roost_tests::decoders::rpc(bytes));
