//! Query strings. A parameter that is given twice is refused; unknown ones are where a path says which it knows.

use crate::{
    codes,
    error::{ApiError, shown},
};
use std::borrow::Cow;

/// The parameters of one request.
#[derive(Debug)]
pub(crate) struct Params<'a>(&'a str);

impl<'a> Params<'a> {
    pub(crate) fn new(uri: &'a http::Uri) -> Self {
        Self(uri.query().unwrap_or_default())
    }

    /// A parameter that may be absent.
    pub(crate) fn get(&self, name: &str) -> Result<Option<Cow<'a, str>>, ApiError> {
        let mut found = None;
        for (key, value) in form_urlencoded::parse(self.0.as_bytes()) {
            if key == name && found.replace(value).is_some() {
                let text = format!("the parameter {name:?} is given more than once");
                return Err(ApiError::new(&codes::REQUEST_INVALID, text));
            }
        }
        Ok(found)
    }

    /// A parameter that may be given several times.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
        form_urlencoded::parse(self.0.as_bytes()).filter(move |(key, _)| key == name).map(|(_, value)| value)
    }

    /// Refuses every parameter that is none of these.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), ApiError> {
        let mut keys = form_urlencoded::parse(self.0.as_bytes()).map(|(key, _)| key);
        keys.find(|key| !known.contains(&key.as_ref())).map_or(Ok(()), |key| {
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let key = shown(key.as_bytes());
            Err(ApiError::new(&codes::REQUEST_INVALID, format!("the parameter {key} is unknown; there are {known}")))
        })
    }

    /// The table that nearly every path is about.
    pub(crate) fn table(&self) -> Result<Cow<'a, str>, ApiError> {
        let table = self.get("table")?.filter(|table| !table.is_empty());
        table.ok_or_else(|| ApiError::new(&codes::TABLE_MISSING, "missing the query parameter \"table\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_decoded_and_counts_once() {
        let uri = |text: &str| text.parse::<http::Uri>().unwrap();
        assert_eq!(Params::new(&uri("/x?a=1&table=a%2Eb+c")).table().unwrap(), "a.b c");
        for (text, code) in [
            ("/x", &codes::TABLE_MISSING),
            ("/x?table=", &codes::TABLE_MISSING),
            ("/x?table=a&table=b", &codes::REQUEST_INVALID),
        ] {
            assert_eq!(Params::new(&uri(text)).table().unwrap_err().code(), code, "{text}");
        }
    }
}
