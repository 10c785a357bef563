//! Whose are the directories that the daemon is going to use: refuses another user's before anything is made in them.
//!
//! After `su` or `sudo` the variables often still name the other user's. It knows only metadata, no contents.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use roost_proto::paths::Surroundings;

use crate::error::Error;

/// Refuses a runtime, state or home directory of somebody else. Paths that were asked for by name are the caller's business,
/// unless they exist and are somebody else's.
pub(crate) fn check(surroundings: &Surroundings) -> Result<(), Error> {
    let uid = surroundings.uid;
    if let Some(directory) = &surroundings.state_dir {
        foreign("ROOST_STATE_DIR", Path::new(directory), uid)?;
    }
    if surroundings.socket.is_some() || surroundings.state_dir.is_some() {
        return Ok(());
    }
    match &surroundings.xdg_runtime_dir {
        Some(directory) => foreign("XDG_RUNTIME_DIR", Path::new(directory), uid)?,
        None => foreign("the fall-back for XDG_RUNTIME_DIR", Path::new(&format!("/tmp/roost-{uid}")), uid)?,
    }
    match (&surroundings.xdg_state_home, &surroundings.home) {
        (Some(directory), _) => foreign("XDG_STATE_HOME", Path::new(directory), uid),
        (None, Some(directory)) => foreign("HOME", Path::new(directory), uid),
        (None, None) => Ok(()),
    }
}

fn foreign(variable: &'static str, directory: &Path, uid: u32) -> Result<(), Error> {
    match directory.metadata() {
        // A directory of the system (HOME=/ in a container) is nobody's; the daemon will see whether it may write there.
        Ok(found) if found.uid() != uid && (found.uid() != 0 || variable.ends_with("RUNTIME_DIR")) => {
            Err(Error::ForeignDirectory { variable, path: directory.to_owned(), owner: found.uid(), uid })
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_directory_of_another_user_is_refused_by_name_and_owner() {
        let directory = tempfile::tempdir().unwrap();
        let own = directory.path().metadata().unwrap().uid();
        let surroundings = |uid| Surroundings { xdg_runtime_dir: Some(directory.path().into()), uid, ..Surroundings::default() };
        assert!(check(&surroundings(own)).is_ok());
        let error = check(&surroundings(own + 1)).unwrap_err();
        assert_eq!(error.kind(), "foreign_directory");
        let text = error.to_string();
        assert!(text.contains("XDG_RUNTIME_DIR") && text.contains(&format!("uid {own}")), "{text}");
        // With a socket of its own the variable does not matter.
        assert!(check(&Surroundings { socket: Some("/s".into()), ..surroundings(own + 1) }).is_ok());
    }
}
