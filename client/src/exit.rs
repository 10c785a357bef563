//! The exit codes of `roost`, all of them. The table for people is `docs/exit-codes.md`; a test compares the two.

/// How the command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Ok,
    /// A worker did not complete, or the daemon refused.
    NotCompleted,
    /// The command line, or where it was used, is wrong.
    Usage,
    /// There is no daemon to talk to, and none could be started.
    NoDaemon,
    /// A wait ran out of time.
    TimedOut,
    /// Left on a second Ctrl-C.
    Interrupted,
    /// `roost run`: the command's own code.
    Own(u8),
}

impl Exit {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::NotCompleted => 1,
            Self::Usage => 2,
            Self::NoDaemon => 4,
            Self::TimedOut => 124,
            Self::Interrupted => 130,
            Self::Own(code) => code,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_docs_has_these_codes_and_no_others() {
        let table = include_str!("../../docs/exit-codes.md");
        let documented: Vec<u8> =
            table.lines().filter_map(|line| line.strip_prefix("| ")?.split_whitespace().next()?.parse().ok()).collect();
        let codes = [Exit::Ok, Exit::NotCompleted, Exit::Usage, Exit::NoDaemon, Exit::TimedOut, Exit::Interrupted].map(Exit::code);
        assert_eq!(documented, codes);
    }
}
