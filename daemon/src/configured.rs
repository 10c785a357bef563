//! What the user's configuration says of the daemon (`[daemon]` in `docs/config.md`), for the flags that nobody gave. A project has no
//! say: there is one daemon per user, whoever starts it.

use clap::ArgMatches;
use clap::parser::ValueSource;
use roost_config::{Around, Config, KEYS, Level, Section, Source, Value};

use crate::config::DaemonFlags;
use crate::process::cgroup::place::Setting;

/// Fills in what was not given on the command line.
///
/// # Errors
/// What is wrong with the file, if it is about the daemon or the file as a whole, or with a variable. A daemon that ran with other
/// flags than its user wrote down would be a surprise.
pub fn fill(flags: &mut DaemonFlags, given: &ArgMatches, around: &Around) -> Result<(), String> {
    let config = Config::load(around);
    for problem in config.problems() {
        let of_others = |key: &String| key.starts_with("tree") || key.starts_with("profile") || key.starts_with("ROOST_TREE");
        if problem.key.as_ref().is_some_and(of_others) {
            continue;
        }
        match problem.level {
            Level::Error => return Err(format!("{problem}; `roost config check` lists everything that is wrong")),
            Level::Warning => tracing::warn!("{problem}"),
        }
    }
    for key in KEYS.iter().filter(|key| key.section == Section::Daemon) {
        let is_given = given.value_source(key.short()) == Some(ValueSource::CommandLine);
        let (value, source) = config.value(key);
        if !is_given && source != Source::Default {
            put(flags, key.short(), value);
        }
    }
    Ok(())
}

/// The names are those of the flags: a test tries them all.
fn put(flags: &mut DaemonFlags, name: &str, value: Value) {
    match (name, value) {
        ("cap", Value::Number(cap)) => flags.cap = u32::try_from(cap).ok(),
        ("keep", Value::Number(keep)) => flags.keep = usize::try_from(keep).unwrap_or(usize::MAX),
        ("retention", Value::Time(ms)) => flags.retention = ms,
        ("idle_exit", Value::Time(ms)) => flags.idle_exit = ms.div_ceil(1_000),
        ("cgroup", Value::Word(word)) => {
            if let Ok(setting) = Setting::parse(word.into()) {
                flags.cgroup = setting;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::config::Cli;

    fn flags(words: &[&str], home: &Path, variables: &[(&str, &str)]) -> Result<DaemonFlags, String> {
        let matches = Cli::command().try_get_matches_from(std::iter::once(&"roostd").chain(words)).unwrap();
        let mut flags = Cli::from_arg_matches(&matches).unwrap().daemon;
        let around = Around {
            uid: rustix::process::geteuid().as_raw(),
            home: Some(home.to_owned()),
            variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
            ..Around::default()
        };
        fill(&mut flags, &matches, &around).map(|()| flags)
    }

    #[test]
    fn every_key_of_the_daemon_fills_its_flag_and_the_flag_goes_first() {
        let home = tempfile::tempdir().unwrap();
        let words = |flags: DaemonFlags| flags.arguments().iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>();
        let usual = words(flags(&[], home.path(), &[]).unwrap());
        for (key, value, shown) in [
            ("cap", "3", "3"),
            ("keep", "4", "4"),
            ("retention", "\"5s\"", "5000ms"),
            ("idle_exit", "\"6m\"", "360"),
            ("cgroup", "\"off\"", "off"),
        ] {
            std::fs::create_dir_all(home.path().join(".config/roost")).unwrap();
            std::fs::write(home.path().join(".config/roost/config.toml"), format!("[daemon]\n{key} = {value}\n[tree]\ncap = 0\n")).unwrap();
            let filled = words(flags(&[], home.path(), &[]).unwrap());
            let flag = format!("--{}", key.replace('_', "-"));
            assert!(filled != usual && filled.windows(2).any(|pair| pair == [&flag, shown]), "{key}: {filled:?}");
            let given = if key == "cgroup" { "own" } else { "7" };
            let variable = [(&*format!("ROOST_DAEMON_{}", key.to_uppercase()), if key == "cgroup" { "auto" } else { "8" })];
            let by_variable = words(flags(&[], home.path(), &variable).unwrap());
            assert!(by_variable != filled, "{key}");
            assert_eq!(
                words(flags(&[&flag, given], home.path(), &variable).unwrap()),
                words(flags(&[&flag, given], home.path(), &[]).unwrap())
            );
        }
        assert_eq!(KEYS.iter().filter(|key| key.section == Section::Daemon).count(), 5);
    }

    #[test]
    fn what_is_wrong_elsewhere_does_not_stop_the_daemon_and_what_is_wrong_here_does() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(".config/roost/config.toml");
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        for (text, is_good) in [
            ("[tree]\ncap = 0\n[profile.x]\nmodel = 3\n", true),
            ("[daemon]\nkepp = 3\n", true),
            ("[daemon]\nkeep = \"x\"\n", false),
            ("[daemon\n", false),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(flags(&[], home.path(), &[]).is_ok(), is_good, "{text}");
        }
    }
}
