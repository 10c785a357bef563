//! What is read of one worker: lines that grow at the end, and where in them somebody looks. Pure.

use std::collections::VecDeque;

use super::conversation;
use super::text::{safe, wrap};

/// Most lines that are kept.
const LINES_MAX: usize = 5_000;
/// Where a line without an end is broken.
const LINE_BYTES_MAX: usize = 16 << 10;

/// What the pane is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tab {
    Output,
    Errors,
    Conversation,
    Events,
}

impl Tab {
    pub const ALL: [Self; 4] = [Self::Output, Self::Errors, Self::Conversation, Self::Events];

    /// What it is called.
    pub fn title(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::Errors => "errors",
            Self::Conversation => "conversation",
            Self::Events => "events",
        }
    }
}

/// The lines.
pub struct Pane {
    /// Of what.
    pub tab: Tab,
    lines: VecDeque<String>,
    /// What came after the last end of a line.
    rest: Vec<u8>,
    /// The first line is a piece of one.
    begins_within: bool,
    /// How many rows of the screen below are not shown; 0 follows the end.
    from_end: usize,
    width: usize,
}

impl Pane {
    /// Empty.
    pub fn new(tab: Tab) -> Self {
        Self { tab, lines: VecDeque::new(), rest: Vec::new(), begins_within: false, from_end: 0, width: 80 }
    }

    /// Empty again. `cut`: what comes begins somewhere in a file.
    pub fn clear(&mut self, tab: Tab, cut: bool) {
        *self = Self { width: self.width, ..Self::new(tab) };
        if cut {
            self.push("(what came before is left out: `roost logs` prints all of it)".into());
        }
        self.begins_within = cut;
    }

    /// Takes bytes of a file in.
    pub fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut left = rest.as_slice();
        while let Some(at) = left.iter().position(|byte| *byte == b'\n').or((self.breaks(left)).then_some(LINE_BYTES_MAX)) {
            let line = &left[..at];
            left = left[at..].strip_prefix(b"\n").unwrap_or(&left[at..]);
            if !std::mem::take(&mut self.begins_within) {
                self.line(line);
            }
        }
        self.rest = left.to_vec();
    }

    /// A record of a conversation is whole or nothing; any other line may be broken.
    fn breaks(&self, left: &[u8]) -> bool {
        self.tab != Tab::Conversation && left.len() > LINE_BYTES_MAX
    }

    fn line(&mut self, line: &[u8]) {
        if self.tab == Tab::Conversation {
            conversation::lines(line).into_iter().for_each(|line| self.push(line));
        } else {
            self.push(shown(line));
        }
    }

    /// One line more.
    pub fn push(&mut self, line: String) {
        // Who looks further up goes on seeing the same.
        if self.from_end > 0 {
            self.from_end += wrap(&line, self.width).len();
        }
        self.lines.push_back(line);
        if self.lines.len() > LINES_MAX {
            self.lines.pop_front();
        }
    }

    /// Whether it follows the end.
    pub fn follows(&self) -> bool {
        self.from_end == 0
    }

    /// Up by so many rows, or down.
    pub fn scroll(&mut self, up: isize, height: usize) {
        let all: usize = self.all().map(|line| wrap(&line, self.width).len()).sum();
        self.from_end = self.from_end.saturating_add_signed(up).min(all.saturating_sub(height));
    }

    /// To the first line.
    pub fn go_to_begin(&mut self, height: usize) {
        self.scroll(isize::MAX / 2, height);
    }

    /// To the last, and on with it.
    pub fn go_to_end(&mut self) {
        self.from_end = 0;
    }

    /// The rows that are seen; only as many lines are looked at as that takes.
    pub fn rows(&mut self, width: usize, height: usize) -> Vec<String> {
        self.width = width.max(1);
        let wanted = self.from_end + height;
        let mut rows: Vec<String> = Vec::new();
        for line in self.all().rev() {
            if rows.len() >= wanted {
                break;
            }
            rows.extend(wrap(&line, self.width).into_iter().rev().map(str::to_owned));
        }
        rows.reverse();
        let end = rows.len().saturating_sub(self.from_end);
        rows.truncate(end.max(height.min(rows.len())));
        rows.split_off(rows.len().saturating_sub(height))
    }

    /// With what has no end of line yet.
    fn all(&self) -> impl DoubleEndedIterator<Item = String> + '_ {
        let open = (self.tab != Tab::Conversation && !self.rest.is_empty() && !self.begins_within).then(|| shown(&self.rest));
        self.lines.iter().cloned().chain(open)
    }
}

fn shown(line: &[u8]) -> String {
    safe(&String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tab: Tab, cut: bool, pieces: &[&str]) -> Pane {
        let mut pane = Pane::new(tab);
        pane.clear(tab, cut);
        pieces.iter().for_each(|piece| pane.take(piece.as_bytes()));
        pane
    }

    #[test]
    fn lines_are_put_together_from_pieces_and_wrapped_by_cells() {
        let mut pane = of(Tab::Output, false, &["one\r\ntw", "o\n漢字", "ab"]);
        assert_eq!(pane.rows(80, 5), ["one", "two", "漢字ab"]);
        assert_eq!(pane.rows(3, 3), ["漢", "字a", "b"]);
        // What is left out begins in the middle of a line.
        let mut pane = of(Tab::Errors, true, &["lf of it", "\nnext\n"]);
        assert_eq!(pane.rows(80, 5).last().map(String::as_str), Some("next"));
        assert_eq!(pane.rows(80, 5).len(), 2);
    }

    #[test]
    fn who_looks_further_up_goes_on_seeing_the_same() {
        let mut pane = of(Tab::Output, false, &[&(1..=100).map(|line| format!("{line}\n")).collect::<String>()]);
        assert_eq!(pane.rows(10, 2), ["99", "100"]);
        pane.scroll(5, 2);
        assert_eq!((pane.rows(10, 2), pane.follows()), (vec!["94".to_owned(), "95".into()], false));
        pane.take(b"new\nnewer\n");
        assert_eq!(pane.rows(10, 2), ["94", "95"]);
        pane.go_to_begin(2);
        assert_eq!(pane.rows(10, 2), ["1", "2"]);
        pane.scroll(-1_000, 2);
        assert_eq!(pane.rows(10, 2), ["new", "newer"]);
    }

    #[test]
    fn a_line_without_an_end_costs_no_more_than_others() {
        let mut pane = of(Tab::Output, false, &[&"x".repeat(100_000)]);
        assert_eq!(pane.lines.len(), 100_000 / LINE_BYTES_MAX);
        assert_eq!(pane.rows(10, 3).len(), 3);
        for _ in 0..LINES_MAX + 10 {
            pane.push("y".into());
        }
        assert_eq!(pane.lines.len(), LINES_MAX);
    }

    #[test]
    fn half_a_record_is_no_conversation() {
        let mut pane = of(Tab::Conversation, false, &[r#"{"kind":"report","te"#]);
        assert!(pane.rows(80, 5).is_empty());
        pane.take(b"xt\":\"hm\"}\n");
        assert_eq!(pane.rows(80, 5), ["< says so far", "  hm"]);
    }
}
