//! The benchmark works: with small counts every row yields its figures, in all three forms. No time is asserted.

use roost_tests::real::{Cmd, Home};

/// The rows of `docs/performance.md`, in its order.
const ROWS: [&str; 14] = [
    "storm",
    "launch",
    "clients",
    "slot",
    "completion",
    "parking",
    "nested",
    "queue",
    "memory",
    "journal",
    "command",
    "start",
    "company",
    "stop",
];

#[test]
fn every_row_yields_a_figure() {
    let home = Home::new();
    let page = home.file("performance.md");
    std::fs::write(&page, "before\n<!-- figures -->\nold\n<!-- /figures -->\nafter\n").unwrap();
    let bench = Cmd::new(home.program("examples/bench")).env("PATH", "/usr/bin:/bin").env("HOME", home.dir());
    let done =
        bench.args(["--quick", "--dir"]).arg(home.dir()).arg("--write").arg(&page).within(std::time::Duration::from_secs(300)).run().ok();
    let table: Vec<&str> = done.text().lines().filter(|line| line.starts_with('|')).collect();
    let csv = home.read("performance.csv");
    let lines: Vec<&str> = csv.lines().skip(1).collect();
    let mut rows: Vec<&str> = lines.iter().map(|line| line.split(',').next().unwrap()).collect();
    // Head and rule.
    assert_eq!(table.len(), lines.len() + 2);
    rows.dedup();
    assert_eq!(rows, ROWS);
    for line in &lines {
        // Behind the texts, which are quoted: the numbers that are there are numbers.
        let numbers = line.rsplit('"').next().unwrap().split(',').filter(|field| field.parse::<bool>().is_err() && !field.contains('='));
        let numbers: Vec<f64> = numbers.filter(|field| !field.is_empty()).map(|field| field.parse().unwrap()).collect();
        assert!(numbers.len() >= 3 && numbers.iter().all(|number| number.is_finite()), "{line}");
    }
    let page = home.read("performance.md");
    assert!(page.starts_with("before\n") && page.ends_with("after\n") && !page.contains("old") && page.contains("kernel: Linux"), "{page}");
    let plot = home.read("performance.svg");
    assert_eq!(plot.matches("<rect").count(), lines.len() + 1);
}
