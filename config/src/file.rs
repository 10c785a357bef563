//! Reading one file, and whether it may be believed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use roost_proto::limits::CONFIG_BYTES_MAX;

use crate::problem::{Level, Problem};

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// The user's own: it may say what is run.
    User,
    /// A project's, which comes with the project.
    Project,
}

/// The text of a file; `None` when there is none.
///
/// # Errors
/// One that is there and cannot be read or believed, with what to do about it.
pub fn read(path: &Path, whose: Whose, uid: u32) -> Result<Option<String>, Problem> {
    let shown = path.display();
    let broken = |message: String, hint: String| Problem::of_file(Level::Error, path, message, hint);
    let file = match open(path) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(error) => {
            return Err(broken(format!("it cannot be read: {error}"), format!("see `ls -ld {shown}`; chmod u+r makes it readable")));
        }
    };
    let found = file.metadata().map_err(|error| broken(format!("it cannot be read: {error}"), format!("see `ls -ld {shown}`")))?;
    if !found.is_file() {
        let what = if found.is_dir() { "a directory" } else { "no file" };
        return Err(broken(format!("it is {what}"), format!("move it away: mv {shown} {shown}.moved-away")));
    }
    let is_foreign = found.uid() != uid && found.uid() != 0;
    match whose {
        Whose::Project if is_foreign => {
            let message = format!("it belongs to uid {}, and you are uid {uid}: it is left out", found.uid());
            return Err(Problem::of_file(Level::Warning, path, message, "make it yours with chown, or copy it, if you trust it"));
        }
        Whose::User if is_foreign => {
            let message = format!("it belongs to uid {}, and you are uid {uid}; it says what is run", found.uid());
            return Err(broken(message, format!("chown {uid} {shown}, if you trust it")));
        }
        Whose::User if found.mode() & 0o022 != 0 => {
            let message = format!("others can change it (mode {:o}), and it says what is run", found.mode() & 0o777);
            return Err(broken(message, format!("look at it, then: chmod go-w {shown}")));
        }
        Whose::User | Whose::Project => {}
    }
    let mut bytes = Vec::new();
    let read = file.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| broken(format!("it cannot be read: {error}"), format!("see `ls -ld {shown}`")))?;
    if bytes.len() as u64 > CONFIG_BYTES_MAX {
        return Err(broken(format!("it has more than {CONFIG_BYTES_MAX} bytes"), "is it the right file?".into()));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1;
        Problem { line: Some(line), ..broken("it is not UTF-8".into(), "save it as UTF-8".into()) }
    })
}

/// A link that leads nowhere is not the same as no file.
fn open(path: &Path) -> io::Result<Option<File>> {
    // A pipe without a writer must not hold us up.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && std::fs::symlink_metadata(path).is_err() => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::new(error.kind(), "it is a link to nothing")),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn what_is_no_file_of_ours_is_refused_with_what_to_do() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        let read = |whose| super::read(&path, whose, uid());
        assert_eq!(read(Whose::User), Ok(None));
        std::os::unix::fs::symlink("nowhere", &path).unwrap();
        assert!(read(Whose::User).unwrap_err().message.contains("link to nothing"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let refused = read(Whose::Project).unwrap_err();
        assert!(refused.message.contains("a directory") && refused.hint.unwrap().contains("mv "));
        std::fs::remove_dir(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        assert!(read(Whose::User).unwrap_err().message.contains("no file"));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
        let refused = read(Whose::User).unwrap_err();
        assert_eq!((refused.line, refused.message.as_str()), (Some(2), "it is not UTF-8"));
        std::fs::write(&path, "x".repeat((1 << 20) + 1)).unwrap();
        assert!(read(Whose::Project).unwrap_err().message.contains("more than 1048576 bytes"));
    }

    #[test]
    fn the_users_file_must_be_the_users_alone_to_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        std::fs::write(&path, "").unwrap();
        for (mode, is_good) in [(0o600, true), (0o644, true), (0o664, false), (0o646, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let user = read(&path, Whose::User, uid());
            assert_eq!(user.is_ok(), is_good, "{mode:o}");
            assert!(user.err().is_none_or(|refused| refused.hint.unwrap().contains("chmod go-w")));
            // Teams share theirs, and it cannot say what is run.
            assert_eq!(read(&path, Whose::Project, uid()), Ok(Some(String::new())));
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let is_root = uid() == 0;
        for (whose, level) in [(Whose::User, Level::Error), (Whose::Project, Level::Warning)] {
            assert_eq!(read(&path, whose, uid() + 1).err().map(|refused| refused.level), (!is_root).then_some(level));
        }
    }
}
