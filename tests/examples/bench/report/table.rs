//! The table, in Markdown: it is read as well on a terminal.

use std::fmt::Write;

use super::{number, spread, target, times};
use crate::figure::{Figure, Summary};

/// How wide columns are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Even, for a terminal.
    Even,
    /// As wide as what is in them.
    Plain,
}

const HEAD: [&str; 6] = ["what", "measured", "limit, in the same run", "quotient", "target", ""];

pub fn table(figures: &[Figure], how: Table) -> String {
    let lines: Vec<[String; 6]> = figures.iter().map(cells).collect();
    let width = |column: usize| match how {
        Table::Even => lines.iter().map(|line| line[column].len()).chain([HEAD[column].len()]).max().unwrap_or(0),
        Table::Plain => 0,
    };
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut text = String::new();
    let mut put = |cells: &[String; 6]| {
        for (cell, width) in cells.iter().zip(&widths) {
            write!(text, "| {cell:width$} ").expect("a string takes it");
        }
        text.push_str("|\n");
    };
    put(&HEAD.map(str::to_owned));
    put(&std::array::from_fn(|column| "-".repeat(widths[column].max(3))));
    lines.iter().for_each(put);
    text
}

fn cells(figure: &Figure) -> [String; 6] {
    let show = |value| number(value, figure.unit);
    let measured = spread(Summary::of(&figure.measured), show);
    let is_met = if figure.is_met() { "met" } else { "**not met**" }.to_owned();
    if figure.limit.is_empty() {
        return [figure.what.clone(), measured, String::new(), String::new(), target(figure.target, show), is_met];
    }
    let limit = format!("{}: {}", figure.against, spread(Summary::of(&figure.limit), show));
    let quotient = spread(Summary::of(&figure.quotients), times);
    [figure.what.clone(), measured, limit, quotient, target(figure.target, times), is_met]
}
