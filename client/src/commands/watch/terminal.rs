//! The terminal: taken over on the way in, given back as it was on every way out, a panic in any thread included.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::sync::Once;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use roost::Error;

use crate::failure::Failure;

/// What a program that panics exits with.
const PANICKED: i32 = 101;

/// The screen; when it is dropped the terminal is as it was.
pub struct Screen {
    /// To draw with.
    pub terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
}

impl Screen {
    /// Takes the terminal over.
    pub fn take() -> Result<Self, Failure> {
        give_back_on_panic();
        let failed = Error::io("cannot take the terminal over");
        let screen = (|| {
            // A descriptor of our own: nobody's lock is in the way of a panic, and a screen leaves in one piece.
            let out = BufWriter::with_capacity(1 << 16, File::from(rustix::io::fcntl_dupfd_cloexec(io::stdout().as_fd(), 3)?));
            enable_raw_mode()?;
            let mut backend = CrosstermBackend::new(out);
            execute!(backend, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
            Ok(Self { terminal: Terminal::new(backend)? })
        })();
        if screen.is_err() {
            give_back();
        }
        Ok(screen.map_err(failed)?)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Writes past everything that may be locked. There is nobody to tell when the terminal is gone.
fn give_back() {
    let mut all = Vec::new();
    execute!(all, DisableBracketedPaste, Show, LeaveAlternateScreen).ok();
    let mut left = all.as_slice();
    while !left.is_empty()
        && let Ok(written) = rustix::io::write(io::stdout().as_fd(), left)
    {
        left = &left[written..];
    }
    disable_raw_mode().ok();
}

/// A view that has lost one of its threads shows what is not so any more: it ends.
fn give_back_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
            io::stderr().flush().ok();
            std::process::exit(PANICKED);
        }));
    });
}
