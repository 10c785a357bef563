//! The units under a real `systemd --user`: started by the socket, restarted under load, stopped in order, given up when nothing helps.
//!
//! Each test is a shell script that the manager runs; what it prints is looked at here.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use roost_tests::real::{Home, UserManager};
use serde_json::Value;

/// Before each script.
const BEFORE: &str = r#"set -eu
show() { systemctl --user show --value --property "$1" "${2:-roostd.service}"; }
pid() { roost daemon status --json | sed -n "s/.*\"$1_pid\":\([0-9]*\).*/\1/p"; }
"#;

/// Runs a script and returns the lines that it printed; `None` where there can be no manager.
#[track_caller]
fn lines(home: &Home, script: &str) -> Option<Vec<String>> {
    let manager = UserManager::new(home)?;
    let done = manager.run(&format!("{BEFORE}{script}"));
    let said = home.read("said");
    assert_eq!(done.code(), 0, "{done}\n{said}");
    Some(said.lines().map(str::to_owned).collect())
}

/// The row of `docs/json.md` about this command lists what it has printed.
#[track_caller]
fn has_the_fields_of(about: &str, printed: &str) {
    let document = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md")).unwrap();
    let row = document.lines().find_map(|line| line.strip_prefix(&format!("| `{about}` | - | `"))).expect(about);
    let listed: BTreeSet<&str> = row.trim_end_matches("` |").split(' ').collect();
    let value: Value = serde_json::from_str(printed).expect(printed);
    assert_eq!(value.as_object().unwrap().keys().map(String::as_str).collect::<BTreeSet<_>>(), listed);
}

