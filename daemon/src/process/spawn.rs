//! The system calls that have no safe wrapper, each with the reason why it is sound: `posix_spawn` and a few one-liners.
//!
//! `posix_spawn` where it can do what is needed: a fork costs as much as the supervisor is large. It cannot put a process into a
//! cgroup (glibc before 2.39), so for that there is `clone3`, without any hook. This file does not know what a worker is;
//! `start.rs` does.

use std::ffi::{CStr, CString, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::ptr;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, WaitOptions, waitpid};

/// One process to start. It gets its own session, an empty signal mask, default dispositions, and only these descriptors.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The file to execute.
    pub program: &'a CStr,
    /// Its arguments, its name first.
    pub argv: &'a [CString],
    /// Its environment, `NAME=value`.
    pub env: &'a [CString],
    /// Its working directory.
    pub cwd: &'a CStr,
    /// Our descriptors, and the number each has in the child.
    pub descriptors: &'a [(BorrowedFd<'a>, RawFd)],
}

/// Starts it. The error is the kernel's: which of the parts was at fault is for the caller to find out.
pub fn launch(launch: &Launch<'_>) -> io::Result<u32> {
    let sources = out_of_the_way(launch.descriptors)?;
    let mut actions = Actions::new()?;
    actions.chdir(launch.cwd)?;
    for (source, (_, target)) in sources.iter().zip(launch.descriptors) {
        actions.dup2(source.as_raw_fd(), *target)?;
    }
    let attributes = Attributes::new()?;
    let argv = pointers(launch.argv);
    let env = pointers(launch.env);
    let mut pid = 0;
    // SAFETY: all pointers are to initialised objects that outlive the call; `argv` and `env` are null-terminated arrays of
    // NUL-terminated strings that the call does not write to.
    let error = unsafe {
        libc::posix_spawn(&mut pid, launch.program.as_ptr(), &actions.0, &attributes.0, argv.as_ptr().cast(), env.as_ptr().cast())
    };
    check(error)?;
    u32::try_from(pid).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Starts it inside of a cgroup, from its first instruction on. The outer error is that of getting there: nothing was started,
/// and [`launch`] may do without. The inner one is as in `launch`.
pub fn launch_into(cgroup: BorrowedFd<'_>, launch: &Launch<'_>) -> io::Result<io::Result<u32>> {
    let sources = out_of_the_way(launch.descriptors)?;
    let moves: Vec<_> = sources.iter().zip(launch.descriptors).map(|(source, (_, target))| (source.as_raw_fd(), *target)).collect();
    let (argv, env) = (pointers(launch.argv), pointers(launch.env));
    // The child's error, or its end when the program begins.
    let (read, near) = pipe_with(PipeFlags::CLOEXEC)?;
    let write = fcntl_dupfd_cloexec(&near, first_free(launch.descriptors))?;
    drop(near);
    let arguments = CloneArguments {
        flags: CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        cgroup: u64::from(cgroup.as_raw_fd().unsigned_abs()),
        ..CloneArguments::default()
    };
    // SAFETY: the structure is as long as is said, and its empty fields ask for nothing. Without CLONE_VM this is a fork: the
    // child has a copy of our memory, and `become_program` only reads what was made above, whatever other threads did.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, ptr::from_ref(&arguments), size_of::<CloneArguments>()) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if pid == 0 {
        // SAFETY: we are the child of a fork; the arrays are null-terminated, their strings and the paths NUL-terminated.
        unsafe { become_program(launch, &moves, argv.as_ptr(), env.as_ptr(), write.as_raw_fd()) }
    }
    drop(write);
    let mut error = [0; 4];
    if File::from(read).read_exact(&mut error).is_err() {
        return Ok(u32::try_from(pid).map_err(io::Error::other));
    }
    // It never was a worker: nobody else is to hear of its end.
    let child = i32::try_from(pid).ok().and_then(Pid::from_raw);
    while matches!(waitpid(child, WaitOptions::empty()), Err(rustix::io::Errno::INTR)) {}
    Ok(Err(io::Error::from_raw_os_error(i32::from_ne_bytes(error))))
}

const CLONE_CLEAR_SIGHAND: u64 = 1 << 32;
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// `struct clone_args` of the kernel, as long as `cgroup` needs it.
#[repr(C, align(8))]
#[derive(Default)]
struct CloneArguments {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// What `posix_spawn` does in the child: session, mask, dispositions, directory, descriptors, program. Says what failed.
///
/// # Safety
///
/// For the child of a fork alone. It takes no lock and allocates nothing: system calls only. `argv` and `env` must be
/// null-terminated arrays of strings.
unsafe fn become_program(
    launch: &Launch<'_>,
    moves: &[(RawFd, RawFd)],
    argv: *const *const libc::c_char,
    env: *const *const libc::c_char,
    tell: RawFd,
) -> ! {
    // SAFETY: each call gets live, initialised memory of the size that it reads; nothing is written to. An all-zero
    // `struct sigaction` of the kernel (four words at most) is SIG_DFL, and all-zero sets are empty. The calls by number are
    // those that glibc would not do for its own two signals.
    unsafe {
        let zeros = [0_u64; 4];
        for signal in 1..=SIGNALS {
            // KILL and STOP refuse, and have no other disposition.
            libc::syscall(libc::SYS_rt_sigaction, signal, zeros.as_ptr(), ptr::null_mut::<u64>(), SIGNALS / 8);
        }
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, zeros.as_ptr(), ptr::null_mut::<u64>(), SIGNALS / 8);
        let done = libc::setsid() >= 0
            && libc::chdir(launch.cwd.as_ptr()) == 0
            && moves.iter().all(|(source, target)| libc::dup2(*source, *target) >= 0);
        if done {
            libc::execve(launch.program.as_ptr(), argv, env);
        }
        let error = (*libc::__errno_location()).to_ne_bytes();
        libc::write(tell, error.as_ptr().cast(), error.len());
        libc::_exit(127)
    }
}

