//! An answer with what is told of it in headers: as it is computed, as it is kept, as it is sent.

use crate::{budget::Held, rows};
use axum::response::{IntoResponse, Response};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, header};
use std::{sync::Arc, time::Duration};
use wh_cache::Hit;

/// The form in which answers are kept.
const FORM: u8 = 1;

static X_CACHE: HeaderName = HeaderName::from_static("x-cache");

/// A computed answer.
#[derive(Clone, Debug)]
pub(crate) struct Produced {
    /// Its bytes, as they are sent.
    pub(crate) body: Bytes,
    /// What is told of it besides.
    pub(crate) told: Vec<(HeaderName, HeaderValue)>,
    /// Its share of a budget, until it is sent.
    pub(crate) held: Option<Arc<Held>>,
    /// Whether it may be kept: it is whole.
    pub(crate) keep: bool,
}

/// An answer to one request.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Bytes,
    told: Vec<(HeaderName, HeaderValue)>,
    held: Option<Arc<Held>>,
    how: How,
}

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It was kept for so long.
    Hit(Duration),
    /// It was computed, by this request or another one at the same time.
    Miss,
    /// It was computed for this request alone.
    Bypass,
}

impl How {
    /// Tells it in headers.
    pub(crate) fn tell(self, response: &mut Response) {
        let (name, age) = match self {
            Self::Hit(age) => ("HIT", Some(age)),
            Self::Miss => ("MISS", None),
            Self::Bypass => ("BYPASS", None),
        };
        let headers = response.headers_mut();
        headers.insert(X_CACHE.clone(), HeaderValue::from_static(name));
        if let Some(age) = age {
            headers.insert(header::AGE, HeaderValue::from(age.as_secs()));
        }
    }
}

impl Produced {
    pub(super) fn answer(self, how: How) -> Answer {
        let Self { body, told, held, .. } = self;
        Answer { body, told, held, how }
    }

    /// As it is kept; `None` where it is larger than `most`.
    pub(super) fn packed(&self, most: usize) -> Option<Bytes> {
        pack(&self.told, std::slice::from_ref(&self.body), most)
    }
}

/// What is told, and a body in pieces, as they are kept.
pub(super) fn pack(told: &[(HeaderName, HeaderValue)], body: &[Bytes], most: usize) -> Option<Bytes> {
    let told_bytes: usize = told.iter().map(|(name, value)| 3 + name.as_str().len() + value.len()).sum();
    let size = 2 + told_bytes + body.iter().map(Bytes::len).sum::<usize>();
    if size > most {
        return None;
    }
    let mut bytes = BytesMut::with_capacity(size);
    bytes.put_u8(FORM);
    bytes.put_u8(u8::try_from(told.len()).ok()?);
    for (name, value) in told {
        bytes.put_u8(u8::try_from(name.as_str().len()).ok()?);
        bytes.put_slice(name.as_str().as_bytes());
        bytes.put_u16(u16::try_from(value.len()).ok()?);
        bytes.put_slice(value.as_bytes());
    }
    body.iter().for_each(|piece| bytes.put_slice(piece));
    Some(bytes.freeze())
}

impl Answer {
    /// One that was kept. `None`: it cannot be read.
    pub(super) fn kept(hit: &Hit) -> Option<Self> {
        let (told, body) = unpack(hit.value.clone())?;
        Some(Self { body, told, held: None, how: How::Hit(hit.age) })
    }
}

fn unpack(mut bytes: Bytes) -> Option<(Vec<(HeaderName, HeaderValue)>, Bytes)> {
    if bytes.try_get_u8().ok()? != FORM {
        return None;
    }
    let count = bytes.try_get_u8().ok()?;
    let told = (0..count).map(|_| {
        let name = usize::from(bytes.try_get_u8().ok()?);
        let name = (bytes.len() >= name).then(|| bytes.split_to(name))?;
        let value = usize::from(bytes.try_get_u16().ok()?);
        let value = (bytes.len() >= value).then(|| bytes.split_to(value))?;
        Some((HeaderName::from_bytes(&name).ok()?, HeaderValue::from_maybe_shared(value).ok()?))
    });
    let told = told.collect::<Option<Vec<_>>>()?;
    Some((told, bytes))
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = rows::sending(self.body, self.held).into_response();
        response.headers_mut().extend(self.told);
        self.how.tell(&mut response);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_back_and_anything_else_is_none() {
        let told = vec![
            (HeaderName::from_static("x-next-cursor"), HeaderValue::from_static("abc")),
            (HeaderName::from_static("x-empty"), HeaderValue::from_static("")),
        ];
        let body = [Bytes::from_static(b"[1,"), Bytes::from_static(b"2]")];
        let packed = pack(&told, &body, 100).unwrap();
        assert_eq!(unpack(packed.clone()), Some((told.clone(), Bytes::from_static(b"[1,2]"))));
        assert_eq!(pack(&told, &body, packed.len()), Some(packed.clone()));
        assert_eq!(pack(&told, &body, packed.len() - 1), None, "too large");
        for cut in 0..packed.len() - 5 {
            assert_eq!(unpack(packed.slice(..cut)), None, "{cut}");
        }
        assert_eq!(unpack(Bytes::from_static(b"\x02\0[]")), None, "another form");
    }
}
