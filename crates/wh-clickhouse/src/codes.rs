//! What ClickHouse's exception codes and codeless answers mean, as data. Wordings decide nothing but the two kinds of
//! "too many parts", which share a code.

/// What a failed insert means for its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The server cannot take rows now. They wait.
    Unavailable,
    /// The server refuses our identity or our rights. The rows wait for an operator.
    Denied,
    /// Nothing that we recognise. The rows wait.
    Unknown,
    /// Some row of these will never be taken. Find it.
    Rejected,
}

/// What a failed query means for who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryFailure {
    /// A limit on rows, bytes, or on the asking role. 400.
    Limit,
    /// The query itself cannot work. 400.
    Rejected,
    /// Our user lacks a grant. 403.
    AccessDenied,
    /// Our credentials, database, address or proxy are wrong. 502.
    Misconfigured,
    /// The server cannot answer now. 503.
    Unavailable,
    /// The answer is larger than we take. 502.
    TooLarge,
    /// Nothing that we recognise. 500.
    Unknown,
}

/// Which caps of the asking role were sent with a query: what they cut off is the caller's, not the server's trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoleCaps {
    /// A cap on execution time.
    pub time: bool,
    /// A cap on memory.
    pub memory: bool,
}
