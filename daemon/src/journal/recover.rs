//! Reading back: the newest sound snapshot and every record after it, each one checked. It reads nothing older than that snapshot.

use roost_core::event::{Event, Record};
use roost_core::time::{Mono, Now};
use rusqlite::{Connection, OptionalExtension, Row};

use super::batch::Snapshot;
use super::crc::Crc;
use super::error::{Fault, Meaning, meaning};
use super::head::{self, Head};

/// What was read.
pub(super) struct Found {
    pub(super) head: Head,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) records: Vec<Record>,
}

pub(super) fn recover(connection: &Connection, notes: &mut Vec<String>) -> Result<Found, Fault> {
    let head = head::read(connection)?;
    let numbers: Vec<i64> =
        connection.prepare("SELECT seq FROM snapshots ORDER BY seq DESC")?.query_map((), |row| row.get(0))?.collect::<Result<_, _>>()?;
    for seq in numbers {
        match snapshot(connection, seq)? {
            Ok(snapshot) => {
                let records = records_after(connection, snapshot.seq, head.last_seq)?;
                return Ok(Found { head, snapshot: Some(snapshot), records });
            }
            // What the one before and the records after it say together is the same, only more to read.
            Err(what) => notes.push(format!("the snapshot of record {seq} is damaged ({what}); an earlier one is used")),
        }
    }
    let records = records_after(connection, 0, head.last_seq)?;
    Ok(Found { head, snapshot: None, records })
}

fn snapshot(connection: &Connection, seq: i64) -> Result<Result<Snapshot, String>, Fault> {
    let row = connection
        .query_row("SELECT bytes, crc FROM snapshots WHERE seq = ?1", [seq], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, u32>(1)?)))
        .optional();
    match row {
        Ok(Some((bytes, crc))) if snapshot_crc(seq.cast_unsigned(), &bytes) == crc => Ok(Ok(Snapshot { seq: seq.cast_unsigned(), bytes })),
        Ok(Some(_)) => Ok(Err("its checksum does not match".to_owned())),
        Ok(None) => Ok(Err("it is listed, but not there".to_owned())),
        Err(error) if meaning(&error) == Meaning::Damage => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

fn records_after(connection: &Connection, seq: u64, last_seq: u64) -> Result<Vec<Record>, Fault> {
    let mut statement = connection.prepare("SELECT seq, mono_ms, wall_ms, body, crc FROM events WHERE seq > ?1 ORDER BY seq")?;
    let mut rows = statement.query([seq.cast_signed()])?;
    let mut records = Vec::new();
    let mut next = seq + 1;
    while let Some(row) = rows.next()? {
        let record = record(row)?.map_err(|what| Fault::Damage(format!("record {next}: {what}")))?;
        if record.seq != next {
            return Err(Fault::Damage(format!("record {next} is missing, {} is there", record.seq)));
        }
        records.push(record);
        next += 1;
    }
    if next != last_seq.wrapping_add(1) {
        return Err(Fault::Damage(format!("it ends at record {}, but {last_seq} was written", next - 1)));
    }
    Ok(records)
}

fn record(row: &Row<'_>) -> Result<Result<Record, String>, Fault> {
    let number = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let (seq, mono_ms, wall_ms) = (number(0)?, number(1)?, number(2)?);
    let body = row.get_ref(3)?.as_bytes().map_err(|error| Fault::Damage(format!("record {seq}: {error}")))?;
    if record_crc(seq, mono_ms, wall_ms, body) != row.get::<_, u32>(4)? {
        return Ok(Err("its checksum does not match".to_owned()));
    }
    // The checksum holds, so this is a build that does not know what another one wrote, not a broken disk.
    Ok(serde_json::from_slice::<Event>(body)
        .map(|event| Record { seq, at: Now { mono: Mono(mono_ms), wall_ms }, event })
        .map_err(|error| format!("this roostd does not understand it ({error})")))
}

pub(super) fn record_crc(seq: u64, mono_ms: u64, wall_ms: u64, body: &[u8]) -> u32 {
    Crc::new().number(seq).number(mono_ms).number(wall_ms).bytes(body).value()
}

pub(super) fn snapshot_crc(seq: u64, bytes: &[u8]) -> u32 {
    Crc::new().number(seq).bytes(bytes).value()
}
