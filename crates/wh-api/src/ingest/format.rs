//! Which form a body has: what its `Content-Type` declares, never what its bytes look like.

use super::records::Form;
use crate::{
    codes,
    error::{ApiError, shown},
};
use http::{HeaderMap, HeaderValue, header};

const ACCEPTED: &str =
    "application/json, application/x-ndjson, application/ndjson, application/jsonl, application/jsonlines";
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
    let media = value.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
    let is = |name: &str| media.eq_ignore_ascii_case(name.as_bytes());
    if is("application/json") {
        Some(Form::Document)
    } else if ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines"]
        .into_iter()
        .any(is)
    {
        Some(Form::Lines)
    } else {
        None
    }
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
        for values in [
            &[][..],
            &[""],
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
        assert!(text.len() < 4 * 150 + 200, "{}", text.len());
        assert!(text.contains("\"3x") && !text.contains("\"4x"));
    }
}