/// How many signals there are; their sets have a bit for each. (More on MIPS.)
const SIGNALS: usize = 64;

/// A `dup2` onto a number must not overwrite a descriptor that a later one still copies from.
fn out_of_the_way(descriptors: &[(BorrowedFd<'_>, RawFd)]) -> io::Result<Vec<OwnedFd>> {
    let above = first_free(descriptors);
    descriptors.iter().map(|(source, _)| Ok(fcntl_dupfd_cloexec(source, above)?)).collect()
}

/// The first number that is nobody's target, nor a standard descriptor.
fn first_free(descriptors: &[(BorrowedFd<'_>, RawFd)]) -> RawFd {
    descriptors.iter().map(|(_, target)| target + 1).max().unwrap_or(3).max(3)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

fn check(error: libc::c_int) -> io::Result<()> {
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the call initialises what it points to, and that is read only when it says so.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        // SAFETY: initialised just above.
        Ok(Self(unsafe { actions.assume_init() }))
    }

    fn chdir(&mut self, path: &CStr) -> io::Result<()> {
        // SAFETY: initialised by `new`; the path is NUL-terminated and is copied by the call.
        check(unsafe { libc::posix_spawn_file_actions_addchdir_np(&mut self.0, path.as_ptr()) })
    }

    fn dup2(&mut self, source: RawFd, target: RawFd) -> io::Result<()> {
        // SAFETY: initialised by `new`; the numbers are only used in the child.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, source, target) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the call initialises what it points to, and that is read only when it says so.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialised just above.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let flags = libc::POSIX_SPAWN_SETSID as i32 | libc::POSIX_SPAWN_SETSIGMASK | libc::POSIX_SPAWN_SETSIGDEF;
        let flags = libc::c_short::try_from(flags).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
        // SAFETY: a `sigset_t` is an array of integers: all zeros is the empty set, all ones the full one. `sigfillset` would
        // leave out the two signals that glibc keeps for itself, and glibc then hands them on as ignored.
        let (none, all) = unsafe {
            let none: libc::sigset_t = std::mem::zeroed();
            let mut all = none;
            ptr::write_bytes(&mut all, 0xff, 1);
            (none, all)
        };
        // SAFETY: all three only write to the initialised attributes and read the sets.
        unsafe {
            check(libc::posix_spawnattr_setflags(&mut attributes.0, flags))?;
            check(libc::posix_spawnattr_setsigmask(&mut attributes.0, &none))?;
            check(libc::posix_spawnattr_setsigdefault(&mut attributes.0, &all))?;
        }
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: initialised by `new`, destroyed once.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

/// Marks every descriptor from 3 on close-on-exec, whoever left it open: no child of ours inherits one by accident.
pub fn seal_descriptors() -> io::Result<()> {
    // SAFETY: the call only sets a flag on open descriptors.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Empties the signal mask of this thread: a starter that blocked SIGTERM or SIGCHLD must not make us deaf.
pub fn unblock_signals() -> io::Result<()> {
    // SAFETY: all zeros is the empty set; the call reads it and no old mask is asked for.
    let result = unsafe {
        let none: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, ptr::null_mut())
    };
    check(result)
}

/// Takes over a descriptor that our starter passed by its number. To be called once for each number.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: nothing else in this process owns a number that our starter chose; that it is open is checked next, before
    // anyone can use it.
    let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
    match fcntl_setfd(&descriptor, FdFlags::CLOEXEC) {
        Ok(()) => Ok(descriptor),
        Err(error) => {
            // It is not open, so it must not be closed either.
            std::mem::forget(descriptor);
            Err(error.into())
        }
    }
}

/// Points a standard descriptor (0, 1 or 2) of ours at another file.
pub fn redirect(source: impl AsFd, target: RawFd) -> io::Result<()> {
    // SAFETY: only descriptors 0 to 2 are named by callers, and nobody owns those in the sense of `OwnedFd`.
    if unsafe { libc::dup2(source.as_fd().as_raw_fd(), target) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Becomes the same program again with another environment: `/proc/PID/environ` shows the one of the last exec for ever.
pub fn reexec(program: &Path, args: &[OsString], env: &[(OsString, OsString)]) -> io::Error {
    std::process::Command::new(program).args(args).env_clear().envs(env.iter().map(|(name, value)| (name, value))).exec()
}

/// The home directory in the user's passwd entry.
pub fn passwd_home(uid: u32) -> Option<PathBuf> {
    let mut buffer = vec![0_u8; 16 << 10];
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut found = ptr::null_mut();
    // SAFETY: entry, buffer (with its length) and result pointer are valid for writes during the call.
    let error = unsafe { libc::getpwuid_r(uid, entry.as_mut_ptr(), buffer.as_mut_ptr().cast(), buffer.len(), &mut found) };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: success and a result: the entry is initialised and its strings lie, NUL-terminated, in `buffer`.
    let home = unsafe {
        let directory = (*found).pw_dir;
        if directory.is_null() { None } else { Some(CStr::from_ptr(directory).to_bytes().to_vec()) }
    }?;
    if home.is_empty() { None } else { Some(PathBuf::from(OsString::from_vec(home))) }
}
