//! Figures as people and programs read them: a table, CSV, a plot, and the page in `docs/`.

mod csv;
mod page;
mod svg;
mod table;

pub use csv::csv;
pub use page::replace;
pub use svg::svg;
pub use table::{Table, table};

use crate::figure::{Summary, Target, Unit};

/// A number of this unit, in three digits.
fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Seconds if value >= 1.0 => format!("{} s", digits(value)),
        Unit::Seconds if value >= 1e-3 => format!("{} ms", digits(value * 1e3)),
        Unit::Seconds => format!("{} us", digits(value * 1e6)),
        Unit::PerSecond => format!("{} /s", digits(value)),
        Unit::Bytes if value >= 1024.0 * 1024.0 => format!("{} MiB", digits(value / 1024.0 / 1024.0)),
        Unit::Bytes => format!("{} B", digits(value)),
    }
}

fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The median, and from where to where the rounds went.
fn spread(summary: Summary, show: impl Fn(f64) -> String) -> String {
    if summary.least == summary.most {
        return show(summary.median);
    }
    format!("{} ({} to {})", show(summary.median), show(summary.least), show(summary.most))
}

fn times(value: f64) -> String {
    format!("{} x", digits(value))
}

fn target(target: Target, show: impl Fn(f64) -> String) -> String {
    match target {
        Target::AtMost(most) => format!("<= {}", show(most)),
        Target::AtLeast(least) => format!(">= {}", show(least)),
    }
}
