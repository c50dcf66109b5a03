//! The id of a request: the caller's `X-Request-ID` where it is usable, else one of ours.

use http::{HeaderMap, HeaderName, HeaderValue};
use wh_types::Entropy;

pub(crate) static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that is taken over.
const MAX: usize = 128;

/// The id of a request.
pub(crate) fn of(headers: &HeaderMap, entropy: &dyn Entropy) -> HeaderValue {
    match headers.get(&X_REQUEST_ID) {
        Some(given) if usable(given.as_bytes()) => given.clone(),
        _ => drawn(entropy.next_u64()),
    }
}

/// Letters, digits and a few marks: it goes into logs and headers.
fn usable(id: &[u8]) -> bool {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"-_.:/+=@".contains(b);
    (1..=MAX).contains(&id.len()) && id.iter().all(plain)
}

fn drawn(bits: u64) -> HeaderValue {
    let mut hex = [0; 16];
    for (at, digit) in hex.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(bits >> (60 - 4 * at)) as usize & 15];
    }
    HeaderValue::from_bytes(&hex).unwrap_or_else(|_| HeaderValue::from_static("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wh_types::SeededEntropy;

    #[test]
    fn a_usable_id_is_kept_and_any_other_replaced() {
        let entropy = SeededEntropy::new(1);
        let id = |given: Option<&[u8]>| {
            let mut headers = HeaderMap::new();
            if let Some(given) = given {
                headers.insert(&X_REQUEST_ID, HeaderValue::from_bytes(given).unwrap());
            }
            of(&headers, &entropy).to_str().unwrap().to_owned()
        };
        assert_eq!(id(Some(b"01HV-req_1.a:b/c+d=@")), "01HV-req_1.a:b/c+d=@");
        for bad in [&b""[..], b"a b", b"\xffx", b"<script>", &[b'x'; 129]] {
            let ours = id(Some(bad));
            assert!(ours.len() == 16 && ours.bytes().all(|b| b.is_ascii_hexdigit()), "{ours}");
        }
        assert_ne!(id(None), id(None));
    }
}
