//! One query: its text, typed parameters and settings. The text is sent as it is.

use std::time::Duration;

/// A query to run.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The text. Values belong into `params` (`{name:Type}` in the text), names through [`crate::sql::quoted`].
    pub sql: String,
    /// Names and values of `{name:Type}` parameters, the values in their wire form ([`crate::sql::scalar`] and its
    /// neighbours). At most 128 KiB a value; beyond 10 KB together, the text too has at most 128 KiB.
    pub params: Vec<(String, String)>,
    /// Settings of this query.
    pub settings: Vec<(String, String)>,
    /// The format of an answer whose text names none (`JSONEachRow`, ...). `None` is ClickHouse's `TabSeparated`.
    pub format: Option<String>,
    /// Refuse whatever writes (`readonly=2`), and stop in ClickHouse when the answer is dropped.
    pub read_only: bool,
    /// Most time from the first byte sent to the last byte read. `None`: the client's.
    pub timeout: Option<Duration>,
    /// Have ClickHouse finish before it answers, so that a failure always has its status and header. Costs its memory
    /// or disk for the whole answer.
    pub wait_end: bool,
}

impl Query {
    /// A query that may only read.
    #[must_use]
    pub fn read(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), read_only: true, ..Self::default() }
    }

    /// A query that may do anything its user may.
    #[must_use]
    pub fn any(sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), ..Self::default() }
    }

    /// With a value for the parameter `{name:Type}` of a scalar type, as plain text.
    #[must_use]
    pub fn param(self, name: impl Into<String>, value: impl AsRef<str>) -> Self {
        self.param_wire(name, crate::sql::scalar(value.as_ref()))
    }

    /// With a value in its wire form, as arrays and NULL need.
    #[must_use]
    pub fn param_wire(mut self, name: impl Into<String>, wire: impl Into<String>) -> Self {
        self.params.push((name.into(), wire.into()));
        self
    }

    /// With a setting.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// With a format for an answer whose text names none.
    #[must_use]
    pub fn format(mut self, format: impl Into<String>) -> Self {
        self.format = Some(format.into());
        self
    }

    /// With its own bound on time.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}
