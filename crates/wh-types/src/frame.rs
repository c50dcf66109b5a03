//! Compressing and reading a block's body: one frame of NDJSON. Knows nothing of JSON.

use crate::Encoding;
use bytes::{Buf, Bytes};
use std::{
    cell::RefCell,
    io::{self, Read, Write},
};
use zstd::bulk::Compressor;

/// On JSON a higher level saves a tenth of the bytes for twice the time.
const LEVEL: i32 = 1;

thread_local! {
    /// A compressor takes longer to make than a small block to compress: 25 µs against 3. One is some 600 KB.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// Below this many bytes compressing costs more than it saves: the bytes are stored inside the frame.
const STORE_BELOW: usize = 256;

/// A body could not be read, or is larger than it may be.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The bytes are no frame of that encoding.
    #[error("the body is no valid {encoding} frame")]
    Broken {
        /// What it was said to be.
        encoding: &'static str,
        /// What the decoder said.
        source: io::Error,
    },
    /// The decoded body is larger than allowed.
    #[error("the decoded body has more than {limit} bytes")]
    TooLarge {
        /// Most bytes allowed.
        limit: usize,
    },
}

/// Packs `plain` into one frame.
///
/// # Errors
/// Only if the compressor itself fails, which for memory to memory means a bug.
pub fn encode(encoding: Encoding, plain: &[u8]) -> io::Result<Bytes> {
    match encoding {
        Encoding::Zstd if plain.len() < STORE_BELOW => Ok(zstd_stored(plain)),
        Encoding::Zstd => COMPRESSOR.with_borrow_mut(|kept| {
            let compressor = match kept {
                Some(compressor) => compressor,
                None => kept.insert(Compressor::new(LEVEL)?),
            };
            compressor.compress(plain).map(Bytes::from)
        }),
        Encoding::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::with_capacity(plain.len() / 2 + 64));
            encoder.write_all(plain)?;
            encoder.finish().map(Bytes::from).map_err(io::Error::other)
        }
    }
}

/// Unpacks one or more concatenated frames, at most `limit` bytes of them.
///
/// # Errors
/// [`FrameError::Broken`] or [`FrameError::TooLarge`].
pub fn decode(encoding: Encoding, frames: &[u8], limit: usize) -> Result<Vec<u8>, FrameError> {
    if frames.is_empty() {
        return Ok(Vec::new());
    }
    let broken = |source| FrameError::Broken { encoding: encoding.name(), source };
    let mut plain = Vec::with_capacity((frames.len() * 4).min(limit));
    // One byte more than allowed tells "exactly the limit" from "more".
    let most = limit as u64 + 1;
    match encoding {
        Encoding::Zstd => {
            zstd::stream::read::Decoder::with_buffer(frames).map_err(broken)?.take(most).read_to_end(&mut plain)
        }
        Encoding::Lz4 => {
            let mut rest = frames;
            // lz4_flex ends after one frame; the next begins where the reader stands.
            while !rest.is_empty() && (plain.len() as u64) < most {
                let left = most - plain.len() as u64;
                let mut decoder = lz4_flex::frame::FrameDecoder::new(&mut rest);
                decoder.by_ref().take(left).read_to_end(&mut plain).map_err(broken)?;
            }
            Ok(plain.len())
        }
    }
    .map_err(broken)?;
    if plain.len() > limit { Err(FrameError::TooLarge { limit }) } else { Ok(plain) }
}

/// Reads one or more concatenated frames piece by piece, for a caller that bounds and counts what comes out.
///
/// # Errors
/// Only if the decoder cannot be made; broken frames show while reading.
pub fn reader(encoding: Encoding, frames: Bytes) -> io::Result<Box<dyn Read + Send>> {
    Ok(match encoding {
        Encoding::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(frames.reader())?),
        Encoding::Lz4 => Box::new(Lz4Frames::new(frames)),
    })
}

/// `lz4_flex` ends after one frame; the next begins where its input stands.
///
/// A decoder holds up to 12 MiB by what a frame's header says. It serves the next frame of the same layout too, so that a
/// body of many frames does not take and give back as much for each. Not for one of another layout: it counts on its
/// buffers being of the very size that the header names.
struct Lz4Frames {
    decoder: lz4_flex::frame::FrameDecoder<bytes::buf::Reader<Bytes>>,
    layout: Option<Layout>,
}

/// The bytes of a frame's header that say how its blocks are laid out: flags, and size of a block.
type Layout = [u8; 2];

