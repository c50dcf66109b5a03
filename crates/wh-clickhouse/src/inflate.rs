//! Decompressing zstd as it comes. Other encodings are not asked for.

use bytes::{Buf, Bytes, BytesMut};
use std::io;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Plain bytes given at once.
const PIECE: usize = 128 * 1024;

/// A decoder that is pushed into and pulled from.
pub(crate) struct Inflate {
    decoder: Decoder<'static>,
    waiting: Bytes,
    /// Whether the decoder may still hold output for what it has taken.
    more: bool,
    /// Whether the input so far ends where a frame ends.
    whole: bool,
}

impl Inflate {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { decoder: Decoder::new()?, waiting: Bytes::new(), more: false, whole: true })
    }

    /// Adds compressed bytes. Call only when [`next`](Self::next) has given nothing.
    pub(crate) fn push(&mut self, piece: Bytes) {
        debug_assert!(self.waiting.is_empty());
        self.waiting = piece;
    }

    /// The next plain bytes; empty when more input is needed.
    pub(crate) fn next(&mut self) -> io::Result<Bytes> {
        let mut plain = BytesMut::zeroed(0);
        while plain.is_empty() && (self.more || !self.waiting.is_empty()) {
            plain.resize(PIECE, 0);
            let mut input = InBuffer::around(&self.waiting);
            let mut output = OutBuffer::around(&mut plain[..]);
            let hint = self.decoder.run(&mut input, &mut output)?;
            let (taken, made) = (input.pos(), output.pos());
            self.waiting.advance(taken);
            plain.truncate(made);
            // 0: a frame has ended and is wholly given out
            self.whole = hint == 0;
            self.more = made == PIECE;
        }
        Ok(plain.freeze())
    }

    /// Whether the input ended where a frame ends.
    pub(crate) fn whole(&self) -> bool {
        self.whole && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inflate(packed: &[u8], piece: usize) -> io::Result<(Vec<u8>, bool)> {
        let (mut inflate, mut plain) = (Inflate::new()?, Vec::new());
        for piece in packed.chunks(piece) {
            inflate.push(Bytes::copy_from_slice(piece));
            loop {
                let out = inflate.next()?;
                if out.is_empty() {
                    break;
                }
                plain.extend_from_slice(&out);
            }
        }
        Ok((plain, inflate.whole()))
    }

    #[test]
    fn frames_are_unpacked_however_they_are_cut() {
        let text = b"0123456789abcdef".repeat(100_000);
        let packed = [zstd::bulk::compress(&text, 1).unwrap(), zstd::bulk::compress(b"end", 1).unwrap()].concat();
        let expected = [text.as_slice(), b"end"].concat();
        for piece in [1, 7, 1000, usize::MAX] {
            assert_eq!(inflate(&packed, piece).unwrap(), (expected.clone(), true), "{piece}");
        }
        assert!(!inflate(&packed[..packed.len() - 1], 9).unwrap().1, "cut");
        assert!(inflate(b"not zstd at all", 4).is_err());
        assert_eq!(inflate(b"", 4).unwrap(), (vec![], true));
    }
}
