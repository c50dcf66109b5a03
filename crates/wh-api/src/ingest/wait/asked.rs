//! What a request asks for: `wait` and `timeout`.

use crate::{
    codes,
    error::{ApiError, shown},
    params::Params,
};
use std::time::Duration;

const DEFAULT: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(30);

/// How long the request wants to wait; `None`: not at all.
pub(crate) fn asked(params: &Params<'_>) -> Result<Option<Duration>, ApiError> {
    let bad = |text: String| ApiError::new(&codes::REQUEST_INVALID, text);
    let (wait, timeout) = (params.get("wait")?, params.get("timeout")?);
    match wait.as_deref() {
        Some("committed") => {}
        Some(other) => {
            return Err(bad(format!("\"wait\" is \"committed\" or absent, not {}", shown(other.as_bytes()))));
        }
        None if timeout.is_some() => return Err(bad("\"timeout\" goes with \"wait=committed\" only".to_owned())),
        None => return Ok(None),
    }
    let Some(text) = timeout else { return Ok(Some(DEFAULT)) };
    let time = read(&text).filter(|time| !time.is_zero() && *time <= LONGEST);
    let reason = || {
        let given = shown(text.as_bytes());
        bad(format!("\"timeout\" is a time from \"1ms\" to \"30s\", such as \"5s\" or \"500ms\", not {given}"))
    };
    time.ok_or_else(reason).map(Some)
}

fn read(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let number = digits.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_values_name_the_parameter() {
        let asked = |query: &str| super::asked(&Params::new(&format!("/x?{query}").parse().unwrap()));
        assert_eq!(asked("table=t").unwrap(), None);
        assert_eq!(asked("wait=committed").unwrap(), Some(DEFAULT));
        for (text, time) in [("1ms", 1), ("250ms", 250), ("5s", 5_000), ("30s", 30_000), ("30000ms", 30_000)] {
            let query = format!("wait=committed&timeout={text}");
            assert_eq!(asked(&query).unwrap(), Some(Duration::from_millis(time)), "{text}");
        }
        for text in ["", "5", "0s", "31s", "-1s", "%2B5s", "5m", "1.5s", "s", "99999999999999999999s", "5s%20", "5S"] {
            let error = asked(&format!("wait=committed&timeout={text}")).unwrap_err();
            assert!(format!("{error:?}").contains("timeout"), "{text}: {error:?}");
        }
        for query in ["wait=", "wait=stored", "wait=Committed", "wait=committed&wait=committed"] {
            let error = asked(query).unwrap_err();
            assert!(format!("{error:?}").contains("wait"), "{query}: {error:?}");
        }
        assert!(format!("{:?}", asked("timeout=5s").unwrap_err()).contains("timeout"));
    }
}
