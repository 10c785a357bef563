//! The other side: what the machine can do at best, measured in the same run and on the same file system.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use crate::daemon::{self, Client, NO_OP, log_bytes, stamps, task};
use crate::plan::Plan;
use crate::played::{now, own};

/// Seconds of raw spawning: so many, so many at a time.
pub fn raw_seconds(count: usize, width: usize, argv: &[&str]) -> f64 {
    run(&["play-raw", &count.to_string(), &width.to_string()], argv).0
}

/// From the last word of one process to the first of the next, in seconds, when each is started as soon as the one before is reaped.
pub fn raw_gaps(count: usize) -> Vec<f64> {
    let own = own();
    let (_, said) = run(&["play-raw", &count.to_string(), "1"], &[&own, "play-stamp"]);
    gaps(said.lines().map(stamps))
}

/// From the end of each to the beginning of the next, in seconds.
pub fn gaps(stamps: impl Iterator<Item = (u64, u64)>) -> Vec<f64> {
    let stamps: Vec<_> = stamps.collect();
    stamps.windows(2).map(|pair| seconds(pair[0].1, pair[1].0)).collect()
}

/// From one moment to another.
pub fn seconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1e9
}

/// Seconds from the first signal to the last end, of so many processes that run this.
pub fn raw_stop_seconds(count: usize, argv: &[&str], is_up: impl FnOnce(u32)) -> f64 {
    let mut child = player(&["play-raw-stop", &count.to_string()], argv).stdin(Stdio::piped()).spawn().expect("our own program");
    is_up(child.id());
    child.stdin.take().expect("a pipe").write_all(b"!").expect("a listener");
    finish(child).0
}

fn run(role: &[&str], argv: &[&str]) -> (f64, String) {
    finish(player(role, argv).stdin(Stdio::null()).spawn().expect("our own program"))
}

fn player(role: &[&str], argv: &[&str]) -> Command {
    let mut command = Command::new(own());
    command.args(role).args(argv).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn finish(mut child: Child) -> (f64, String) {
    let mut said = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
    let mut took = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut took).expect("text");
    assert!(child.wait().expect("our own child").success(), "{took}");
    (took.trim().parse::<f64>().unwrap_or_else(|_| panic!("no time: {took}")) / 1e9, said)
}

/// What a launch call is made of, beside the daemon.
pub struct CallSizes {
    pub request: usize,
    pub reply: usize,
    pub commit: usize,
}

impl CallSizes {
    /// Of launch calls of one task.
    pub fn measure(plan: &Plan) -> Self {
        const CALLS: usize = 20;
        let home = daemon::daemon(plan);
        let tree = daemon::tree(&home, 8);
        let mut client = Client::new(&tree);
        client.pause(true);
        client.launch(&[task(&[NO_OP])]);
        let before = log_bytes(&home);
        let mut reply = 0;
        for _ in 0..CALLS {
            reply = client.launch(&[task(&[NO_OP])]).to_string().len();
        }
        let commit = usize::try_from(log_bytes(&home) - before).expect("a small log") / CALLS;
        let request = client.launching(&[task(&[NO_OP])]).to_string().len();
        // The envelopes around both.
        Self { request: request + 64, reply: reply + 48, commit: commit.max(1) }
    }
}

/// One round trip over a socket and one synced write, of the sizes of a call and its commit.
pub struct BareCall {
    file: File,
    bytes: Vec<u8>,
    at: u64,
    near: BufReader<UnixStream>,
    request: Vec<u8>,
    line: Vec<u8>,
    echo: Option<JoinHandle<()>>,
}

/// How long the file becomes before it is written from its beginning again, like a write-ahead log.
const FILE_BYTES: u64 = 8 << 20;

impl BareCall {
    pub fn new(below: &Path, sizes: &CallSizes) -> Self {
        let path = below.join(format!("roost-bench-{}", std::process::id()));
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path).expect("a file");
        // Nobody else needs its name.
        std::fs::remove_file(&path).expect("our own file");
        file.write_all_at(&vec![0; usize::try_from(FILE_BYTES).expect("small")], 0).and_then(|()| file.sync_all()).expect("room");
        let (near, far) = UnixStream::pair().expect("a pair");
        let reply = line(sizes.reply);
        let echo = std::thread::spawn(move || {
            let mut far = BufReader::new(far);
            let mut request = Vec::new();
            while far.read_until(b'\n', &mut request).is_ok_and(|read| read > 0) {
                request.clear();
                far.get_mut().write_all(&reply).expect("a reader");
            }
        });
        let bytes = vec![b'x'; sizes.commit];
        Self { file, bytes, at: 0, near: BufReader::new(near), request: line(sizes.request), line: Vec::new(), echo: Some(echo) }
    }

    /// Seconds of one synced write.
    pub fn commit(&mut self) -> f64 {
        let begun = now();
        if self.at + self.bytes.len() as u64 > FILE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(&self.bytes, self.at).and_then(|()| self.file.sync_data()).expect("a disk");
        self.at += self.bytes.len() as u64;
        seconds(begun, now())
    }

    /// Seconds of one round trip and one synced write.
    pub fn call(&mut self) -> f64 {
        let begun = now();
        self.near.get_mut().write_all(&self.request).expect("a reader");
        self.line.clear();
        self.near.read_until(b'\n', &mut self.line).expect("a reply");
        let trip = seconds(begun, now());
        trip + self.commit()
    }
}

impl Drop for BareCall {
    fn drop(&mut self) {
        self.near.get_ref().shutdown(std::net::Shutdown::Both).expect("our own socket");
        self.echo.take().map(JoinHandle::join);
    }
}

fn line(length: usize) -> Vec<u8> {
    let mut line = vec![b'x'; length];
    line.push(b'\n');
    line
}
