//! CRC-32 (the one of zip and Ethernet) over the columns of a row. Against accidents, not against people.

/// A checksum being computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crc(u32);

impl Crc {
    pub(super) const fn new() -> Self {
        Self(!0)
    }

    pub(super) fn bytes(self, bytes: &[u8]) -> Self {
        Self(bytes.iter().fold(self.0, |crc, byte| TABLE[usize::from((crc as u8) ^ byte)] ^ (crc >> 8)))
    }

    pub(super) fn number(self, number: u64) -> Self {
        self.bytes(&number.to_le_bytes())
    }

    pub(super) const fn value(self) -> u32 {
        !self.0
    }
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value() {
        assert_eq!(Crc::new().bytes(b"123456789").value(), 0xCBF4_3926);
        assert_eq!(Crc::new().bytes(b"1234").bytes(b"56789").value(), 0xCBF4_3926);
    }
}
