//! The system calls that have no safe wrapper, each with the reason why it is sound: `posix_spawn` and a few one-liners.
//!
//! `posix_spawn` and never `fork`: a hook between fork and exec costs as much as the supervisor is large. This file does not
//! know what a worker is; `start.rs` does.

use std::ffi::{CStr, CString, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::ptr;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

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

/// A `dup2` onto a number must not overwrite a descriptor that a later one still copies from.
fn out_of_the_way(descriptors: &[(BorrowedFd<'_>, RawFd)]) -> io::Result<Vec<OwnedFd>> {
    let above = descriptors.iter().map(|(_, target)| target + 1).max().unwrap_or(3).max(3);
    descriptors.iter().map(|(source, _)| Ok(fcntl_dupfd_cloexec(source, above)?)).collect()
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
