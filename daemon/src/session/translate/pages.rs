//! What fits on a line: how many bytes a text or a message takes as JSON, and lists that are cut where a page is full.
//!
//! It knows no message.

use std::{io, iter};

use serde::Serialize;

/// How many bytes it takes as JSON.
pub fn json_bytes<T: Serialize>(what: &T) -> usize {
    let mut count = Count(0);
    if let Err(error) = serde_json::to_writer(&mut count, what) {
        // Our messages are made of texts, numbers and lists, which always can be written.
        tracing::error!(%error, "a message could not be measured");
    }
    count.0
}

/// Cuts a list into pages of at most so many bytes as JSON, in order. What is larger alone has a page of its own. Of the list no more is
/// made than the pages that are taken need.
pub fn pages<T: Serialize>(items: impl IntoIterator<Item = T>, bytes_max: usize) -> impl Iterator<Item = Vec<T>> {
    let mut items = items.into_iter().fuse().map(|item| {
        let size = json_bytes(&item) + 1;
        (item, size)
    });
    let mut left_over = None;
    iter::from_fn(move || {
        let (mut page, mut bytes) = (Vec::new(), 0);
        while let Some((item, size)) = left_over.take().or_else(|| items.next()) {
            if !page.is_empty() && bytes + size > bytes_max {
                left_over = Some((item, size));
                break;
            }
            page.push(item);
            bytes += size;
        }
        (!page.is_empty()).then_some(page)
    })
}

/// How many bytes of a text take at most so many in JSON, where control characters take six.
pub fn fitting(text: &str, bytes_max: usize) -> usize {
    let mut taken = 0;
    for (at, c) in text.char_indices() {
        taken += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            other => other.len_utf8(),
        };
        if taken > bytes_max {
            return at;
        }
    }
    text.len()
}

/// The start of a text that takes at most so many bytes in JSON.
pub fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(fitting(&text, bytes_max));
    text
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_measured_as_json_and_nothing_is_left_out() {
        let items: Vec<String> = ["\u{1}".repeat(10), "a".repeat(10), String::new(), "\u{1}".repeat(100), "b".into()].into();
        let sizes: Vec<usize> = items.iter().map(json_bytes).collect();
        assert_eq!(sizes, [62, 12, 2, 602, 3]);
        let pages: Vec<Vec<String>> = pages(items.clone(), 80).collect();
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [3, 1, 1]);
        assert_eq!(pages.concat(), items);
        assert_eq!(super::pages(Vec::<u8>::new(), 1).next(), None);
    }

    #[test]
    fn whoever_takes_one_page_has_nothing_made_for_the_others() {
        let made = std::cell::Cell::new(0);
        let items = (0..100).inspect(|_| made.set(made.get() + 1));
        // Each takes its digit and a comma. The sixth shows that the page is full.
        assert_eq!(pages(items, 10).next(), Some(vec![0, 1, 2, 3, 4]));
        assert_eq!(made.get(), 6);
    }

    #[test]
    fn a_text_is_cut_between_characters_by_what_it_takes_as_json() {
        // Eight bytes each: six for the control character, two for the letter.
        assert_eq!([7, 8, 9, 16].map(|max| fitting("\u{1}é\u{1}é", max)), [1, 3, 3, 6]);
        assert_eq!(fitting("\"a", 2), 1);
        assert_eq!((cut("né".into(), 2), cut("né".into(), 3)), ("n".into(), "né".into()));
    }
}
