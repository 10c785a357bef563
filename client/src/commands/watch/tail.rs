//! Follows files, the way `tail -f` does: a thread that sleeps in `poll` until a file grows or another one is wanted.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};

use roost::Error;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::inotify;

use super::{News, Tell};

/// How much of what is there already is read, from the end.
const BEFORE_MAX: u64 = 256 << 10;
/// How much is read at once.
const PIECE: usize = 64 << 10;

/// What came of the files of a request.
pub struct Piece {
    /// Which request.
    pub request: u64,
    /// Whether something before it was left out.
    pub cut: bool,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Why there are none and will be none.
    pub error: Option<String>,
}

struct Request {
    number: u64,
    paths: Vec<PathBuf>,
}

/// The thread's other end.
pub struct Tail {
    requests: Sender<Request>,
    wake: OwnedFd,
}

impl Tail {
    /// Starts the thread.
    pub fn start(news: Tell) -> Result<Self, Error> {
        let failed = |error: rustix::io::Errno| Error::io("cannot follow files")(error.into());
        let (woken, wake) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK).map_err(failed)?;
        let events = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).map_err(failed)?;
        let (requests, wanted) = mpsc::channel();
        std::thread::spawn(move || Follower { events, woken, wanted, news }.run());
        Ok(Self { requests, wake })
    }

    /// From now on these files, one after the other, in the place of those before.
    pub fn follow(&self, number: u64, paths: Vec<PathBuf>) {
        // A thread that is gone follows nothing, and its panic has ended us.
        self.requests.send(Request { number, paths }).ok();
        // A full pipe wakes it as well.
        rustix::io::write(&self.wake, b"x").ok();
    }
}

struct Follower {
    events: OwnedFd,
    woken: OwnedFd,
    wanted: Receiver<Request>,
    news: Tell,
}

/// The files of one request, as far as they were read.
struct Reading {
    request: u64,
    /// Those that were not opened yet, oldest first.
    paths: VecDeque<PathBuf>,
    file: Option<File>,
    watches: Vec<i32>,
}

impl Follower {
    fn run(self) {
        let mut reading: Option<Reading> = None;
        loop {
            let mut newest = None;
            loop {
                match self.wanted.try_recv() {
                    Ok(request) => newest = Some(request),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            if let Some(request) = newest {
                if let Some(old) = reading.take() {
                    self.unwatch(&old);
                }
                reading = self.begin(request);
            }
            if let Some(now) = &mut reading
                && let Err(error) = self.read_on(now)
            {
                self.say(now.request, Vec::new(), false, Some(error.to_string()));
                self.unwatch(now);
                reading = None;
            }
            self.rest();
        }
    }

    /// Skips what is too long ago.
    fn begin(&self, request: Request) -> Option<Reading> {
        let mut sizes: VecDeque<u64> = request.paths.iter().map(|path| path.metadata().map_or(0, |found| found.len())).collect();
        let mut skip = sizes.iter().sum::<u64>().saturating_sub(BEFORE_MAX);
        self.say(request.number, Vec::new(), skip > 0, None);
        let mut reading = Reading { request: request.number, paths: request.paths.into(), file: None, watches: Vec::new() };
        while reading.paths.len() > 1
            && let Some(size) = sizes.pop_front().filter(|size| skip >= *size)
        {
            skip -= size;
            reading.paths.pop_front();
        }
        if skip > 0 && self.open_next(&mut reading).is_ok() {
            reading.file.as_mut()?.seek(SeekFrom::Start(skip)).ok()?;
        }
        Some(reading)
    }

    /// Reads what there is. An older file is read to its end before the next: its process is gone by then.
    fn read_on(&self, reading: &mut Reading) -> io::Result<()> {
        loop {
            if let Some(file) = &mut reading.file {
                let mut bytes = vec![0; PIECE];
                let read = file.read(&mut bytes)?;
                if read > 0 {
                    bytes.truncate(read);
                    self.say(reading.request, bytes, false, None);
                    continue;
                }
            }
            if reading.paths.is_empty() {
                return Ok(());
            }
            match self.open_next(reading) {
                Ok(()) => {}
                // Its process is being started, or never was: then the next one is there.
                Err(error) if error.kind() == io::ErrorKind::NotFound && reading.paths.len() > 1 => drop(reading.paths.pop_front()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// The watch comes first, so that no growth falls in between; where there is no file yet its directory is watched.
    fn open_next(&self, reading: &mut Reading) -> io::Result<()> {
        let Some(path) = reading.paths.front() else { return Ok(()) };
        let (watched, flags) = if path.exists() {
            (path.as_path(), inotify::WatchFlags::MODIFY)
        } else {
            (path.parent().unwrap_or(Path::new("/")), inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO)
        };
        reading.watches.push(inotify::add_watch(&self.events, watched, flags)?);
        reading.file = Some(File::open(path)?);
        reading.paths.pop_front();
        Ok(())
    }

    fn unwatch(&self, reading: &Reading) {
        for watch in &reading.watches {
            // It may be gone with its file, or stand there twice.
            inotify::remove_watch(&self.events, *watch).ok();
        }
    }

    fn say(&self, request: u64, bytes: Vec<u8>, cut: bool, error: Option<String>) {
        self.news.tell(News::Piece(Piece { request, cut, bytes, error }));
    }

    fn rest(&self) {
        let mut ready = [PollFd::new(&self.events, PollFlags::IN), PollFd::new(&self.woken, PollFlags::IN)];
        // An interrupted sleep is one look more.
        rustix::event::poll(&mut ready, None).ok();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        while events.next().is_ok() {}
        let mut bytes = [0; 64];
        while rustix::io::read(&self.woken, &mut bytes).is_ok_and(|read| read > 0) {}
    }
}
