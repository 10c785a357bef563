//! The plot: how far each figure is from its target, on a logarithmic scale. Left of the line is better than the target.

use std::fmt::Write;

use super::{number, times};
use crate::figure::{Figure, Summary, Target};

const LINE: f64 = 24.0;
const TEXT: f64 = 560.0;
const BARS: f64 = 420.0;
const MARGIN: f64 = 16.0;
/// The scale goes from this part of a target to as many times it.
const REACH: f64 = 16.0;

pub fn svg(figures: &[Figure]) -> String {
    let (width, height) = (TEXT + BARS + 140.0, LINE * (figures.len() as f64 + 2.0) + MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let bottom = height - LINE;
    for mark in [1.0 / 16.0, 1.0 / 4.0, 1.0, 4.0, 16.0] {
        let (x, label) = (place(mark), if mark == 1.0 { "target".to_owned() } else { format!("{mark} x") });
        let color = if mark == 1.0 { "#444" } else { "#ddd" };
        writeln!(text, "<line x1=\"{x:.1}\" y1=\"{MARGIN}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{color}\"/>")
            .expect("a string takes it");
        writeln!(text, "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#444\">{label}</text>", bottom + 14.0)
            .expect("a string takes it");
    }
    for (number, figure) in figures.iter().enumerate() {
        text.push_str(&bar(figure, MARGIN + LINE * number as f64));
    }
    text.push_str("</svg>\n");
    text
}

fn bar(figure: &Figure, top: f64) -> String {
    let Summary { least, median, most } = Summary::of(&figure.quotients);
    // How many times its target it takes.
    let relative = |quotient: f64| match figure.target {
        Target::AtMost(target) => quotient / target,
        Target::AtLeast(target) => target / quotient,
    };
    let (from, to) = (place(1.0), place(relative(median)));
    let (x, width) = (from.min(to), (to - from).abs().max(1.0));
    let color = if figure.is_met() { "#4a9" } else { "#d75" };
    let middle = top + LINE / 2.0;
    let (left, right) = (place(relative(least)), place(relative(most)));
    let label = if figure.limit.is_empty() { number(median, figure.unit) } else { times(median) };
    format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n\
         <rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{color}\"/>\n\
         <line x1=\"{left:.1}\" y1=\"{middle:.1}\" x2=\"{right:.1}\" y2=\"{middle:.1}\" stroke=\"#222\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\">{label}</text>\n",
        TEXT - 8.0,
        middle + 4.0,
        escaped(&figure.what),
        top + 4.0,
        LINE - 8.0,
        TEXT + BARS + 8.0,
        middle + 4.0,
    )
}

/// Where so many times the target is.
fn place(relative: f64) -> f64 {
    let part = (relative.max(1e-9).ln() / REACH.ln()).clamp(-1.0, 1.0);
    TEXT + BARS * (part + 1.0) / 2.0
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
