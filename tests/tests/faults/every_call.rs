//! A broker that dies at its n-th write, sync, accept or message, for every n of a short life: nested workers that call the client
//! library see a pause, and their tree comes to what it comes to without a death.
//!
//! CI takes some of them; `ROOST_EVERY_CALL=1` takes all.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use roost_tests::real::{Home, shim};

/// Kills the broker before (even) or after (odd) its (n / 2)-th call, once in the life of a home.
const DEATH: &str = r#"#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
static long nth = -1;
static long count;
__attribute__((constructor)) static void begin(void) {
    char line[512] = {0};
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t length = read(fd, line, sizeof line - 1);
    close(fd);
    if (length <= 0 || strcmp(line + strlen(line) + 1, "broker") || !getenv("NTH")) return;
    nth = atol(getenv("NTH"));
}
static void die(long at) {
    if (at != nth) return;
    int once = open(getenv("HIT"), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (once >= 0) raise(SIGKILL);
    nth = -1;
}
#define AROUND(call) do { \
    long point = nth < 0 ? -2 : 2 * __atomic_fetch_add(&count, 1, __ATOMIC_SEQ_CST); \
    if (point >= 0) die(point); \
    typeof(call) done = call; \
    int saved = errno; \
    if (point >= 0) die(point + 1); \
    errno = saved; \
    return done; \
} while (0)
#define REAL(name) static typeof(&name) real; if (!real) real = (typeof(&name))dlsym(RTLD_NEXT, #name)
int fsync(int fd) { REAL(fsync); AROUND(real(fd)); }
int fdatasync(int fd) { REAL(fdatasync); AROUND(real(fd)); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); AROUND(real(fd, size)); }
ssize_t write(int fd, const void *from, size_t size) { REAL(write); AROUND(real(fd, from, size)); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) { REAL(pwrite64); AROUND(real(fd, from, size, at)); }
ssize_t writev(int fd, const struct iovec *from, int size) { REAL(writev); AROUND(real(fd, from, size)); }
ssize_t send(int fd, const void *from, size_t size, int flags) { REAL(send); AROUND(real(fd, from, size, flags)); }
ssize_t sendmsg(int fd, const struct msghdr *from, int flags) { REAL(sendmsg); AROUND(real(fd, from, flags)); }
ssize_t recv(int fd, void *into, size_t size, int flags) { REAL(recv); AROUND(real(fd, into, size, flags)); }
int accept4(int fd, struct sockaddr *from, socklen_t *size, int flags) { REAL(accept4); AROUND(real(fd, from, size, flags)); }
"#;

/// Seven directories, three levels, and what counting them prints.
fn grow(home: &Home) -> (PathBuf, String) {
    let top = home.file("top");
    for directory in ["", "a", "a/b", "a/c", "d", "d/e", "d/f"] {
        std::fs::create_dir_all(top.join(directory)).unwrap();
        std::fs::write(top.join(directory).join("file"), "line\n").unwrap();
    }
    let largest = top.join("a/b/file");
    let text = format!("files 7\nlines 7\nbytes 35\nlargest {}\n", largest.display());
    (top, text)
}

/// One life with a death at this point. Says whether it came to it.
fn with_death_at(n: usize, shim: &Path) -> bool {
    let home = Home::in_memory();
    let (top, expected) = grow(&home);
    let daemon = home.command(home.program("roostd")).arg("--detach").env("LD_PRELOAD", shim).env("NTH", n.to_string());
    daemon.env("HIT", home.file("hit")).run().ok();
    let done = home.roost(["run", "--cap", "2", "--budget", "100", "--"]).arg(home.program("examples/tally")).arg(&top).run();
    let complaints = || {
        let entries = std::fs::read_dir(home.state_dir().join("executions")).unwrap().flatten();
        let errors = entries.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "err"));
        errors.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect::<String>()
    };
    assert!(done.code() == 0 && done.text() == expected, "{n}: {done}\n{}", complaints());
    assert!(home.workers().is_empty(), "{n}: {:?}", home.workers());
    home.file("hit").exists()
}

#[test]
fn a_broker_that_dies_at_any_call_is_a_pause_to_nested_workers() {
    let home = Home::new();
    let shim = shim(&home, "death", DEATH);
    let step = if std::env::var_os("ROOST_EVERY_CALL").is_some() { 1 } else { 7 };
    let (next, last) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                loop {
                    let n = next.fetch_add(step, Ordering::Relaxed);
                    if n > last.load(Ordering::Relaxed) {
                        return;
                    }
                    if !with_death_at(n, &shim) {
                        last.fetch_min(n, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let last = last.into_inner();
    eprintln!("{} of {last} points", last.div_ceil(step));
    assert!(last > 300, "only {last} points in a life: the shim is not in their way");
}
