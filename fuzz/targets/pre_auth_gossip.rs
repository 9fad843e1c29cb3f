//! libFuzzer's door to the target `pre_auth_gossip`; what it does stands in `ikada_node::fuzz`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ikada_node::fuzz::pre_auth_gossip(bytes));
