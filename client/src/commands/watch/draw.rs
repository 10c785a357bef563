//! The view as cells. Pure: it draws only the rows that are on the screen, and says how many.

mod pane;
mod tree;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use super::layout::SMALLEST;
use super::state::{Link, Mode, View};
use super::text::{cells, fit, pad, safe, wrap};
use super::words;
use crate::commands::status::elapsed;

/// With less there is room for numbers alone.
const NARROW: u16 = 64;
/// Most lines of an error.
const SAID_MAX: usize = 3;
/// The most cells that the gauge of the cap takes.
const GAUGE_MAX: u32 = 16;

const HELP: [&str; 17] = [
    "j k, arrows      the next worker, the one before",
    "PageUp PageDown  a screen further (also b and space)",
    "Home End         the first, the last (also g and G)",
    "/ n N            search by name, the next, the one before",
    "e                only those that have not ended, or all",
    "1 2 3 4          its output, errors, conversation, events",
    "left right       the same in turn",
    "Tab              the keys above move in the other half",
    "Enter z          the lower half alone, and back",
    "m                words to it: Enter sends, Ctrl-J is a new line,",
    "                 Esc keeps them for later. One that has ended is",
    "                 resumed by words, if it can be",
    "s                stop it and all below it; y confirms",
    "q Esc Ctrl-C     leave; nothing of the tree is touched",
    "",
    "Words and stops are for children of the root; those further down",
    "belong to their leads.",
];

/// What was drawn, for those who count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Drawn {
    /// Workers.
    pub workers: usize,
    /// Lines of the pane.
    pub lines: usize,
}

/// How it may look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paint {
    /// Colours and the like; without them words and marks say everything.
    pub colour: bool,
}

/// Draws all of it.
pub fn draw(view: &mut View, paint: Paint, frame: &mut Frame<'_>) -> Drawn {
    let area = frame.area();
    view.size = (area.width, area.height);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let (width, height) = SMALLEST;
        let text = format!("too small: {}x{} of {width}x{height}", area.width, area.height);
        put(frame.buffer_mut(), area, 0, &text, Style::new());
        return Drawn::default();
    }
    view.refresh();
    view.bring_into_sight();
    let areas = view.areas();
    let buffer = frame.buffer_mut();
    head(view, paint, buffer, areas.head);
    if areas.tree.height > 0 && areas.pane.height > 0 && areas.pane.x > 0 {
        for y in areas.tree.top()..areas.tree.bottom() {
            buffer.set_stringn(areas.pane.x - 1, y, "|", 1, paint.dim());
        }
    }
    let workers = tree::draw(view, paint, buffer, areas.tree);
    let lines = pane::draw(view, paint, buffer, areas.pane);
    if view.mode == Mode::Help {
        help(paint, buffer, Rect { height: area.height - areas.head.height - 1, y: areas.head.height, ..area });
    }
    let cursor = foot(view, paint, buffer, areas.said);
    keys(view, paint, buffer, areas.keys);
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
    Drawn { workers, lines }
}

