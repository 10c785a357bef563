//! Where everything is on a screen of any size. Pure.

use ratatui::layout::Rect;

/// The smallest screen that shows anything.
pub const SMALLEST: (u16, u16) = (40, 10);
/// From this width on tree and pane stand side by side.
const WIDE: u16 = 150;
/// From this height on they stand below each other; with less there is one at a time.
const HIGH: u16 = 14;
/// Lines above and below.
const HEAD: u16 = 2;
const FOOT: u16 = 2;

/// Whose keys the arrows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    Tree,
    Pane,
}

/// The parts of a screen; what is not shown has no height.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    pub head: Rect,
    pub tree: Rect,
    pub pane: Rect,
    pub said: Rect,
    pub keys: Rect,
}

impl Areas {
    /// Of a screen of this size.
    pub fn of((width, height): (u16, u16), focus: Focus, zoomed: bool) -> Self {
        let body = Rect::new(0, HEAD, width, height.saturating_sub(HEAD + FOOT));
        let none = Rect::new(0, HEAD, 0, 0);
        let (tree, pane) = if zoomed {
            (none, body)
        } else if width >= WIDE {
            let left = width / 2 + width / 20;
            (Rect { width: left, ..body }, Rect { x: left + 1, width: width - left - 1, ..body })
        } else if height >= HIGH {
            let above = body.height / 2 + body.height % 2;
            (Rect { height: above, ..body }, Rect { y: body.y + above, height: body.height - above, ..body })
        } else {
            match focus {
                Focus::Tree => (body, none),
                Focus::Pane => (none, body),
            }
        };
        let foot = height.saturating_sub(FOOT);
        let line = |y: u16, height: u16| Rect::new(0, y, width, height);
        Self { head: line(0, HEAD), tree, pane, said: line(foot, 1), keys: line(foot + 1, 1) }
    }

    /// How many workers it shows: one line is for the names of the columns.
    pub fn rows_of_tree(&self) -> usize {
        usize::from(self.tree.height.saturating_sub(1))
    }

    /// How many lines of a worker it shows: three are for what it is.
    pub fn rows_of_pane(&self) -> usize {
        usize::from(self.pane.height.saturating_sub(3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_leaves_the_screen_or_lies_on_another() {
        for width in SMALLEST.0..220 {
            for height in SMALLEST.1..60 {
                for (focus, zoomed) in [(Focus::Tree, false), (Focus::Pane, false), (Focus::Tree, true)] {
                    let areas = Areas::of((width, height), focus, zoomed);
                    let parts = [areas.head, areas.tree, areas.pane, areas.said, areas.keys];
                    assert!(parts.iter().all(|part| Rect::new(0, 0, width, height).union(*part) == Rect::new(0, 0, width, height)));
                    let apart = |a: &Rect, b: &Rect| a.intersection(*b).is_empty();
                    assert!((0..5).all(|a| (a + 1..5).all(|b| apart(&parts[a], &parts[b]))), "{width}x{height} {parts:?}");
                    assert!(areas.rows_of_tree() + areas.rows_of_pane() >= 3, "{width}x{height} {parts:?}");
                }
            }
        }
    }
}
