//! A terminal: tmux on a socket of its own. Keys go in, the screen comes out as text.

use std::path::PathBuf;

use super::command::{Cmd, Done};
use super::home::Home;
use super::{not_tested, until};

/// One terminal with one program in it. The server ends with the home: its socket's path is in its arguments.
pub struct Terminal<'h> {
    home: &'h Home,
    socket: PathBuf,
}

impl<'h> Terminal<'h> {
    /// Whether there is tmux for this; says so where there is none.
    pub fn is_there(home: &Home, what: &str) -> bool {
        let is_there = home.sh("command -v tmux").run().code() == 0;
        if !is_there {
            not_tested(&format!("{what}: no tmux"));
        }
        is_there
    }

    /// One of this size in which a shell script runs; `dressed` gives it the environment it is to have.
    #[track_caller]
    pub fn start(home: &'h Home, (columns, rows): (u32, u32), script: &str, dressed: impl Fn(Cmd) -> Cmd) -> Self {
        let terminal = Self { home, socket: home.file("tmux") };
        let script = home.script("in-terminal", script);
        // The server of the user's own tmux, with settings of its own, is none of ours.
        let new =
            ["-f", "/dev/null", "new-session", "-d", "-s", "t", "-x", &columns.to_string(), "-y", &rows.to_string()].map(str::to_owned);
        let run = format!("sh {}; echo 'shell>'; exec sh", script.display());
        dressed(terminal.tmux().args(new).arg(run)).run().ok();
        terminal
    }

    fn tmux(&self) -> Cmd {
        self.home.command("tmux").env("LC_ALL", "C.UTF-8").without("TMUX").arg("-u").arg("-S").arg(&self.socket)
    }

    fn ask(&self, words: &[&str]) -> Done {
        self.tmux().args(words).run()
    }

    /// What is on the screen, without the spaces at the ends of lines.
    pub fn screen(&self) -> Vec<String> {
        let shown = self.ask(&["capture-pane", "-p", "-t", "t"]);
        shown.text().lines().map(|line| line.trim_end().to_owned()).collect()
    }

    /// Waits until it has all of these texts. Nothing tells that a screen has changed: it is looked at again.
    #[track_caller]
    pub fn until(&self, texts: &[&str]) -> Vec<String> {
        let last = std::cell::RefCell::new(Vec::new());
        let holds = || {
            let screen = self.screen();
            let whole = screen.join("\n");
            *last.borrow_mut() = screen;
            texts.iter().all(|text| whole.contains(text))
        };
        let waits = std::panic::AssertUnwindSafe(|| until(&format!("{texts:?} on the screen"), holds));
        if let Err(panic) = std::panic::catch_unwind(waits) {
            eprintln!("the screen was:\n{}", last.borrow().join("\n"));
            std::panic::resume_unwind(panic);
        }
        last.into_inner()
    }

    /// Types this.
    pub fn type_in(&self, text: &str) {
        self.ask(&["send-keys", "-t", "t", "-l", text]).ok();
    }

    /// Presses keys by their names in tmux.
    pub fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys", "-t", "t"], keys].concat()).ok();
    }

    /// Changes its size.
    pub fn resize(&self, columns: u32, rows: u32) {
        self.ask(&["resize-window", "-t", "t", "-x", &columns.to_string(), "-y", &rows.to_string()]).ok();
    }

    /// Whether there is still something in it.
    pub fn is_running(&self) -> bool {
        self.ask(&["has-session", "-t", "t"]).code() == 0
    }

    /// What tmux says of it.
    pub fn format(&self, format: &str) -> String {
        self.ask(&["display-message", "-p", "-t", "t", format]).text().trim_end().to_owned()
    }
}
