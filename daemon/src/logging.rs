//! Standard error as the log of both processes, and never more than a log: one that cannot be written, because its disk is full or
//! nobody reads it any more, loses its lines and ends nobody.

use std::io::{self, Stderr, Write};

use tracing_subscriber::EnvFilter;

/// From now on what is traced goes to standard error, as far as `ROOST_LOG` says.
pub fn to_stderr() {
    let filter = EnvFilter::try_from_env("ROOST_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Lossy(io::stderr())).with_ansi(false).init();
}

/// One line as it is, for whoever looks for it there.
pub fn line(text: &str) {
    // It cannot fail; should it ever, then there is no better place to say so.
    writeln!(Lossy(io::stderr()), "{text}").ok();
}

/// Takes everything. `eprintln!`, and the subscriber when its writer fails, would panic.
struct Lossy(Stderr);

impl Write for Lossy {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().or(Ok(()))
    }
}
