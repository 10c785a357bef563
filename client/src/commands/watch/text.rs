//! Texts of workers as cells of a screen: made harmless, cut and wrapped by width. Pure.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::escape_line;

/// Most marks without a width of their own on one cell.
const MARKS_MAX: usize = 3;
/// How far a tab goes.
const TAB: &str = "    ";

/// One line of somebody else's text: no control characters, none that cannot be seen, and no cell that is piled up.
pub fn safe(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut marks = MARKS_MAX;
    for c in escape_line(&text.replace('\t', TAB)).chars() {
        if c.width().unwrap_or(0) > 0 {
            marks = 0;
        } else if is_invisible(c) || marks == MARKS_MAX {
            safe.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            continue;
        } else {
            marks += 1;
        }
        safe.push(c);
    }
    safe
}

/// Joiners, selectors and tags: terminals do not agree on how wide what they stand in is.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e01ef}')
}

/// How many cells it takes.
pub fn cells(text: &str) -> usize {
    text.width()
}

/// At most so many cells; what is cut ends in `…`.
pub fn fit(text: &str, width: usize) -> String {
    if cells(text) <= width {
        return text.to_owned();
    }
    let mut cut = head(text, width.saturating_sub(1)).to_owned();
    if width > 0 {
        cut.push('…');
    }
    cut
}

/// Exactly so many cells.
pub fn pad(text: &str, width: usize) -> String {
    let mut padded = fit(text, width);
    padded.extend(std::iter::repeat_n(' ', width.saturating_sub(cells(&padded))));
    padded
}

/// The beginning, as much as fits.
fn head(text: &str, width: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > width {
            return &text[..at];
        }
    }
    text
}

/// In lines of at most so many cells; one at least.
pub fn wrap(text: &str, width: usize) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    loop {
        let mut line = head(rest, width);
        // A character that is wider than the screen stands alone.
        if line.is_empty() && !rest.is_empty() {
            line = &rest[..rest.chars().next().map_or(rest.len(), char::len_utf8)];
        }
        lines.push(line);
        rest = &rest[line.len()..];
        if rest.is_empty() {
            return lines;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_reaches_the_terminal_as_more_than_text() {
        assert_eq!(safe("a\x1b[31m\tb\u{202e}c"), "a\\x1b[31m    b\\u{202e}c");
        assert_eq!(safe("e\u{301}\u{200d}\u{fe0f}"), "e\u{301}\\u{200d}\\u{fe0f}");
        // A heap of marks is not piled onto one cell, and a mark that stands first has no cell.
        assert_eq!(safe("x\u{301}\u{301}\u{301}\u{301}"), "x\u{301}\u{301}\u{301}\\u{301}");
        assert_eq!(safe("\u{301}x"), "\\u{301}x");
    }

    #[test]
    fn widths_are_counted_in_cells() {
        assert_eq!((cells("漢字"), cells("e\u{301}")), (4, 1));
        assert_eq!([fit("漢字漢", 6), fit("漢字漢", 5), fit("漢字漢", 4), fit("ab", 0)], ["漢字漢", "漢字…", "漢…", ""]);
        assert_eq!([pad("漢", 4), pad("漢字漢", 4)], ["漢  ", "漢… "]);
        assert_eq!(wrap("漢字ab", 3), ["漢", "字a", "b"]);
        assert_eq!((wrap("", 3), wrap("漢", 1), wrap("e\u{301}x", 1)), (vec![""], vec!["漢"], vec!["e\u{301}", "x"]));
    }
}
