//! A `systemd --user` manager for one test, on a machine that need not run systemd: in a mount namespace, a cgroup and a home of
//! its own. The test is a script that the manager runs as its first unit and ends with, so nobody waits for it to come up.

use std::fs;
use std::path::{Path, PathBuf};

use super::cgroup::CgroupDirectory;
use super::command::Done;
use super::home::Home;
use super::not_tested;

/// Where systemd is, if it is.
const SYSTEMD: [&str; 2] = ["/usr/lib/systemd/systemd", "/lib/systemd/systemd"];

/// `$1` is the cgroup to be in, which is all that is seen of the cgroups inside; `$2` is systemd; `$3` is its log.
const OUTSIDE: &str = r#"
echo $$ >"$1/cgroup.procs" || exit
exec unshare --mount --propagation private --cgroup sh -c '
    mount -t tmpfs -o mode=755 roost-tests /run && mkdir -p -m 700 "$XDG_RUNTIME_DIR" || exit
    mount -t cgroup2 roost-tests /sys/fs/cgroup || exit
    # By this systemctl knows that there is a systemd.
    mkdir -p /run/systemd/system
    "$1" --user --unit=test.service --log-target=console >"$2" 2>&1
    exit $?
' sh "$2" "$3"
"#;

/// The unit of the script. The manager ends with it, and with its exit code.
const TEST_UNIT: &str = "[Unit]\nDefaultDependencies=no\nSuccessAction=exit\nFailureAction=exit\n\n[Service]\nType=oneshot\n";

/// A manager that has not been started.
pub struct UserManager<'a> {
    home: &'a Home,
    cgroup: CgroupDirectory,
    systemd: &'static str,
}

impl<'a> UserManager<'a> {
    /// `None`, with a printed reason, where there can be none.
    pub fn new(home: &'a Home) -> Option<Self> {
        let systemd = SYSTEMD.into_iter().find(|path| Path::new(path).exists());
        let is_root = rustix::process::geteuid().is_root();
        let systemd = systemd.filter(|_| is_root && ["systemctl", "unshare", "mount"].into_iter().all(on_path));
        if systemd.is_none() {
            not_tested("a user manager of its own takes root, systemd and util-linux");
        }
        let manager = Self { home, systemd: systemd?, cgroup: CgroupDirectory::make()? };
        fs::create_dir_all(manager.units()).expect("a directory");
        Some(manager)
    }

    /// Writes a unit.
    pub fn unit(&self, name: &str, text: &str) {
        fs::write(self.units().join(name), text).expect("a unit");
    }

    /// Runs a shell script with `systemctl --user` at hand; its output is appended to `said` in the home.
    #[track_caller]
    pub fn run(&self, script: &str) -> Done {
        let said = self.home.file("said").display().to_string();
        // A manager gives its units a PATH of its own.
        let roost = self.home.program("roost");
        let (programs, directory) = (roost.parent().expect("its directory").display(), self.home.dir().display());
        let script = self.home.script("test.sh", &format!("export PATH=\"{programs}:$PATH\" F={directory}\n{script}"));
        let unit =
            format!("{TEST_UNIT}ExecStart=/bin/sh {}\nStandardOutput=append:{said}\nStandardError=append:{said}\n", script.display());
        self.unit("test.service", &unit);
        let outside = self.home.sh(OUTSIDE).arg("sh").arg(self.cgroup.path()).arg(self.systemd).arg(self.home.file("manager.log"));
        // What a manager has in its environment its units have, too.
        let outside = outside.without("ROOST_STATE_DIR");
        outside.env("XDG_RUNTIME_DIR", "/run/user/0").env("XDG_CONFIG_HOME", self.home.file("home/.config")).run()
    }

    fn units(&self) -> PathBuf {
        self.home.file("home/.config/systemd/user")
    }
}

impl Drop for UserManager<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- the script said\n{}--- the manager's log\n{}", self.home.read("said"), self.home.read("manager.log"));
        }
    }
}

fn on_path(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|directory| directory.join(program).is_file()))
}
