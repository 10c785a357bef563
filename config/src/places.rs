//! Where the two files are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The name of a project's file.
const PROJECT_FILE: &str = ".roost.toml";
/// What marks the root of a repository.
const REPOSITORIES: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

/// The user's file. A relative `XDG_CONFIG_HOME` counts as unset, as in the XDG specification.
pub fn user_file(config_home: Option<&OsStr>, home: Option<&Path>) -> Option<PathBuf> {
    let config = config_home.map(PathBuf::from).filter(|path| path.is_absolute());
    let config = config.or_else(|| home.filter(|home| home.is_absolute()).map(|home| home.join(".config")));
    config.map(|config| config.join("roost/config.toml"))
}

/// The nearest project file at or above a directory, up to the root of its repository or the home directory, whichever comes first.
/// A directory that is in neither is looked at alone: what lies above it, in `/tmp` say, may be anybody's.
pub fn project_file(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let real_home = home.and_then(|home| home.canonicalize().ok());
    let is_end = |directory: &Path| {
        let is_home = home == Some(directory) || real_home.as_deref() == Some(directory);
        is_home || REPOSITORIES.iter().any(|mark| directory.join(mark).exists())
    };
    let end = cwd.ancestors().find(|directory| is_end(directory)).unwrap_or(cwd);
    let inside = cwd.ancestors().take_while(|directory| directory.starts_with(end));
    inside.map(|directory| directory.join(PROJECT_FILE)).find(|file| file.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_users_file_follows_the_xdg_directories() {
        let at = |config: Option<&str>, home: Option<&str>| user_file(config.map(OsStr::new), home.map(Path::new));
        assert_eq!(at(Some("/c"), Some("/h")), Some("/c/roost/config.toml".into()));
        assert_eq!(at(Some("c"), Some("/h")), Some("/h/.config/roost/config.toml".into()));
        assert_eq!(at(None, None), None);
    }

    #[test]
    fn the_nearest_file_counts_and_nothing_beyond_repository_or_home() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let inner = root.join("home/repo/a/b");
        fs::create_dir_all(&inner).unwrap();
        let found = |from: &Path| project_file(from, Some(&root.join("home")));
        let put = |directory: &Path| fs::write(directory.join(PROJECT_FILE), "").unwrap();
        put(&root);
        assert_eq!(found(&inner), None, "above home");
        put(&root.join("home"));
        assert_eq!(found(&inner), Some(root.join("home/.roost.toml")));
        fs::create_dir(root.join("home/repo/.git")).unwrap();
        assert_eq!(found(&inner), None, "above the repository");
        put(&root.join("home/repo"));
        put(&root.join("home/repo/a"));
        assert_eq!(found(&inner), Some(root.join("home/repo/a/.roost.toml")));
        // In neither: only the directory itself.
        fs::create_dir(root.join("other")).unwrap();
        assert_eq!(found(&root.join("other")), None);
        put(&root.join("other"));
        assert_eq!(found(&root.join("other")), Some(root.join("other/.roost.toml")));
    }
}
