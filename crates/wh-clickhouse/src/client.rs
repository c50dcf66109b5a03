//! The client: connections, credentials, and the four things asked of ClickHouse.

use crate::{Answer, Insert, Inserted, Options, Query, Result};
use std::{fmt, sync::Arc};

/// Speaks to one ClickHouse as one user in one database. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    options: Options,
}

impl Client {
    /// Checks the options. Connects to nothing.
    ///
    /// # Errors
    /// [`Kind::Invalid`](crate::Kind::Invalid), naming the option and the reason.
    pub fn new(options: Options) -> Result<Self> {
        Ok(Self(Arc::new(Inner { options })))
    }

    /// The database that unqualified names mean.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.0.options.database
    }

    /// Whose trouble a pool failure is: equal for clients that share server, user and database.
    #[must_use]
    pub fn pool_key(&self) -> &str {
        &self.0.options.url
    }

    /// Inserts rows: all of them, or none, or unknown ([`Error::in_doubt`](crate::Error::in_doubt)).
    ///
    /// # Errors
    /// [`Error::failure`](crate::Error::failure) says what becomes of the rows.
    ///
    /// # Cancel safety
    /// Detached: dropping the future may or may not stop the insert. Repeat under the same token.
    #[expect(clippy::unused_async, reason = "filled in next")]
    pub async fn insert(&self, _insert: Insert<'_>) -> Result<Inserted> {
        Ok(Inserted { query_id: None, written_rows: None })
    }

    /// Runs a query and returns once its answer begins.
    ///
    /// # Errors
    /// [`Error::query_failure`](crate::Error::query_failure) says what it means for who asked.
    ///
    /// # Cancel safety
    /// Detached: dropping the future closes the connection; a read is then cancelled, a write may go on.
    pub async fn query(&self, query: Query) -> Result<Answer> {
        drop(query);
        std::future::pending().await
    }

    /// Runs a statement to its end and forgets its answer: definitions, in tests and the quickstart.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    ///
    /// # Cancel safety
    /// Detached: the statement may go on.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        self.query(Query { wait_end: true, ..Query::any(sql) }).await?.bytes(1 << 20).await.map(drop)
    }

    /// Whether the server answers at all. Checks neither credentials nor the database.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    ///
    /// # Cancel safety
    /// Safe.
    #[expect(clippy::unused_async, reason = "filled in next")]
    pub async fn ping(&self) -> Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { url, database, user, .. } = &self.0.options;
        write!(f, "Client({user}@{url} {database})")
    }
}
