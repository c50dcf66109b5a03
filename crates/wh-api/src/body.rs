//! A request's body, whole and decoded: under its cap, its share of the budget and its time.

use crate::{
    budget::{Budget, Held},
    codes,
    error::{ApiError, shown},
};
use axum::body::Body;
use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use std::{
    io::{self, Read},
    time::Duration,
};
use wh_types::{Encoding, frame};

/// First share of a body whose length is not told.
const FIRST: usize = 4 << 10;
/// Most of a first share, and the size of one decoding step.
const STEP: usize = 128 << 10;

/// How much of a body is taken, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Decoded bytes.
    pub(crate) cap: usize,
    /// From the first wait to the last byte.
    pub(crate) time: Duration,
    /// Bytes of budget for each byte of body: 2 where its rows are gathered besides.
    pub(crate) share: usize,
}

/// A body, and its share of the budget.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) bytes: Bytes,
    pub(crate) held: Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
    Frames(Encoding),
}

/// Reads and decodes a body.
pub(crate) async fn take(headers: &HeaderMap, body: Body, bounds: Bounds, budget: &Budget) -> Result<Taken, ApiError> {
    take_moving(headers, body, bounds, bounds.time, budget).await
}

/// The same for one that may be large: it may not stand still for longer than `idle` either.
pub(crate) async fn take_moving(
    headers: &HeaderMap,
    body: Body,
    bounds: Bounds,
    idle: Duration,
    budget: &Budget,
) -> Result<Taken, ApiError> {
    let coding = coding(headers)?;
    let told = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if told.is_some_and(|length| length > bounds.cap) {
        return Err(too_large(bounds.cap));
    }
    // A declared length costs its sender nothing: the share grows with what arrives.
    let held = budget.take(told.unwrap_or(FIRST).min(STEP) * bounds.share).await?;
    let mut taken = match tokio::time::timeout(bounds.time, collect(body, told, bounds, idle, held)).await {
        Ok(taken) => taken?,
        Err(_) => {
            let text = format!("the body did not arrive within {:?}", bounds.time);
            return Err(ApiError::new(&codes::BODY_TIMEOUT, text));
        }
    };
    let decoder: Box<dyn Read + Send> = match coding {
        Coding::Identity => return Ok(taken),
        Coding::Gzip => Box::new(OneMember(flate2::bufread::GzDecoder::new(taken.bytes.clone().reader()))),
        Coding::Frames(Encoding::Lz4) if !lz4_is_whole(&taken.bytes) => {
            let text = "the body is not valid lz4: it ends before the end mark of a frame";
            return Err(ApiError::new(&codes::BODY_ENCODING, text));
        }
        Coding::Frames(encoding) => frame::reader(encoding, taken.bytes.clone()).map_err(|e| broken(coding, &e))?,
    };
    let decoding = decode(decoder, coding, taken.bytes.len(), bounds, &mut taken.held);
    taken.bytes = match tokio::time::timeout(bounds.time, decoding).await {
        Ok(decoded) => decoded?,
        Err(_) => return Err(ApiError::new(&codes::BODY_TIMEOUT, "the body could not be decoded in time")),
    };
    Ok(taken)
}

/// One gzip member and nothing after it: a body of a million empty members costs its sender little and us much.
struct OneMember(flate2::bufread::GzDecoder<bytes::buf::Reader<Bytes>>);

impl Read for OneMember {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(out)?;
        if read == 0 && !out.is_empty() && self.0.get_ref().get_ref().has_remaining() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "there is more after the first gzip member"));
        }
        Ok(read)
    }
}

/// Whether lz4 frames end where their blocks do. The decoder takes an end of input between two blocks for the end of
/// the body, and what was cut off would be lost in silence. Anything else that is wrong is the decoder's to say.
fn lz4_is_whole(mut frames: &[u8]) -> bool {
    const MAGIC: u32 = 0x184d_2204;
    while !frames.is_empty() {
        let Some((MAGIC, header)) = little_endian(frames) else { return true };
        let Some(flags) = header.first() else { return false };
        let flag = |bit: u8, bytes: usize| if flags & bit == 0 { 0 } else { bytes };
        // flags, block size, content size, dictionary id, checksum of the header
        let Some(mut rest) = header.get(3 + flag(0x08, 8) + flag(0x01, 4)..) else { return false };
        loop {
            let Some((size, block)) = little_endian(rest) else { return false };
            let bytes = if size == 0 { flag(0x04, 4) } else { (size & 0x7fff_ffff) as usize + flag(0x10, 4) };
            let Some(next) = block.get(bytes..) else { return false };
            rest = next;
            if size == 0 {
                break;
            }
        }
        frames = rest;
    }
    true
}

fn little_endian(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk::<4>().map(|(first, rest)| (u32::from_le_bytes(*first), rest))
}

