//! Recorded runs cut at every commit, before it, after it and inside of it, recovered and finished: they come to what the uncut run
//! came to.

use roost_tests::sim::recovery::cut_everywhere;

#[test]
fn a_run_cut_at_any_commit_comes_to_the_same() {
    let begun = std::time::Instant::now();
    let (mut runs, mut workers, mut words, mut resumes) = (0, 0, 0, 0);
    let mut failed = Vec::new();
    for seed in 1..=30 {
        match cut_everywhere(seed, 1) {
            Ok(cuts) => {
                runs += cuts.runs;
                workers += cuts.workers;
                words += cuts.words;
                resumes += cuts.resumes;
            }
            Err(why) => failed.push(format!("seed {seed}: {why}")),
        }
    }
    println!("{runs} cuts of 30 runs with {workers} workers, {words} messages and {resumes} resumes in {:?}", begun.elapsed());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(words > 30 && resumes > 5, "only {words} messages and {resumes} resumes were cut");
}

#[test]
fn a_run_cut_inside_of_any_commit_comes_to_the_same() {
    let begun = std::time::Instant::now();
    let (mut runs, mut inside) = (0, 0);
    let mut failed = Vec::new();
    for (seed, steps) in (1..=16).flat_map(|seed| [3, 8].map(|steps| (seed, steps))) {
        match cut_everywhere(seed, steps) {
            Ok(cuts) => {
                runs += cuts.runs;
                inside += cuts.inside;
            }
            Err(why) => failed.push(format!("seed {seed}, {steps} steps: {why}")),
        }
    }
    println!("{runs} cuts, {inside} of them inside of a commit, in {:?}", begun.elapsed());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(inside > 400, "only {inside} cuts lie inside of a commit");
}
