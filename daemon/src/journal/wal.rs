//! A look at the write-ahead log before SQLite takes it for what it is.
//!
//! SQLite drops everything from the first frame that is not sound, without a word. For the transaction that a crash cut short this is
//! right, and told. In the middle it would silently drop what had been acknowledged: that is damage. Told apart by what follows: each
//! transaction is synced before the next one is written, so an unfinished one has at most its own commit frame after the bad frame.
//! This file reads only; it knows frames, not tables. Format: <https://www.sqlite.org/fileformat2.html#the_write_ahead_log>.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::error::{Fault, OpenError};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const PAGE_MIN: u64 = 512;

/// What there is to say about this log, if anything. Reading it is safe: SQLite's locks lie on the other file.
pub(super) fn inspect(path: &Path) -> Result<Option<String>, Fault> {
    let failed = |source| Fault::Refused(OpenError::Io { path: path.to_owned(), doing: "reading", source });
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let size = file.metadata().map_err(failed)?.len();
    let found = scan(BufReader::with_capacity(1 << 16, file), size).map_err(failed)?;
    match found {
        Found::Sound => Ok(None),
        Found::TornTail => Ok(Some("the last transaction had not been finished when the daemon ended; it was cut off".to_owned())),
        Found::Damaged(what) => Err(Fault::Damage(format!("its write-ahead log: {what}"))),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    Sound,
    TornTail,
    Damaged(&'static str),
}

fn scan(mut log: impl Read, size: u64) -> io::Result<Found> {
    let mut header = [0; HEADER];
    if !fill(&mut log, &mut header)? {
        return Ok(if size == 0 { Found::Sound } else { Found::TornTail });
    }
    let Some((mut sum, page_bytes)) = begin(&header) else {
        // It is synced before the first frame is written.
        let has_a_frame = size >= HEADER as u64 + FRAME_HEADER as u64 + PAGE_MIN;
        return Ok(if has_a_frame { Found::Damaged("its header is not sound") } else { Found::TornTail });
    };
    let salt = &header[16..24];
    let mut frame = vec![0; FRAME_HEADER + page_bytes];
    let (mut sound, mut open_frames, mut stray_frames, mut stray_commits) = (true, 0_u32, 0_u32, 0_u32);
    while fill(&mut log, &mut frame)? {
        if frame[8..16] != *salt {
            // Left over from before the log was begun anew.
            sound = false;
            continue;
        }
        let commits = word(&frame, 4, false) != 0;
        if sound {
            let (head, page) = frame.split_at(FRAME_HEADER);
            sum.add(&head[..8]);
            sum.add(page);
            sound = sum.is(&head[16..24]);
        }
        match (sound, commits) {
            (true, true) => open_frames = 0,
            (true, false) => open_frames += 1,
            (false, true) => stray_commits += 1,
            (false, false) => stray_frames += 1,
        }
    }
    Ok(if stray_commits >= 2 {
        Found::Damaged("a transaction that others followed is not sound")
    } else if stray_commits + stray_frames + open_frames > 0 {
        Found::TornTail
    } else {
        Found::Sound
    })
}

/// The running checksum after a sound header, and the size of a page.
fn begin(header: &[u8; HEADER]) -> Option<(Sum, usize)> {
    let big_endian = match word(header, 0, false) {
        0x377F_0682 => false,
        0x377F_0683 => true,
        _ => return None,
    };
    let page_bytes = word(header, 8, false);
    let mut sum = Sum { first: 0, second: 0, big_endian };
    sum.add(&header[..24]);
    let is_sound = sum.is(&header[24..]) && page_bytes.is_power_of_two() && (512..=65_536).contains(&page_bytes);
    is_sound.then_some((sum, page_bytes as usize))
}

/// SQLite's checksum: over all frames so far, of words in the byte order of the machine that wrote them.
struct Sum {
    first: u32,
    second: u32,
    big_endian: bool,
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for at in (0..bytes.len()).step_by(8) {
            self.first = self.first.wrapping_add(word(bytes, at, !self.big_endian)).wrapping_add(self.second);
            self.second = self.second.wrapping_add(word(bytes, at + 4, !self.big_endian)).wrapping_add(self.first);
        }
    }

    fn is(&self, stored: &[u8]) -> bool {
        word(stored, 0, false) == self.first && word(stored, 4, false) == self.second
    }
}

fn word(bytes: &[u8], at: usize, little_endian: bool) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    if little_endian { u32::from_le_bytes(word) } else { u32::from_be_bytes(word) }
}

/// Whether there was as much as this.
fn fill(log: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
