//! In which form an answer is wanted: by `?format=`, else by `Accept`. Pure.

use crate::{
    codes,
    error::{ApiError, shown},
    params::Params,
};
use http::{HeaderMap, header};

/// A form of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One array of objects.
    Json,
    /// One object a line.
    Ndjson,
    /// A line of names, then a line a row.
    Csv,
    /// Arrow's stream of record batches.
    Arrow,
}

/// Every form: its name, its media type and other names of that, ClickHouse's name.
const FORMS: &[(Format, &str, &[&str], &str)] = &[
    (Format::Json, "json", &["application/json"], crate::rows::FORMAT),
    (
        Format::Ndjson,
        "ndjson",
        &["application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines"],
        crate::rows::FORMAT,
    ),
    (Format::Csv, "csv", &["text/csv"], "CSVWithNames"),
    (Format::Arrow, "arrow", &["application/vnd.apache.arrow.stream"], "ArrowStream"),
];

/// How numbers are written that a double cannot hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Bare, with all their digits.
    #[default]
    Number,
    /// In quotes.
    String,
}

/// The form of one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) format: Format,
    pub(crate) numbers: Numbers,
}

impl Form {
    /// What a request asks for.
    ///
    /// # Errors
    /// There is no such form; or the way to write numbers is none, or is asked of a form that has only one.
    pub(crate) fn of(params: &Params<'_>, headers: &HeaderMap) -> Result<Self, ApiError> {
        let invalid = |text: String| ApiError::new(&codes::REQUEST_INVALID, text);
        let format = match params.get("format")? {
            Some(name) => {
                let found = FORMS.iter().find(|(_, known, ..)| *known == name).map(|(format, ..)| *format);
                let names = || FORMS.iter().map(|(_, name, ..)| *name).collect::<Vec<_>>().join(", ");
                found.ok_or_else(|| {
                    invalid(format!("the parameter \"format\" is {}; there are {}", shown(name.as_bytes()), names()))
                })?
            }
            None => accepted(headers)?,
        };
        let numbers = match params.get("numbers")?.as_deref() {
            None => Numbers::default(),
            Some("number" | "string") if !format.is_json() => {
                return Err(invalid("the parameter \"numbers\" is for json and ndjson".to_owned()));
            }
            Some("number") => Numbers::Number,
            Some("string") => Numbers::String,
            Some(other) => {
                let other = shown(other.as_bytes());
                return Err(invalid(format!("the parameter \"numbers\" is {other}; there are number, string")));
            }
        };
        Ok(Self { format, numbers })
    }

    /// ClickHouse's settings for it, beside those that every answer has.
    pub(crate) fn settings(self) -> &'static [(&'static str, &'static str)] {
        match (self.format, self.numbers) {
            (Format::Json | Format::Ndjson, Numbers::Number) => &[("output_format_json_quote_decimals", "0")],
            (Format::Json | Format::Ndjson, Numbers::String) => {
                &[("output_format_json_quote_64bit_integers", "1"), ("output_format_json_quote_decimals", "1")]
            }
            (Format::Csv, _) => &[],
            (Format::Arrow, _) => &[
                ("output_format_arrow_string_as_string", "1"),
                ("output_format_arrow_compression_method", "none"),
                ("output_format_arrow_low_cardinality_as_dictionary", "0"),
            ],
        }
    }
}

impl Format {
    fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Ndjson)
    }

    fn form(self) -> &'static (Format, &'static str, &'static [&'static str], &'static str) {
        FORMS.iter().find(|(format, ..)| *format == self).unwrap_or(&FORMS[0])
    }

    /// Its media type.
    pub(crate) fn media(self) -> &'static str {
        self.form().2[0]
    }

    /// ClickHouse's name of what it is made from.
    pub(crate) fn clickhouse(self) -> &'static str {
        self.form().3
    }
}