impl Paint {
    fn of(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    fn with(self, modifier: Modifier) -> Style {
        if self.colour { Style::new().add_modifier(modifier) } else { Style::new() }
    }

    fn dim(self) -> Style {
        self.with(Modifier::DIM)
    }
}

/// One line of an area; what does not fit is cut.
fn put(buffer: &mut Buffer, area: Rect, line: u16, text: &str, style: Style) {
    if line < area.height {
        let width = usize::from(area.width);
        buffer.set_stringn(area.x, area.y + line, fit(text, width), width, style);
    }
}

fn head(view: &View, paint: Paint, buffer: &mut Buffer, area: Rect) {
    let (tree, counts) = (view.rows.tree(), view.rows.counts());
    let cap = tree.progress.cap;
    let key = tree.key.as_ref().map(|key| format!(" ({})", safe(key))).unwrap_or_default();
    let state = match (tree.closed_at_ms, tree.progress.paused, view.rows.is_active()) {
        (Some(_), _, _) => "  CLOSED",
        (None, true, _) => "  PAUSED",
        (None, false, true) => "",
        (None, false, false) => "  IDLE",
    };
    let live = format!("live {}/{cap}  queued {}  parked {}  blocked {}{state}", counts.live, counts.queued, counts.parked, counts.blocked);
    let first = if area.width < NARROW { live } else { format!("tree {}{key}  {} {live}", tree.progress.tree, gauge(counts.live, cap)) };
    let until = tree.closed_at_ms.unwrap_or(view.now_ms);
    let own = if view.totals.own.is_zero() { String::new() } else { format!("  root {}", words::used(&view.totals.own)) };
    let finishing = if counts.finishing > 0 { format!("  finishing {}", counts.finishing) } else { String::new() };
    let second = format!(
        "{}  done {}  failed {}  stopped {}{finishing}  total {}{own}",
        elapsed(until.saturating_sub(tree.opened_at_ms)),
        counts.completed,
        counts.failed,
        counts.stopped,
        words::used(&view.totals.total)
    );
    put(buffer, area, 0, &first, paint.with(Modifier::BOLD));
    put(buffer, area, 1, &second, Style::new());
}

/// How full the cap is: a mark for each slot, or for a part of many.
fn gauge(live: u32, cap: u32) -> String {
    let width = cap.clamp(1, GAUGE_MAX);
    let full = (u64::from(live) * u64::from(width)).div_ceil(u64::from(cap.max(1)));
    let full = usize::try_from(full).unwrap_or(usize::MAX).min(width as usize);
    format!("[{}{}]", "#".repeat(full), "-".repeat(width as usize - full))
}

fn help(paint: Paint, buffer: &mut Buffer, area: Rect) {
    let width = usize::from(area.width);
    for line in 0..area.height {
        let text = HELP.get(usize::from(line)).copied().unwrap_or_default();
        let text = if line + 1 == area.height && HELP.len() > usize::from(area.height) { "(a higher screen shows more)" } else { text };
        put(buffer, area, line, &pad(&format!(" {text}"), width), paint.dim().remove_modifier(Modifier::DIM));
    }
}

/// The line of what is typed, of what was said, and of how the connection is. Returns where the cursor is.
fn foot(view: &View, paint: Paint, buffer: &mut Buffer, area: Rect) -> Option<Position> {
    let name = |worker| view.rows.get(worker).map(|row| safe(&row.name)).unwrap_or_default();
    match &view.mode {
        Mode::Search(editor) => return Some(typed(buffer, area, "search: ", editor)),
        Mode::Write(worker, editor) => {
            let label = format!("to {}: ", fit(&name(*worker), usize::from(area.width / 3)));
            return Some(typed(buffer, area, &label, editor));
        }
        Mode::Confirm(worker) => {
            let below = match view.rows.active_below(*worker) {
                0 => String::new(),
                below => format!(" and {below} below it"),
            };
            let name = fit(&name(*worker), usize::from(area.width).saturating_sub(30 + below.len()));
            put(buffer, area, 0, &format!("stop {name}{below}? y stops, n does not"), paint.of(Color::Yellow));
            return None;
        }
        Mode::Look | Mode::Help => {}
    }
    let link = match &view.link {
        Link::Up => None,
        Link::Lost => Some("the connection is lost: reconnecting ...".to_owned()),
        Link::NoDaemon(why) => Some(format!("{why} | looking for it again ...")),
        Link::Over(why) => Some(format!("nothing more will come: {why}")),
    };
    match (&view.said, link) {
        (_, Some(link)) => say(buffer, area, &link, paint.of(Color::Yellow)),
        (Some((text, true)), None) => say(buffer, area, text, paint.of(Color::Red)),
        (Some((text, false)), None) => say(buffer, area, text, Style::new()),
        (None, None) => {}
    }
    None
}

/// A long one takes lines of what is above it: what to do next stands at its end.
fn say(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    let width = usize::from(area.width);
    let lines = wrap(text, width);
    let more = u16::try_from(lines.len().min(SAID_MAX) - 1).unwrap_or(0);
    let area = Rect { y: area.y - more, height: area.height + more, ..area };
    for (line, number) in lines.iter().zip(0..) {
        put(buffer, area, number, &pad(line, width), style);
    }
}

/// What is typed, with as much of it before the cursor as fits.
fn typed(buffer: &mut Buffer, area: Rect, label: &str, editor: &super::editor::Editor) -> Position {
    let (before, behind) = editor.parts();
    let line = |text: &str| safe(&text.replace('\n', "⏎"));
    let (before, behind) = (line(&before), line(&behind));
    let room = usize::from(area.width).saturating_sub(cells(label) + 2);
    let mut seen = before.as_str();
    while cells(seen) > room {
        seen = &seen[seen.chars().next().map_or(seen.len(), char::len_utf8)..];
    }
    put(buffer, area, 0, &format!("{label}{seen}{behind}"), Style::new());
    let x = u16::try_from(cells(label) + cells(seen)).unwrap_or(0);
    Position::new(area.x + x.min(area.width.saturating_sub(1)), area.y)
}

/// Only what the caller may do.
fn keys(view: &View, paint: Paint, buffer: &mut Buffer, area: Rect) {
    let row = view.row();
    let mut keys: Vec<&str> = match view.mode {
        Mode::Look => vec!["q quit", "? help", "/ search", "1-4 pane"],
        Mode::Search(_) => vec!["Enter finds", "Esc cancels"],
        Mode::Write(..) => vec!["Enter sends", "Esc keeps it", "Ctrl-J new line"],
        Mode::Confirm(_) => vec!["y stops it", "any other key does not"],
        Mode::Help => vec!["any key goes back"],
    };
    if view.mode == Mode::Look {
        if row.is_some_and(|row| view.may_write(row).is_ok()) {
            keys.push("m message");
        }
        if row.is_some_and(|row| view.may_stop(row).is_ok()) {
            keys.push("s stop");
        }
        keys.push(if view.active_only { "e all" } else { "e active only" });
    }
    put(buffer, area, 0, &keys.join("  "), paint.dim());
}
