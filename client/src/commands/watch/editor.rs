//! One line that is typed. Pure.

/// The text, and where in it the cursor is, in characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Editor {
    text: Vec<char>,
    cursor: usize,
}

impl Editor {
    /// With this text, the cursor behind it.
    pub fn with(text: &str) -> Self {
        let text: Vec<char> = text.chars().collect();
        Self { cursor: text.len(), text }
    }

    /// What was typed.
    pub fn text(&self) -> String {
        self.text.iter().collect()
    }

    /// Whether nothing but space was typed.
    pub fn is_blank(&self) -> bool {
        self.text.iter().all(|c| c.is_whitespace())
    }

    /// What is before and behind the cursor.
    pub fn parts(&self) -> (String, String) {
        (self.text[..self.cursor].iter().collect(), self.text[self.cursor..].iter().collect())
    }

    /// Types it.
    pub fn insert(&mut self, text: &str) {
        let text: Vec<char> = text.chars().collect();
        let length = text.len();
        self.text.splice(self.cursor..self.cursor, text);
        self.cursor += length;
    }

    /// Takes the character before the cursor away.
    pub fn back(&mut self) {
        if self.cursor > 0 {
            self.cursor -= 1;
            self.text.remove(self.cursor);
        }
    }

    /// Takes the character at the cursor away.
    pub fn delete(&mut self) {
        if self.cursor < self.text.len() {
            self.text.remove(self.cursor);
        }
    }

    /// Takes the word before the cursor away.
    pub fn back_word(&mut self) {
        while self.cursor > 0 && self.text[self.cursor - 1].is_whitespace() {
            self.back();
        }
        while self.cursor > 0 && !self.text[self.cursor - 1].is_whitespace() {
            self.back();
        }
    }

    /// Takes all before the cursor away.
    pub fn back_all(&mut self) {
        self.text.drain(..self.cursor);
        self.cursor = 0;
    }

    /// One to the left.
    pub fn left(&mut self) {
        self.cursor = self.cursor.saturating_sub(1);
    }

    /// One to the right.
    pub fn right(&mut self) {
        self.cursor = (self.cursor + 1).min(self.text.len());
    }

    /// To the beginning.
    pub fn home(&mut self) {
        self.cursor = 0;
    }

    /// To the end.
    pub fn end(&mut self) {
        self.cursor = self.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_edited_by_characters() {
        let mut line = Editor::with("größe und");
        line.insert(" mehr");
        line.back_word();
        line.back();
        line.home();
        line.delete();
        line.right();
        line.insert("X");
        assert_eq!((line.text().as_str(), line.parts().0.as_str()), ("rXöße und", "rX"));
        line.back_all();
        line.back();
        line.end();
        line.right();
        line.delete();
        assert_eq!((line.text().as_str(), line.is_blank()), ("öße und", false));
    }
}
