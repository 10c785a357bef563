//! A scripted worker that speaks the worker protocol, for every order of frames, crash point and misbehaviour: `fake-agent NAME SCRIPT`.
//! Its steps are in `tests/src/real/agents/actor.rs`. The script is an argument, since some of it comes before any task is delivered.

fn main() {
    std::process::exit(roost_tests::real::fake_agent());
}
