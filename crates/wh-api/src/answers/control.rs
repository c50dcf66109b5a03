//! What a request's `Cache-Control` asks of kept answers. Pure.

use http::{HeaderMap, header};
use std::time::Duration;

/// What an asker takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// A kept answer of any age.
    Any,
    /// A kept answer that is not older.
    Within(Duration),
    /// One that is computed now; it is kept for others.
    Fresh,
    /// One that is computed now and not kept.
    Apart,
}

impl Freshness {
    /// Of a request. Words that cannot be read are passed over.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(header::CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
        let mut wanted = Self::Any;
        for word in values.flat_map(|value| value.split(',')) {
            let (name, argument) = word.split_once('=').unwrap_or((word, ""));
            let (name, argument) = (name.trim(), argument.trim().trim_matches('"'));
            let own = match () {
                () if name.eq_ignore_ascii_case("no-store") => Self::Apart,
                () if name.eq_ignore_ascii_case("no-cache") => Self::Fresh,
                () if name.eq_ignore_ascii_case("max-age") => match argument.parse() {
                    Ok(0) => Self::Fresh,
                    Ok(seconds) => Self::Within(Duration::from_secs(seconds)),
                    Err(_) => continue,
                },
                () => continue,
            };
            wanted = wanted.stricter(own);
        }
        wanted
    }

    fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::Apart, _) | (_, Self::Apart) => Self::Apart,
            (Self::Fresh, _) | (_, Self::Fresh) => Self::Fresh,
            (Self::Within(one), Self::Within(other)) => Self::Within(one.min(other)),
            (Self::Within(age), Self::Any) | (Self::Any, Self::Within(age)) => Self::Within(age),
            (Self::Any, Self::Any) => Self::Any,
        }
    }

    /// Whether an answer of this age will do.
    pub(super) fn takes(self, age: Duration) -> bool {
        match self {
            Self::Any => true,
            Self::Within(most) => age <= most,
            Self::Fresh | Self::Apart => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_word_counts() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::CACHE_CONTROL, value.parse().unwrap());
            }
            Freshness::of(&headers)
        };
        let within = |seconds| Freshness::Within(Duration::from_secs(seconds));
        for (values, expected) in [
            (&[][..], Freshness::Any),
            (&["only-if-cached, max-age=soon"], Freshness::Any),
            (&["no-cache"], Freshness::Fresh),
            (&["max-age=0"], Freshness::Fresh),
            (&["Max-Age=\"7\"", "max-age=5"], within(5)),
            (&["max-age=5, NO-CACHE"], Freshness::Fresh),
            (&["no-cache", "no-store"], Freshness::Apart),
        ] {
            assert_eq!(of(values), expected, "{values:?}");
        }
        assert!(within(5).takes(Duration::from_secs(5)) && !within(5).takes(Duration::from_secs(6)));
        assert!(Freshness::Any.takes(Duration::MAX) && !Freshness::Fresh.takes(Duration::ZERO));
    }
}
