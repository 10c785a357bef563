//! Recorded runs cut at every commit, before it and after it, recovered and finished: they come to what the uncut run came to.

use roost_tests::sim::recovery::cut_everywhere;

#[test]
fn a_run_cut_at_any_commit_comes_to_the_same() {
    let begun = std::time::Instant::now();
    let (mut runs, mut workers) = (0, 0);
    let mut failed = Vec::new();
    for seed in 1..=30 {
        match cut_everywhere(seed) {
            Ok(cuts) => {
                runs += cuts.runs;
                workers += cuts.workers;
            }
            Err(why) => failed.push(format!("seed {seed}: {why}")),
        }
    }
    println!("{runs} cuts of 30 runs with {workers} workers in {:?}", begun.elapsed());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
