//! The worker that is selected: what it is, what it costs, what it says.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use roost::rows::Row;

use super::super::layout::Focus;
use super::super::pane::Tab;
use super::super::state::View;
use super::super::text::{fit, safe};
use super::super::words;
use super::{Paint, put};
use crate::values;

/// How many lines say what it is.
const HEAD: u16 = 3;

/// Draws it; says how many lines of what it says there are.
pub fn draw(view: &mut View, paint: Paint, buffer: &mut Buffer, area: Rect) -> usize {
    if area.height <= HEAD {
        return 0;
    }
    let width = usize::from(area.width);
    let Some(row) = view.row() else {
        put(buffer, area, 0, &"-".repeat(width), paint.dim());
        return 0;
    };
    put(buffer, area, 0, &title(view, row, width), paint.with(Modifier::BOLD));
    put(buffer, area, 1, &stands(view, row), Style::new());
    put(buffer, area, 2, &costs(row), Style::new());
    let body = Rect { y: area.y + HEAD, height: area.height - HEAD, ..area };
    let lines = view.pane.rows(width, usize::from(body.height));
    if lines.is_empty() {
        put(buffer, body, 0, empty(view.pane.tab), paint.dim());
    }
    for (line, number) in lines.iter().zip(0..) {
        put(buffer, body, number, line, Style::new());
    }
    lines.len()
}

fn title(view: &View, row: &Row, width: usize) -> String {
    let narrow = width < usize::from(super::NARROW);
    let tabs: Vec<String> = (1..)
        .zip(Tab::ALL)
        .filter(|(_, tab)| !narrow || *tab == view.pane.tab)
        .map(|(number, tab)| if tab == view.pane.tab { format!("[{number} {}]", tab.title()) } else { format!("{number} {}", tab.title()) })
        .collect();
    let held = if view.pane.follows() { "" } else { "  (End follows)" };
    let mark = if view.focus == Focus::Pane { "> " } else { "--" };
    let tabs = format!("  {}{held} ", tabs.join(" "));
    let name = fit(&safe(&row.name), width.saturating_sub(tabs.len() + 3).max(12));
    let title = format!("{mark} {name}{tabs}");
    format!("{title}{}", "-".repeat(width.saturating_sub(super::cells(&title))))
}

fn stands(view: &View, row: &Row) -> String {
    // What the daemon says of it is more exact, where it says it of this very state.
    let details = view.details.as_ref().filter(|details| details.worker == row.worker && details.state == row.state());
    let reason = details.and_then(|details| details.reason.as_deref()).filter(|_| row.active_children == 0).map(safe);
    let reason = reason.unwrap_or_else(|| words::reason(&view.rows, row));
    let mut line = words::state(row).to_owned();
    if let Some(place) = view.rows.place(row.worker) {
        line.push_str(&format!(" {place}"));
    }
    if !reason.is_empty() {
        line.push_str(&format!(": {reason}"));
    }
    line.push_str(&format!("  {} of {}", row.execution, row.worker));
    if let Some(lead) = row.lead.and_then(|lead| view.rows.get(lead)) {
        line.push_str(&format!("  lead {}", safe(&lead.name)));
    }
    if let Some(group) = &row.group {
        line.push_str(&format!("  group {}", safe(group)));
    }
    if let Some(pid) = row.pid {
        line.push_str(&format!("  pid {pid}"));
    }
    if let Some(left) = details.filter(|details| !details.leftovers.is_empty()) {
        line.push_str(&format!("  left behind: {}", values::pids(&left.leftovers)));
    }
    line
}

fn costs(row: &Row) -> String {
    let partial = if row.usage.partial { ", partial" } else { "" };
    let line = format!("own {}  total {}{partial}", words::used(&row.usage.own), words::used(&row.usage.total));
    let children = match row.children().len() {
        0 => String::new(),
        1 => format!("  1 child, {} active", row.active_children),
        many => format!("  {many} children, {} active", row.active_children),
    };
    format!("{line}{children}  accepted {}", values::time_of_day(row.accepted_at_ms))
}

fn empty(tab: Tab) -> &'static str {
    match tab {
        Tab::Output => "(it has written nothing yet)",
        Tab::Errors => "(nothing on its standard error)",
        Tab::Conversation => "(nothing was said yet)",
        Tab::Events => "(no event since the view was opened)",
    }
}