/// The form that `Accept` likes best; of equals the one it names more closely, then JSON first.
fn accepted(headers: &HeaderMap) -> Result<Format, ApiError> {
    let values = headers.get_all(header::ACCEPT).iter();
    let ranges: Vec<Range<'_>> = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(Range::of)
        .collect();
    if ranges.is_empty() {
        return Ok(Format::Json);
    }
    let liking = |format: Format| {
        let best = ranges.iter().filter_map(|range| Some((range.fits(format)?, range.thousandths)));
        // the closest range says how much
        best.max().filter(|(_, thousandths)| *thousandths > 0).map(|(closeness, liked)| (liked, closeness))
    };
    let best = FORMS.iter().rev().filter_map(|(format, ..)| Some((liking(*format)?, *format)));
    best.max_by_key(|(liking, _)| *liking).map(|(_, format)| format).ok_or_else(|| {
        let forms: Vec<_> = FORMS.iter().map(|(.., media, _)| media[0]).collect();
        ApiError::new(&codes::ACCEPT, format!("no answer has a form that Accept names; there are {}", forms.join(", ")))
    })
}

/// One range of media types.
struct Range<'a> {
    main: &'a str,
    sub: &'a str,
    thousandths: u32,
}

impl<'a> Range<'a> {
    /// What cannot be read is passed over.
    fn of(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (main, sub) = parts.next()?.split_once('/')?;
        let quality =
            parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        let thousandths = match quality {
            None => 1_000,
            Some((_, value)) => {
                let value: f32 = value.trim().parse().ok().filter(|value| (0.0..=1.0).contains(value))?;
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1000")]
                let thousandths = (value * 1_000.0).round() as u32;
                thousandths
            }
        };
        Some(Self { main, sub, thousandths })
    }

    /// How closely it names a form, if it does.
    fn fits(&self, format: Format) -> Option<u8> {
        let names = |media: &&str| {
            media.split_once('/').is_some_and(|(main, sub)| {
                main.eq_ignore_ascii_case(self.main) && (self.sub == "*" || sub.eq_ignore_ascii_case(self.sub))
            })
        };
        match (self.main, self.sub) {
            ("*", "*") => Some(0),
            // the first name is the form's own: a star means no others
            (_, "*") => names(&format.media()).then_some(1),
            _ => format.form().2.iter().any(names).then_some(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str, accept: &[&str]) -> Result<Form, ApiError> {
        let uri = format!("/v1/query?{query}").parse().unwrap();
        let mut headers = HeaderMap::new();
        for value in accept {
            headers.append(header::ACCEPT, value.parse().unwrap());
        }
        Form::of(&Params::new(&uri), &headers)
    }

    #[test]
    fn accept_is_read_as_http_says() {
        for (accept, format) in [
            (&[][..], Format::Json),
            (&["*/*"], Format::Json),
            (&["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"], Format::Json),
            (&["application/x-ndjson"], Format::Ndjson),
            (&["application/JSONL"], Format::Ndjson),
            (&["text/csv, */*"], Format::Csv),
            (&["text/*"], Format::Csv),
            (&["application/*"], Format::Json),
            (&["application/json;q=0.5, text/csv;q=0.6"], Format::Csv),
            (&["application/json;q=0.5", "application/vnd.apache.arrow.stream"], Format::Arrow),
            // JSON is excluded by its closest range
            (&["*/*;q=0.1, application/json;q=0"], Format::Ndjson),
            (&["garbage"], Format::Json),
            (&["text/csv;q=2, application/ndjson;charset=utf-8;q=0.3"], Format::Ndjson),
        ] {
            assert_eq!(of("", accept).unwrap().format, format, "{accept:?}");
        }
        for accept in [&["text/html"][..], &["text/csv;q=0"], &["application/json;q=0, image/*"]] {
            assert_eq!(of("", accept).unwrap_err().code().name, "accept.unsupported", "{accept:?}");
        }
    }

    #[test]
    fn the_parameter_wins_and_unknown_words_are_refused() {
        assert_eq!(of("format=csv", &["application/json"]).unwrap().format, Format::Csv);
        assert_eq!(of("format=ndjson&numbers=string", &[]).unwrap().numbers, Numbers::String);
        for (query, word) in [
            ("format=xml", "json, ndjson, csv, arrow"),
            ("format=JSON", "json"),
            ("format=", "json"),
            ("numbers=float", "number, string"),
            ("format=csv&numbers=string", "json and ndjson"),
            ("format=csv&format=csv", "more than once"),
        ] {
            let refused = of(query, &[]).unwrap_err();
            assert!(refused.message().contains(word), "{query}: {}", refused.message());
        }
    }
}