impl Lz4Frames {
    fn new(frames: Bytes) -> Self {
        let layout = layout(&frames);
        Self { decoder: lz4_flex::frame::FrameDecoder::new(frames.reader()), layout }
    }
}

/// Of the frame that `frames` begins with (LZ4 frame format: magic of 4 bytes, flags, block descriptor).
fn layout(frames: &[u8]) -> Option<Layout> {
    frames.get(4..6)?.try_into().ok()
}

impl Read for Lz4Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.decoder.read(out)?;
            let rest = self.decoder.get_ref().get_ref();
            if read > 0 || out.is_empty() || rest.is_empty() {
                return Ok(read);
            }
            if layout(rest) != self.layout {
                *self = Self::new(rest.clone());
            }
        }
    }
}

/// A zstd frame (RFC 8878, 3.1.1) of one raw block: magic, a descriptor that says "single segment, one byte of
/// content size", that size, the block header (last, raw, size), the bytes.
fn zstd_stored(plain: &[u8]) -> Bytes {
    let size = plain.len();
    debug_assert!(size < STORE_BELOW);
    let mut frame = Vec::with_capacity(size + 9);
    frame.extend_from_slice(&[0x28, 0xb5, 0x2f, 0xfd, 0x20]);
    #[expect(clippy::cast_possible_truncation, reason = "below 256 by the caller")]
    frame.push(size as u8);
    let header = 1_u32 | (u32::try_from(size).unwrap_or_default() << 3);
    frame.extend_from_slice(&header.to_le_bytes()[..3]);
    frame.extend_from_slice(plain);
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn frames_concatenate_and_are_bounded() {
        for encoding in [Encoding::Zstd, Encoding::Lz4] {
            let (a, b) = (b"{\"a\":1}\n".to_vec(), b"{\"b\":2}\n".repeat(400));
            let frames = [encode(encoding, &a).unwrap(), encode(encoding, &b).unwrap()].concat();
            let both = [a, b].concat();
            assert_eq!(decode(encoding, &frames, both.len()).unwrap(), both, "{encoding:?}");
            let over = decode(encoding, &frames, both.len() - 1);
            assert!(matches!(over, Err(FrameError::TooLarge { .. })), "{encoding:?}");
            // lz4_flex takes a missing end mark (4 bytes) for the end, which loses nothing; a cut block it refuses
            let cut = decode(encoding, &frames[..frames.len() - 9], both.len());
            assert!(matches!(cut, Err(FrameError::Broken { .. })), "{encoding:?}");
            assert!(decode(encoding, b"not a frame", 100).is_err());
            let mut pieces = Vec::new();
            reader(encoding, frames.clone().into()).unwrap().read_to_end(&mut pieces).unwrap();
            assert_eq!(pieces, both, "{encoding:?}");
            assert!(
                reader(encoding, frames[..frames.len() - 9].to_vec().into()).unwrap().read_to_end(&mut pieces).is_err()
            );
            assert_eq!(decode(encoding, b"", 0).unwrap(), b"");
        }
    }

    #[test]
    fn lz4_frames_of_many_layouts_are_read_one_after_the_other() {
        use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
        let (mut frames, mut whole) = (Vec::new(), Vec::new());
        for turn in 0..24_u8 {
            let size = [BlockSize::Max4MB, BlockSize::Max64KB, BlockSize::Max256KB][usize::from(turn / 2 % 3)];
            let mode = [BlockMode::Linked, BlockMode::Independent][usize::from(turn / 6 % 2)];
            let plain: Vec<u8> = (0..u32::from(turn) * 9_000).map(|n| n.to_le_bytes()[1] ^ turn).collect();
            let info = FrameInfo::new().block_size(size).block_mode(mode).content_checksum(turn % 5 == 0);
            let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(&plain).unwrap();
            frames.extend(encoder.finish().unwrap());
            whole.extend(plain);
        }
        let mut read = Vec::new();
        reader(Encoding::Lz4, frames.into()).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == whole, "{} bytes of {}", read.len(), whole.len());
    }

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(plain in proptest::collection::vec(any::<u8>(), 0..3000), lz4 in any::<bool>()) {
            let encoding = if lz4 { Encoding::Lz4 } else { Encoding::Zstd };
            let frame = encode(encoding, &plain).unwrap();
            prop_assert_eq!(decode(encoding, &frame, plain.len()).unwrap(), plain);
        }
    }
}
