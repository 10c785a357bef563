//! The one row that says how far the journal goes. Written with every batch: without it a lost last page would look like an earlier end.

use rusqlite::{Connection, OptionalExtension, params};

use super::batch::ClockMark;
use super::crc::Crc;
use super::error::Fault;

/// How far the journal goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Head {
    /// The last record, 0 before the first.
    pub(super) last_seq: u64,
    /// The clock, once it was given.
    pub(super) clock: Option<ClockMark>,
}

impl Head {
    /// Takes a clock mark in, and never goes back by it.
    pub(super) fn set_clock(&mut self, mark: &ClockMark) {
        let before = self.clock.as_ref().map_or(0, |clock| clock.mono_ms);
        self.clock = Some(ClockMark { mono_ms: mark.mono_ms.max(before), ..mark.clone() });
    }

    /// A record was written at this time.
    pub(super) fn saw(&mut self, mono_ms: u64) {
        if let Some(clock) = &mut self.clock {
            clock.mono_ms = clock.mono_ms.max(mono_ms);
        }
    }

    fn crc(&self) -> u32 {
        let crc = Crc::new().number(self.last_seq);
        match &self.clock {
            None => crc.value(),
            Some(clock) => crc.bytes(clock.boot_id.as_bytes()).number(clock.mono_ms).number(clock.offset_ms.cast_unsigned()).value(),
        }
    }
}

pub(super) fn write(connection: &Connection, head: &Head) -> rusqlite::Result<()> {
    let clock = head.clock.as_ref();
    connection
        .prepare_cached(
            "INSERT INTO head(id, last_seq, boot_id, mono_ms, offset_ms, crc) VALUES (1, ?1, ?2, ?3, ?4, ?5)
             ON CONFLICT(id) DO UPDATE SET last_seq = excluded.last_seq, boot_id = excluded.boot_id, mono_ms = excluded.mono_ms,
                                           offset_ms = excluded.offset_ms, crc = excluded.crc",
        )?
        .execute(params![
            head.last_seq.cast_signed(),
            clock.map(|clock| clock.boot_id.as_str()),
            clock.map(|clock| clock.mono_ms.cast_signed()),
            clock.map(|clock| clock.offset_ms),
            head.crc(),
        ])?;
    Ok(())
}

pub(super) fn read(connection: &Connection) -> Result<Head, Fault> {
    let row = connection
        .query_row("SELECT last_seq, boot_id, mono_ms, offset_ms, crc FROM head WHERE id = 1", (), |row| {
            let boot_id: Option<String> = row.get(1)?;
            let mono_ms: Option<i64> = row.get(2)?;
            let offset_ms: Option<i64> = row.get(3)?;
            let clock = match (boot_id, mono_ms, offset_ms) {
                (Some(boot_id), Some(mono_ms), Some(offset_ms)) => Some(ClockMark { boot_id, mono_ms: mono_ms.cast_unsigned(), offset_ms }),
                (_, _, _) => None,
            };
            Ok((Head { last_seq: row.get::<_, i64>(0)?.cast_unsigned(), clock }, row.get::<_, u32>(4)?))
        })
        .optional()?;
    match row {
        None => Err(Fault::Damage("the row that says where it ends is missing".to_owned())),
        Some((head, crc)) if head.crc() == crc => Ok(head),
        Some(_) => Err(Fault::Damage("the row that says where it ends does not match its checksum".to_owned())),
    }
}