async fn collect(
    mut body: Body,
    told: Option<usize>,
    bounds: Bounds,
    idle: Duration,
    mut held: Held,
) -> Result<Taken, ApiError> {
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    loop {
        let frame = match tokio::time::timeout(idle, body.frame()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(_) => {
                let text = format!("nothing of the body arrived for {idle:?}");
                return Err(ApiError::new(&codes::BODY_TIMEOUT, text));
            }
        };
        let frame = frame.map_err(|error| {
            ApiError::new(&codes::BODY_BROKEN, format!("the body could not be read to its end: {error}"))
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let so_far = first.len() + more.len() + data.len();
        if so_far > bounds.cap {
            return Err(too_large(bounds.cap));
        }
        held.grow_to(so_far.next_power_of_two().min(bounds.cap) * bounds.share).await?;
        if first.is_empty() && more.is_empty() {
            first = data;
            continue;
        }
        if more.is_empty() {
            more.reserve(told.unwrap_or(0).clamp(so_far, so_far + 8 * STEP));
            more.extend_from_slice(&std::mem::take(&mut first));
        }
        more.extend_from_slice(&data);
    }
    Ok(Taken { bytes: if more.is_empty() { first } else { more.freeze() }, held })
}

/// Decodes in steps, away from the threads that serve: a step costs what its input costs, however little it gives.
async fn decode(
    mut decoder: Box<dyn Read + Send>,
    coding: Coding,
    encoded: usize,
    bounds: Bounds,
    held: &mut Held,
) -> Result<Bytes, ApiError> {
    let mut out = Vec::new();
    loop {
        let before = out.len();
        held.grow_to(encoded + (before + STEP).next_power_of_two().min(bounds.cap + 1) * bounds.share).await?;
        // one byte more than allowed tells "exactly the cap" from "more"
        let most = STEP.min(bounds.cap + 1 - before);
        let step = move || {
            make_room(&mut out, most, bounds.cap + 1);
            let done = decoder.by_ref().take(most as u64).read_to_end(&mut out);
            (decoder, out, done)
        };
        let done;
        (decoder, out, done) = if encoded < INLINE {
            step()
        } else {
            tokio::task::spawn_blocking(step).await.map_err(|error| broken(coding, &io::Error::other(error)))?
        };
        done.map_err(|error| broken(coding, &error))?;
        if out.len() > bounds.cap {
            return Err(too_large(bounds.cap));
        }
        if out.len() - before < most {
            return Ok(out.into());
        }
        tokio::task::yield_now().await;
    }
}

/// Room for `more` bytes, doubled like a vector doubles its own, but never beyond what can come.
fn make_room(out: &mut Vec<u8>, more: usize, cap: usize) {
    if out.capacity() - out.len() < more {
        let room = (out.capacity() * 2).max(out.len() + more).min(cap);
        out.reserve_exact(room - out.len());
    }
}

/// Encoded bodies below this are decoded where they are: going elsewhere would cost more.
const INLINE: usize = 16 << 10;

fn coding(headers: &HeaderMap) -> Result<Coding, ApiError> {
    let mut values = headers.get_all(header::CONTENT_ENCODING).iter();
    let Some(value) = values.next() else { return Ok(Coding::Identity) };
    let coding = match value.as_bytes().trim_ascii().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Some(Coding::Identity),
        b"gzip" | b"x-gzip" => Some(Coding::Gzip),
        b"zstd" => Some(Coding::Frames(Encoding::Zstd)),
        b"lz4" => Some(Coding::Frames(Encoding::Lz4)),
        _ => None,
    };
    match (coding, values.next()) {
        (Some(coding), None) => Ok(coding),
        (None, _) | (_, Some(_)) => {
            let given = shown(value.as_bytes());
            let text =
                format!("Content-Encoding {given} is not supported; accepted is one of gzip, zstd, lz4, identity");
            Err(ApiError::new(&codes::CONTENT_ENCODING, text))
        }
    }
}

fn too_large(cap: usize) -> ApiError {
    ApiError::new(&codes::BODY_TOO_LARGE, format!("request body exceeded {cap} bytes"))
}

fn broken(coding: Coding, error: &io::Error) -> ApiError {
    let name = match coding {
        Coding::Identity => "identity",
        Coding::Gzip => "gzip",
        Coding::Frames(encoding) => encoding.name(),
    };
    ApiError::new(&codes::BODY_ENCODING, format!("the body is not valid {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use std::io::Write;

    const BOUNDS: Bounds = Bounds { cap: 1 << 20, time: Duration::from_secs(1), share: 2 };

    fn budget() -> Budget {
        Budget::new(16 << 20, Duration::from_millis(10))
    }

    async fn taken(coding: Option<&str>, body: impl Into<Body>) -> Result<Bytes, ApiError> {
        let mut headers = HeaderMap::new();
        if let Some(coding) = coding {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_str(coding).unwrap());
        }
        let budget = budget();
        let taken = take(&headers, body.into(), BOUNDS, &budget).await?;
        let bytes = taken.bytes.clone();
        assert!(budget.held() >= bytes.len(), "the budget counts {} of {}", budget.held(), bytes.len());
        drop(taken);
        assert_eq!(budget.held(), 0);
        Ok(bytes)
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn every_coding_is_decoded_up_to_the_cap_and_not_beyond() {
        let (fits, over) = (vec![b'a'; 1 << 20], vec![b'a'; (1 << 20) + 1]);
        let zstd = |plain: &[u8]| frame::encode(Encoding::Zstd, plain).unwrap().to_vec();
        let lz4 = |plain: &[u8]| frame::encode(Encoding::Lz4, plain).unwrap().to_vec();
        for (coding, encode) in [("gzip", &gzip as &dyn Fn(&[u8]) -> Vec<u8>), ("zstd", &zstd), ("LZ4", &lz4)] {
            assert_eq!(taken(Some(coding), encode(&fits)).await.unwrap(), fits, "{coding}");
            assert_eq!(
                taken(Some(coding), encode(&over)).await.unwrap_err().code(),
                &codes::BODY_TOO_LARGE,
                "{coding}"
            );
            let whole = encode(&fits);
            let cut = whole[..whole.len() / 2].to_vec();
            assert_eq!(taken(Some(coding), cut).await.unwrap_err().code(), &codes::BODY_ENCODING, "{coding}");
            let twice = [whole[..whole.len()].to_vec(), b"x".to_vec()].concat();
            assert_eq!(taken(Some(coding), twice).await.unwrap_err().code(), &codes::BODY_ENCODING, "{coding}");
            assert_eq!(taken(Some(coding), "plain").await.unwrap_err().code(), &codes::BODY_ENCODING, "{coding}");
        }
        assert_eq!(taken(None, fits.clone()).await.unwrap(), fits);
        assert_eq!(taken(None, over).await.unwrap_err().code(), &codes::BODY_TOO_LARGE);
        for coding in ["br", "gzip, gzip", "deflate"] {
            assert_eq!(taken(Some(coding), "x").await.unwrap_err().code(), &codes::CONTENT_ENCODING, "{coding}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_cut_anywhere_is_refused() {
        let noise: Vec<u8> = (0..40_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
        let mut lz4 = lz4_flex::frame::FrameEncoder::with_frame_info(
            lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB).content_checksum(true),
            Vec::new(),
        );
        for part in noise.chunks(10_000) {
            lz4.write_all(part).unwrap();
            // ends a block
            lz4.flush().unwrap();
        }
        let lz4 = lz4.finish().unwrap();
        let zstd = frame::encode(Encoding::Zstd, &noise).unwrap().to_vec();
        for (coding, whole) in [("gzip", gzip(&noise)), ("zstd", zstd), ("lz4", lz4)] {
            assert_eq!(taken(Some(coding), whole.clone()).await.unwrap(), noise, "{coding}");
            let mut block = 0;
            for cut in (1..whole.len()).filter(|cut| cut % 97 == 0 || *cut < 30 || *cut > whole.len() - 30) {
                let got = taken(Some(coding), whole[..cut].to_vec()).await;
                assert_eq!(got.unwrap_err().code(), &codes::BODY_ENCODING, "{coding} cut at {cut}");
                block = cut;
            }
            assert!(block > whole.len() - 2);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_be_slow_but_not_stand_still() {
        let dripping = |every: u64, pieces: usize| {
            let piece = move |n| (n < pieces).then_some(n);
            Body::from_stream(futures::stream::unfold(0, move |n| async move {
                let n = piece(n)?;
                tokio::time::sleep(Duration::from_millis(every)).await;
                Some((Ok::<_, io::Error>(Bytes::from_static(b"x")), n + 1))
            }))
        };
        let budget = budget();
        let got = async |every, pieces| {
            let idle = Duration::from_millis(200);
            take_moving(&HeaderMap::new(), dripping(every, pieces), BOUNDS, idle, &budget).await
        };
        assert_eq!(got(100, 9).await.unwrap().bytes.len(), 9);
        for (every, pieces, told) in [(100, 11, "did not arrive within 1s"), (300, 1, "nothing of the body arrived")] {
            let error = got(every, pieces).await.unwrap_err();
            assert_eq!(error.code(), &codes::BODY_TIMEOUT);
            assert!(error.message().contains(told), "{}", error.message());
        }
        assert_eq!(budget.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn pieces_are_put_together_and_a_slow_or_broken_body_is_told_apart() {
        let piece = |text: &'static str| Ok::<_, io::Error>(Bytes::from_static(text.as_bytes()));
        let pieces = futures::stream::iter([piece("ab"), piece(""), piece("cd")]);
        assert_eq!(taken(None, Body::from_stream(pieces)).await.unwrap(), "abcd");
        let broken = futures::stream::iter([piece("ab"), Err(io::Error::other("cut"))]);
        assert_eq!(taken(None, Body::from_stream(broken)).await.unwrap_err().code(), &codes::BODY_BROKEN);
        let silent = futures::stream::pending::<Result<Bytes, io::Error>>();
        assert_eq!(taken(None, Body::from_stream(silent)).await.unwrap_err().code(), &codes::BODY_TIMEOUT);
    }
}
