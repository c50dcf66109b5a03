//! Which form a body has: what its `Content-Type` declares, never what its bytes look like.

use super::{
    delimited::{Dialect, Header, Syntax},
    records::Form,
};
use crate::{
    codes,
    error::{ApiError, shown},
};
use http::{HeaderMap, HeaderValue, header};

const ACCEPTED: &str = "application/json, application/x-ndjson, application/ndjson, application/jsonl, application/jsonlines, text/csv, \
     text/tab-separated-values, both with header=present or header=absent or neither";
/// Most declarations that a refusal shows.
const SHOWN: usize = 4;

/// The form declared. Several header lines must agree.
pub(crate) fn declared(headers: &HeaderMap) -> Result<Form, ApiError> {
    let mut forms = headers.get_all(header::CONTENT_TYPE).iter().map(form_of);
    let first = forms.next().flatten();
    match first {
        Some(form) if forms.all(|other| other == first) => Ok(form),
        _ => Err(refusal(headers)),
    }
}

fn form_of(value: &HeaderValue) -> Option<Form> {
    let value = value.as_bytes();
    // a comma joins several values into one line: which of them counts, nobody said
    if value.contains(&b',') {
        return None;
    }
    let mut parts = value.split(|b| *b == b';').map(<[u8]>::trim_ascii);
    let media = parts.next().unwrap_or_default();
    let is = |name: &str| media.eq_ignore_ascii_case(name.as_bytes());
    if is("application/json") {
        Some(Form::Document)
    } else if ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines"]
        .into_iter()
        .any(is)
    {
        Some(Form::Lines)
    } else if is("text/csv") {
        Some(Form::Delimited(Dialect { syntax: Syntax::Csv, header: header_of(parts)? }))
    } else if is("text/tab-separated-values") {
        Some(Form::Delimited(Dialect { syntax: Syntax::Tsv, header: header_of(parts)? }))
    } else {
        None
    }
}

/// What the parameter `header` says (RFC 7111). Others do not count; another value of this one, or two, do.
fn header_of<'a>(parameters: impl Iterator<Item = &'a [u8]>) -> Option<Header> {
    let mut found = None;
    for parameter in parameters {
        let Some(equals) = parameter.iter().position(|b| *b == b'=') else { continue };
        if !parameter[..equals].trim_ascii().eq_ignore_ascii_case(b"header") {
            continue;
        }
        let value = parameter[equals + 1..].trim_ascii();
        let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        let header = match bare.to_ascii_lowercase().as_slice() {
            b"present" => Header::Present,
            b"absent" => Header::Absent,
            _ => return None,
        };
        if found.replace(header).is_some() {
            return None;
        }
    }
    Some(found.unwrap_or(Header::Unsaid))
}

#[cold]
fn refusal(headers: &HeaderMap) -> ApiError {
    let mut given: Vec<&[u8]> = Vec::new();
    for value in headers.get_all(header::CONTENT_TYPE) {
        if given.len() < SHOWN && !given.contains(&value.as_bytes()) {
            given.push(value.as_bytes());
        }
    }
    let given: Vec<String> = given.into_iter().map(shown).collect();
    let text = if given.is_empty() {
        format!("Content-Type is missing; accepted: {ACCEPTED}")
    } else {
        format!("Content-Type {} is not accepted; accepted: {ACCEPTED}", given.join(", "))
    };
    ApiError::new(&codes::CONTENT_TYPE, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Result<Form, String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
        }
        declared(&headers).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn only_one_supported_media_type_counts() {
        for values in [&["application/json"][..], &["Application/JSON; charset=utf-8"], &["application/json;;=x"]] {
            assert_eq!(of(values), Ok(Form::Document), "{values:?}");
        }
        for values in [&["application/x-ndjson"][..], &["application/jsonl", "application/ndjson; a=b"]] {
            assert_eq!(of(values), Ok(Form::Lines), "{values:?}");
        }
        let cells = |syntax, header| Ok(Form::Delimited(Dialect { syntax, header }));
        for (value, syntax, header) in [
            ("text/csv", Syntax::Csv, Header::Unsaid),
            ("Text/CSV; charset=utf-8; Header = Present", Syntax::Csv, Header::Present),
            ("text/csv;header=\"absent\"", Syntax::Csv, Header::Absent),
            ("text/tab-separated-values; header=absent", Syntax::Tsv, Header::Absent),
        ] {
            assert_eq!(of(&[value]), cells(syntax, header), "{value}");
        }
        for values in [
            &[][..],
            &[""],
            &["text/csv; header=maybe"],
            &["text/csv; header=present; header=absent"],
            &["text/csv; header=present", "text/csv; header=absent"],
            &["text/csv", "text/tab-separated-values"],
            &["text/plain"],
            &["application/json, application/x-ndjson"],
            &["application/json", "application/x-ndjson"],
            &["application/json; a=\"x, y\""],
            &["application/jsonx"],
        ] {
            assert!(of(values).unwrap_err().contains("accepted: application/json"), "{values:?}");
        }
    }

    #[test]
    fn the_echo_is_bounded() {
        let long = "x".repeat(1_000);
        let values: Vec<String> = (0..9).map(|n| format!("{n}{long}")).collect();
        let text = of(&values.iter().map(String::as_str).collect::<Vec<_>>()).unwrap_err();
        assert!(text.len() < 4 * 150 + 250, "{}", text.len());
        assert!(text.contains("\"3x") && !text.contains("\"4x"));
    }
}
