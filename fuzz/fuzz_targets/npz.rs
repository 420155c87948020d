#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| gatherum::io::fuzzing::npz(bytes));