#[test]
fn the_socket_starts_the_daemon_which_leaves_and_comes_again() {
    let home = Home::new();
    let script = r#"
        roost service status >"$F/before" 2>&1 && exit 9 || test $? = 1
        roost service install
        show ActiveState roostd.socket; show ActiveState
        roost run -- echo through the socket
        show ActiveState; test "$(show MainPID)" = "$(pid supervisor)"
        show StatusText
        roost service status --json
        roost service install --json
        roost daemon stop; show ActiveState; show ActiveState roostd.socket
        roost run -- echo again
        roost service uninstall --json
        show ActiveState roostd.socket; ls "$XDG_CONFIG_HOME/systemd/user"
    "#;
    let Some(said) = lines(&home, script) else { return };
    assert!(home.read("before").contains("not installed"), "{}", home.read("before"));
    assert!(said[0].starts_with("installed in "), "{said:?}");
    assert_eq!(said[1..5], ["active", "inactive", "through the socket", "active"], "{said:?}");
    // What it was doing when the line was last allowed to change.
    assert!(said[5].starts_with("trees ") && said[5].contains(", live "), "{said:?}");
    assert!(said[6].contains(r#""installed":true"#) && said[6].contains(r#""service":"active""#), "{said:?}");
    has_the_fields_of("service status", &said[6]);
    has_the_fields_of("service install", &said[7]);
    assert_eq!(said[8..12], ["stopped", "inactive", "active", "again"], "{said:?}");
    has_the_fields_of("service uninstall", &said[12]);
    assert_eq!(said[13..], ["inactive", "test.service"], "{said:?}");
}

#[test]
fn a_broker_or_supervisor_that_is_killed_under_load_loses_nothing() {
    let home = Home::new();
    // Twenty workers at cap 4, each held by a gate; deaths in between.
    let script = r#"
        roost service install >/dev/null
        eval "$(roost open --cap 4)"
        mkfifo "$F/up" "$F/gate"
        for n in 1 2 3 4 5 6 7 8 9 10; do
            roost spawn --name w$n -- sh -c 'echo up >"$F/up"; read go <"$F/gate"; echo '$n >/dev/null
        done
        exec 8<>"$F/up" 9<>"$F/gate"
        for n in 1 2 3 4; do read line <&8; done
        old=$(pid broker); kill -9 "$old"; test "$(pid broker)" != "$old"
        for n in 1 2 3 4; do echo go >&9; read line <&8; done
        systemctl --user reload roostd.service
        for n in 1 2; do echo go >&9; read line <&8; done
        for n in 1 2 3 4; do echo go >&9; done
        roost wait; show NRestarts
        for n in 1 5 10; do roost result w$n; done
        roost spawn --name lost -- sh -c 'echo up >"$F/up"; exec sleep 1000' >/dev/null
        read line <&8
        kill -9 "$(show MainPID)"
        roost status >/dev/null; show NRestarts
        roost stop lost >/dev/null; roost wait lost || true
        roost close
    "#;
    let Some(said) = lines(&home, script) else { return };
    let ended: Vec<String> = (1..=10).map(|n| format!("w{n} completed")).collect();
    assert!(ended.iter().all(|line| said[..10].contains(line)), "{said:?}");
    assert_eq!(said[10..14], ["0", "1", "5", "10"], "{said:?}");
    assert_eq!(said[14], "1", "{said:?}");
    assert!(said[15].starts_with("lost "), "{said:?}");
    assert_eq!(said[16], "closed", "{said:?}");
}

#[test]
fn a_stop_ends_fifty_workers_in_order_and_leaves_no_process() {
    let home = Home::new();
    let script = r#"
        roost service install >/dev/null
        eval "$(roost open --cap 50 --budget 60)"
        mkfifo "$F/up"; exec 8<>"$F/up"
        tasks='{"argv":["sh","-c","trap \"echo term >>$F/terms; exit 0\" TERM; echo up >$F/up; while :; do read x <$F/never; done"]}'
        mkfifo "$F/never"; exec 7<>"$F/never"
        for n in 1 2 3; do
            list=$tasks; i=1; while [ $i -lt 17 ]; do list="$list,$tasks"; i=$((i + 1)); done
            [ $n = 3 ] && list=$(echo "$list" | sed "s/^{[^}]*},//")
            echo "[$list]" | roost spawn --tasks - >/dev/null
        done
        n=0; while [ $n -lt 50 ]; do read line <&8; n=$((n + 1)); done
        cgroup=/sys/fs/cgroup$(show ControlGroup)
        find "$cgroup" -mindepth 1 -type d | wc -l
        systemctl --user --quiet stop roostd.service
        show ActiveState; show Result
        find "$cgroup" -mindepth 1 -type d 2>/dev/null | wc -l
        wc -l <"$F/terms"
        roost status --json | grep -o '"live":[0-9]*' | head -1
    "#;
    let Some(said) = lines(&home, script) else { return };
    assert_eq!(said, ["50", "inactive", "success", "0", "50", r#""live":0"#]);
}

#[test]
fn a_daemon_that_cannot_live_is_given_up_and_says_how_to_go_on() {
    let home = Home::new();
    // Every supervisor dies at once, until the limit; then a state directory that refuses, which is not tried again at all.
    let script = r#"
        roost service install >/dev/null
        roost status >/dev/null
n=0
        # A start returns when the daemon is ready, or when it is given up.
        while systemctl --user start roostd.service 2>/dev/null && [ $n -lt 20 ]; do
            systemctl --user kill --kill-who=main --signal=KILL roostd.service; n=$((n + 1))
        done
        show ActiveState; show Result
        roost service status 2>"$F/said-failed" >/dev/null || echo "status says $?"
        roost status >"$F/no-way-round" 2>&1 || echo "no way round: $?"
        systemctl --user reset-failed roostd.service roostd.socket
        systemctl --user start roostd.socket
        roost run -- echo alive again
        roost daemon stop >/dev/null
        printf garbage >"$HOME/.local/state/roost/roost.db"; rm -f "$HOME/.local/state/roost/roost.db-wal"
        roost --no-start status >/dev/null 2>&1 || echo "refused $?"
        show NRestarts; show ExecMainStatus
    "#;
    let Some(said) = lines(&home, script) else { return };
    assert_eq!(said[..2], ["failed", "signal"], "{said:?}");
    assert_eq!(said[2], "status says 1", "{said:?}");
    assert!(home.read("said-failed").contains("reset-failed"), "{}", home.read("said-failed"));
    assert!(said[3] == "no way round: 4" && home.read("no-way-round").contains("reset-failed"), "{said:?}");
    assert_eq!(said[4..], ["alive again", "refused 4", "0", "78"], "{said:?}");
}

#[test]
fn an_upgrade_in_place_is_a_reload_and_no_worker_notices() {
    let home = Home::new();
    let bin = home.file("bin");
    fs::create_dir(&bin).unwrap();
    for program in ["roost", "roostd"] {
        fs::copy(home.program(program), bin.join(program)).unwrap();
    }
    let script = r#"
        export PATH="$F/bin:$PATH"
        roost service install >/dev/null
        eval "$(roost open)"
        mkfifo "$F/gate"
        roost spawn --name w -- sh -c 'read go <"$F/gate"; echo $$' >/dev/null
        old=$(pid broker); supervisor=$(pid supervisor)
        cp "$F/bin/roostd" "$F/bin/new"; mv "$F/bin/new" "$F/bin/roostd"
        systemctl --user reload roostd.service
        new=$(pid broker)
        test "$new" != "$old"; test "$(pid supervisor)" = "$supervisor"
        test "/proc/$new/exe" -ef "$F/bin/roostd" && echo the new program
        echo go >"$F/gate"; roost wait
        roost close
    "#;
    let Some(said) = lines(&home, script) else { return };
    assert_eq!(said, ["the new program", "w completed", "closed"]);
}

#[test]
fn a_daemon_by_hand_is_in_the_way_of_the_units_and_says_so() {
    let home = Home::new();
    let script = r#"
        roost daemon start >/dev/null
        roost service install 2>&1 || echo "code $?"
        roost daemon stop >/dev/null
        roost service uninstall 2>&1 || echo "code $?"
        roost service install >/dev/null; systemctl --user --quiet stop roostd.socket
        # The unit is there: it is what starts on demand.
        roost run -- echo on demand; test "$(show MainPID)" = "$(pid supervisor)"
        eval "$(roost open)"; roost spawn -- sleep 1000 >/dev/null
        roost service uninstall 2>&1 || echo "code $?"
        roost service uninstall --now >/dev/null; ls "$XDG_CONFIG_HOME/systemd/user"
    "#;
    let Some(said) = lines(&home, script) else { return };
    assert!(said[0].contains("systemd did not start is running") && said[1].contains("roost daemon stop"), "{said:?}");
    assert_eq!(said[2], "code 1");
    assert!(said[3].contains("no units of Roost") && said[4].contains("roost service install"), "{said:?}");
    assert_eq!(said[5..7], ["code 1", "on demand"], "{said:?}");
    assert!(said[7].contains("1 worker is still running") && said[8].contains("--now"), "{said:?}");
    assert_eq!(said[9..], ["code 1", "test.service"], "{said:?}");
}

/// Live work is the daemon's to refuse, or to stop: systemd asks nobody.
#[test]
fn an_uninstall_leaves_live_workers_alone_and_stops_them_only_when_told_to() {
    let home = Home::new();
    let script = r#"
        roost service install >/dev/null
        eval "$(roost open --key k)"; mkfifo "$F/up"
        roost spawn --name w -- sh -c 'echo up >"$F/up"; exec sleep 1000' >/dev/null; read line <"$F/up"
        roost service uninstall 2>"$F/refused" || echo "code $?"
        roost spawn --name after -- true >/dev/null; roost wait after
        roost service uninstall --now --json
        show ActiveState roostd.socket; ls "$XDG_CONFIG_HOME/systemd/user"
        roost wait w || true
    "#;
    let Some(said) = lines(&home, script) else { return };
    assert!(home.read("refused").contains("1 worker is still running: w"), "{}", home.read("refused"));
    // What was called off is called off: new work is taken.
    assert_eq!(said[..2], ["code 1", "after completed"], "{said:?}");
    assert!(said[2].ends_with(r#""stopped":1}"#), "{said:?}");
    assert_eq!(said[3..], ["inactive", "test.service", "w stopped"], "{said:?}");
}

#[test]
fn units_of_a_package_count_are_not_ours_to_remove_and_can_be_masked() {
    let home = Home::new();
    let script = r#"
        roost service install >/dev/null
        mount -t tmpfs roost-tests /usr/local/lib && mkdir -p /usr/local/lib/systemd/user
        cp "$XDG_CONFIG_HOME"/systemd/user/roostd.* /usr/local/lib/systemd/user
        # Ours shadow them, and leave them.
        roost service uninstall 2>&1
        roost run -- echo through the packaged socket; test "$(show MainPID)" = "$(pid supervisor)"
        roost service status --json | grep -o '"installed":true,\|"units":"[^"]*"'
        roost service uninstall 2>&1 || echo "code $?"
        show ActiveState roostd.socket
        roost daemon stop; systemctl --user --quiet mask --now roostd.socket roostd.service 2>"$F/mask"
        roost run -- echo by hand; test "$(show MainPID)" = 0
        roost daemon stop
    "#;
    let Some(said) = lines(&home, script) else { return };
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    assert!(said[0].starts_with("removed from ") && said[1].contains("/usr/local/lib/systemd/user hold"), "{said:?}");
    assert_eq!(said[2], "through the packaged socket");
    let mut shown = said[3..5].to_vec();
    shown.sort_unstable();
    assert_eq!(shown, [r#""installed":true,"#, r#""units":"/usr/local/lib/systemd/user""#]);
    assert!(said[5].contains("came with a package") && said[6].contains("systemctl --user mask"), "{said:?}");
    assert_eq!(said[7..], ["code 1", "active", "stopped", "by hand", "stopped"], "{said:?}");
}

/// Holds a worker at a gate, with a watchdog of six seconds.
const WATCHED: &str = r#"
    roost service install >/dev/null
    mkdir -p "$XDG_CONFIG_HOME/systemd/user/roostd.service.d"
    printf '[Service]\nWatchdogSec=6\n' >"$XDG_CONFIG_HOME/systemd/user/roostd.service.d/test.conf"
    systemctl --user daemon-reload
    eval "$(roost open)"
    mkfifo "$F/gate" "$F/up"
    roost spawn --name w -- sh -c 'echo up >"$F/up"; read go <"$F/gate"; echo $$' >/dev/null
    read line <"$F/up"
    old=$(show MainPID)
"#;

#[test]
fn a_broker_that_stands_still_is_replaced_and_nobody_notices() {
    let home = Home::new();
    let script = format!(
        r#"{WATCHED}
        broker=$(pid broker); kill -STOP "$broker"
        # Answered only once another broker is there.
        roost status --json | grep -o '"state":"[a-z]*"'
        test "$(pid broker)" != "$broker"; test "$(show MainPID)" = "$old"; show NRestarts
        echo go >"$F/gate"; roost wait; roost close"#
    );
    let Some(said) = lines(&home, &script) else { return };
    assert_eq!(said, [r#""state":"running""#, "0", "w completed", "closed"]);
}

#[test]
fn the_watchdog_bites_a_supervisor_that_stands_still_and_its_workers_live() {
    let home = Home::new();
    let script = format!(
        r#"{WATCHED}
        kill -STOP "$old"
        # A child's end is told by the supervisor, so this waits for another one.
        echo go >"$F/gate"; roost wait || true
        test "$(show MainPID)" != "$old"; show NRestarts; roost close"#
    );
    let Some(said) = lines(&home, &script) else { return };
    // The exit code of a process that was adopted is known to nobody.
    assert!(said[0].starts_with("w failed"), "{said:?}");
    assert_eq!(said[1..], ["1", "closed"], "{said:?}");
}

// B05 (f), (g).
#[test]
fn an_install_tells_what_a_log_out_ends_and_workers_have_their_submitters_path() {
    let home = Home::new();
    fs::create_dir(home.file("fake")).unwrap();
    home.script("fake/loginctl", "#!/bin/sh\necho no\n");
    home.script("fake/only-here", "#!/bin/sh\necho found\n");
    let script = r#"
        chmod +x "$F/fake/loginctl" "$F/fake/only-here"
        PATH="$F/fake:$PATH" roost service install 2>&1
        PATH="$F/fake:$PATH" roost service status | grep linger
        PATH="$F/fake:$PATH" roost run -- only-here
        tr '\0' '\n' <"/proc/$(show MainPID)/environ" | grep -c "^PATH=$F/fake" || true
    "#;
    let Some(said) = lines(&home, script) else { return };
    assert!(said[1].contains("ends the daemon and its workers when you log out"), "{said:?}");
    assert!(said[2].contains("loginctl enable-linger"), "{said:?}");
    assert!(said[3].starts_with("linger") && said[3].contains("no"), "{said:?}");
    assert_eq!(said[4..], ["found", "0"]);
}

// B06.
#[test]
fn a_restart_of_the_unit_under_live_work_runs_nothing_twice() {
    let home = Home::new();
    let script = r#"
        roost service install >/dev/null
        eval "$(roost open --cap 1)"
        mkfifo "$F/up"
        roost spawn --name w1 -- sh -c 'echo start >>"$F/L"; echo up >"$F/up"; sleep 1000' >/dev/null
        roost spawn --name w2 -- sh -c 'echo go >>"$F/M"; echo R2' >/dev/null
        read line <"$F/up"
        systemctl --user restart roostd.service
        roost status --json | grep -o '"name":"w[12]"'
        roost result w2 --wait
        roost wait w1 || true
        wc -l <"$F/L"; wc -l <"$F/M"
        show OOMPolicy
    "#;
    let Some(said) = lines(&home, script) else { return };
    // A restart by the user is an order: what ran was stopped, and says so; what was queued goes on.
    assert_eq!(said, [r#""name":"w1""#, r#""name":"w2""#, "R2", "w1 stopped", "1", "1", "continue"]);
}

/// What the kernel lets a process do.
const RIGHTS: &str = "grep -E '^(NoNewPrivs|Seccomp|Seccomp_filters|Cap[A-Z][a-z]+):' /proc/self/status";

#[test]
fn a_worker_of_the_unit_may_do_what_a_plain_process_may() {
    let home = Home::new();
    let script = format!(
        r#"
        roost service install >/dev/null
        roost run -- {RIGHTS} | tee "$F/rights"
        # That it would be seen if the unit took something.
        roost daemon stop >/dev/null
        mkdir -p "$XDG_CONFIG_HOME/systemd/user/roostd.service.d"
        printf '[Service]\nNoNewPrivileges=yes\nSystemCallArchitectures=native\n' >"$XDG_CONFIG_HOME/systemd/user/roostd.service.d/test.conf"
        systemctl --user daemon-reload
        roost run -- {RIGHTS} | diff "$F/rights" - | sed -n 's/^> \([^:]*\):.*/\1/p'
    "#
    );
    let Some(said) = lines(&home, &script) else { return };
    let plain = home.sh(RIGHTS).run().ok();
    let plain: Vec<&str> = plain.text().lines().collect();
    assert!(plain.len() >= 7, "{plain:?}");
    assert_eq!(said[..plain.len()], plain);
    assert_eq!(said[plain.len()..][..2], ["NoNewPrivs", "Seccomp"], "{said:?}");
}

/// What filters system calls implies NoNewPrivileges in the manager of a user (systemd.exec), and a manager of root's does not show it.
#[test]
fn the_unit_takes_nothing_from_workers() {
    let unit = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/roostd.service")).unwrap();
    let implying = [
        "NoNewPrivileges",
        "SystemCall",
        "LockPersonality",
        "Restrict",
        "MemoryDenyWriteExecute",
        "Private",
        "Protect",
        "DynamicUser",
        "SecureBits",
        "CapabilityBoundingSet",
        "ReadOnlyPaths",
        "InaccessiblePaths",
    ];
    let taken: Vec<&str> = unit.lines().filter(|line| implying.iter().any(|word| line.starts_with(word))).collect();
    assert_eq!(taken, Vec::<&str>::new());
}
