//! Deterministic damage: the same seed does the same to the same bytes.

use roost_tests::sim::rng::Rng;

/// A source of numbers and what it does to bytes.
pub struct Mutator(Rng);

impl Mutator {
    pub fn new(seed: u64) -> Self {
        Self(Rng::of(seed, "mutations"))
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound.max(1) as u64)).unwrap()
    }

    /// A place and a bit.
    pub fn bit(&mut self, bytes: usize) -> (usize, u8) {
        (self.below(bytes), 1 << self.below(8))
    }

    /// One to four changes; `other` is another file of the corpus.
    pub fn mutate(&mut self, bytes: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.below(4) {
            self.change(&mut bytes, other);
        }
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>, other: &[u8]) {
        const LIVELY: [&[u8]; 16] = [
            b"\n",
            b"\r\n",
            b"\0",
            b"\"",
            b"\\",
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b"\xff\xfe",
            b"\x1b[2J",
            b"\\u0007",
            b"\\ud83d",
            b"-1e999",
            b"18446744073709551616",
        ];
        let at = self.below(bytes.len() + 1);
        let length = self.below(64).min(bytes.len() - at);
        match self.below(8) {
            0 | 1 if !bytes.is_empty() => {
                let (at, bit) = self.bit(bytes.len());
                bytes[at] ^= bit;
            }
            2 if !bytes.is_empty() => {
                let at = self.below(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'\n', b'"', b' '][self.below(8)];
            }
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let again = bytes[at..at + length].to_vec();
                bytes.splice(at..at, again);
            }
            5 => bytes.truncate(at),
            6 => {
                let from = self.below(other.len() + 1);
                let length = self.below(256).min(other.len() - from);
                bytes.splice(at..at, other[from..from + length].iter().copied());
            }
            _ => drop(bytes.splice(at..at, LIVELY[self.below(LIVELY.len())].iter().copied())),
        }
    }
}
