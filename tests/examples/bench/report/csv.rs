//! CSV for programs: seconds, bytes or a count per second, as they were measured.

use std::fmt::Write;

use crate::figure::{Figure, Summary, Target, Unit};

const HEAD: &str = "row,what,unit,measured,measured_least,measured_most,against,limit,limit_least,limit_most,\
                    quotient,quotient_least,quotient_most,target,is_met";

pub fn csv(figures: &[Figure]) -> String {
    let mut text = format!("{HEAD}\n");
    for figure in figures {
        let unit = match figure.unit {
            Unit::Seconds => "s",
            Unit::PerSecond => "1/s",
            Unit::Bytes => "B",
        };
        let target = match figure.target {
            Target::AtMost(most) => format!("<={most:.3}"),
            Target::AtLeast(least) => format!(">={least:.3}"),
        };
        let (what, against) = (quoted(&figure.what), quoted(&figure.against));
        let [measured, limit, quotient] = [&figure.measured, &figure.limit, &figure.quotients].map(|numbers| three(numbers));
        writeln!(text, "{},{what},{unit},{measured},{against},{limit},{quotient},{target},{}", figure.row, figure.is_met())
            .expect("a string takes it");
    }
    text
}

/// Three fields, which are empty where nothing was measured.
fn three(numbers: &[f64]) -> String {
    if numbers.is_empty() {
        return ",,".to_owned();
    }
    let Summary { least, median, most } = Summary::of(numbers);
    format!("{median:.9},{least:.9},{most:.9}")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}
