//! What a key means, by what is being done. Pure.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use roost::proto::id::WorkerId;
use roost::rows::Row;

use super::calls::Wish;
use super::editor::Editor;
use super::layout::Focus;
use super::pane::Tab;
use super::state::{Mode, Order, View};
use super::text::safe;

impl View {
    /// A key was pressed.
    pub fn key(&mut self, key: KeyEvent) -> Vec<Order> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return vec![Order::Leave];
        }
        self.refresh();
        match std::mem::replace(&mut self.mode, Mode::Look) {
            Mode::Look => {
                self.said = None;
                self.look_key(key)
            }
            Mode::Help => Vec::new(),
            Mode::Search(editor) => self.search_key(editor, key),
            Mode::Write(worker, editor) => self.write_key(worker, editor, key),
            Mode::Confirm(worker) => self.confirm_key(worker, key),
        }
    }

    /// A text was pasted: it is no keys.
    pub fn paste(&mut self, text: &str) {
        match &mut self.mode {
            Mode::Search(editor) | Mode::Write(_, editor) => editor.insert(&text.replace("\r\n", "\n").replace('\r', "\n")),
            Mode::Look | Mode::Confirm(_) | Mode::Help => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing")]
    fn look_key(&mut self, key: KeyEvent) -> Vec<Order> {
        let page = match self.focus {
            Focus::Tree => self.areas().rows_of_tree(),
            Focus::Pane => self.areas().rows_of_pane(),
        };
        let page = isize::try_from(page.max(2) - 1).unwrap_or(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return vec![Order::Leave],
            KeyCode::Down | KeyCode::Char('j') => return self.go(1),
            KeyCode::Up | KeyCode::Char('k') => return self.go(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => return self.go(page),
            KeyCode::PageUp | KeyCode::Char('b') => return self.go(-page),
            KeyCode::Home | KeyCode::Char('g') => return self.go(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => return self.go(isize::MAX),
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus = if self.focus == Focus::Tree { Focus::Pane } else { Focus::Tree };
                self.bring_into_sight();
            }
            KeyCode::Enter | KeyCode::Char('z') => {
                self.zoomed = !self.zoomed;
                self.focus = if self.zoomed { Focus::Pane } else { Focus::Tree };
                self.bring_into_sight();
            }
            KeyCode::Char(digit @ '1'..='4') => return self.show(Tab::ALL[digit as usize - '1' as usize]),
            KeyCode::Right | KeyCode::Char('l') => return self.turn(1),
            KeyCode::Left | KeyCode::Char('h') => return self.turn(Tab::ALL.len() - 1),
            KeyCode::Char('e') => {
                self.active_only = !self.active_only;
                self.rearrange();
            }
            KeyCode::Char('/') => self.mode = Mode::Search(Editor::default()),
            KeyCode::Char('n') => return self.find(true, false),
            KeyCode::Char('N') => return self.find(false, false),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Char('m') => self.offer(View::may_write, |view, worker| {
                let draft = view.drafts.get(&worker).map(String::as_str).unwrap_or_default();
                Mode::Write(worker, Editor::with(draft))
            }),
            KeyCode::Char('s') => self.offer(View::may_stop, |_, worker| Mode::Confirm(worker)),
            _ => {}
        }
        Vec::new()
    }

    fn turn(&mut self, by: usize) -> Vec<Order> {
        let at = Tab::ALL.iter().position(|tab| *tab == self.pane.tab).unwrap_or(0);
        self.show(Tab::ALL[(at + by) % Tab::ALL.len()])
    }

    fn go(&mut self, by: isize) -> Vec<Order> {
        if self.focus == Focus::Pane {
            let height = self.areas().rows_of_pane();
            match by {
                isize::MIN => self.pane.go_to_begin(height),
                isize::MAX => self.pane.go_to_end(),
                by => self.pane.scroll(-by, height),
            }
            return Vec::new();
        }
        let last = self.shown.len().saturating_sub(1);
        let index = self.index().unwrap_or(0).saturating_add_signed(by).min(last);
        let orders = self.select(self.shown.get(index).map(|(worker, _)| *worker));
        self.bring_into_sight();
        orders
    }

    /// Begins something, or says why that is not for us.
    fn offer(&mut self, may: impl Fn(&Self, &Row) -> Result<(), String>, begin: impl Fn(&Self, WorkerId) -> Mode) {
        let Some(row) = self.row() else { return };
        match may(self, row) {
            Ok(()) => self.mode = begin(self, row.worker),
            Err(why) => self.said = Some((why, true)),
        }
    }

    /// Whether words may be sent to it from here, and why not.
    pub fn may_write(&self, row: &Row) -> Result<(), String> {
        if self.rows.tree().closed_at_ms.is_some() {
            return Err("the tree is closed: nothing of it takes words any more".into());
        }
        match row.lead {
            None => Ok(()),
            Some(lead) => {
                let lead = self.rows.get(lead).map(|lead| safe(&lead.name)).unwrap_or_default();
                Err(format!("only its lead, {lead}, can send words to {} or stop it", safe(&row.name)))
            }
        }
    }

    /// The same of a stop.
    pub fn may_stop(&self, row: &Row) -> Result<(), String> {
        if row.has_ended() {
            return Err(format!("{} has ended", safe(&row.name)));
        }
        self.may_write(row)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all other keys edit")]
    fn search_key(&mut self, mut editor: Editor, key: KeyEvent) -> Vec<Order> {
        match key.code {
            KeyCode::Esc => Vec::new(),
            KeyCode::Enter => {
                if !editor.text().is_empty() {
                    self.searched = editor.text().to_lowercase();
                }
                self.find(true, true)
            }
            _ => {
                edit(&mut editor, key);
                self.mode = Mode::Search(editor);
                Vec::new()
            }
        }
    }

    /// The next row whose name has it, round and round; `here` may be it already.
    fn find(&mut self, forward: bool, here: bool) -> Vec<Order> {
        let count = self.shown.len();
        if self.searched.is_empty() || count == 0 {
            self.said = Some(("nothing was searched for yet: /".into(), true));
            return Vec::new();
        }
        let from = self.index().unwrap_or(0);
        let steps = if here { 0..count } else { 1..count + 1 };
        let places = steps.map(|step| if forward { (from + step) % count } else { (from + count - step) % count });
        let named = |place: &usize| self.rows.get(self.shown[*place].0).is_some_and(|row| row.name.to_lowercase().contains(&self.searched));
        let Some(found) = places.into_iter().find(named) else {
            self.said = Some((format!("no name has {} in it", safe(&self.searched)), true));
            return Vec::new();
        };
        let orders = self.select(Some(self.shown[found].0));
        self.bring_into_sight();
        orders
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all other keys edit")]
    fn write_key(&mut self, worker: WorkerId, mut editor: Editor, key: KeyEvent) -> Vec<Order> {
        let Some(name) = self.rows.get(worker).map(|row| row.name.clone()) else { return Vec::new() };
        match key.code {
            KeyCode::Esc => {
                self.drafts.insert(worker, editor.text());
                self.drafts.retain(|_, draft| !draft.is_empty());
                Vec::new()
            }
            KeyCode::Enter if key.modifiers.is_empty() => {
                if editor.is_blank() {
                    self.said = Some(("nothing was sent".into(), false));
                    return Vec::new();
                }
                // Kept until it is known that they were taken.
                self.drafts.insert(worker, editor.text());
                self.said = Some((format!("sending to {} ...", safe(&name)), false));
                vec![Order::Wish(Wish::Say(worker, name, editor.text()))]
            }
            _ => {
                edit(&mut editor, key);
                self.mode = Mode::Write(worker, editor);
                Vec::new()
            }
        }
    }

    fn confirm_key(&mut self, worker: WorkerId, key: KeyEvent) -> Vec<Order> {
        let Some(name) = self.rows.get(worker).map(|row| row.name.clone()) else { return Vec::new() };
        if key.code != KeyCode::Char('y') {
            self.said = Some((format!("{} was not stopped", safe(&name)), false));
            return Vec::new();
        }
        self.said = Some((format!("stopping {} ...", safe(&name)), false));
        vec![Order::Wish(Wish::Stop(name))]
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most keys mean nothing")]
fn edit(editor: &mut Editor, key: KeyEvent) {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('u') if control => editor.back_all(),
        KeyCode::Char('w') if control => editor.back_word(),
        KeyCode::Char('a') if control => editor.home(),
        KeyCode::Char('e') if control => editor.end(),
        // Raw mode tells Ctrl-J from Enter nowhere but here.
        KeyCode::Char('j') if control => editor.insert("\n"),
        KeyCode::Enter => editor.insert("\n"),
        KeyCode::Char(c) if !control => editor.insert(c.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace => editor.back(),
        KeyCode::Delete => editor.delete(),
        KeyCode::Left => editor.left(),
        KeyCode::Right => editor.right(),
        KeyCode::Home => editor.home(),
        KeyCode::End => editor.end(),
        _ => {}
    }
}
