//! Judges a body against a table without storing anything: for tools and benchmarks.

use crate::{
    Mode,
    ingest::{Dialect, Form, Header, Judge, Piece, Plan, Records, Refusal, Sheet, Syntax, Walk},
};
use std::sync::Arc;
use wh_clickhouse::TableSchema;

/// What [`Checker::check`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Records in the body.
    pub total: u32,
    /// How many of them would be refused.
    pub rejected: u32,
    /// Bytes of the rows that would be queued.
    pub bytes: usize,
}

/// A table laid out for judging; made once for a schema.
#[derive(Debug)]
pub struct Checker(Plan);

impl Checker {
    /// For records of this table.
    #[must_use]
    pub fn new(schema: Arc<TableSchema>, mode: Mode) -> Self {
        Self(Plan::new(schema, mode))
    }

    /// Judges a body of NDJSON (`lines`) or one JSON document. Rows have at most 1 MiB.
    ///
    /// # Errors
    /// Why the whole body would be refused.
    pub fn check(&self, body: &[u8], lines: bool) -> Result<Checked, String> {
        let form = if lines { Form::Lines } else { Form::Document };
        let mut records = Records::default();
        let mut judge = Judge::new(&self.0);
        let mut walk = Walk::begin(form, body, 1 << 20).map_err(|refusal| refusal.reason.into_string())?;
        while walk.step(&mut judge, &mut records).map_err(|refusal| refusal.reason.into_string())? {}
        let bytes = records.rows(body).map(<[u8]>::len).sum();
        Ok(Checked { total: records.total, rejected: records.rejected(), bytes })
    }

    /// Judges a body of CSV without a header, and makes its rows.
    ///
    /// # Errors
    /// Why the whole body would be refused.
    pub fn check_csv(&self, body: &[u8]) -> Result<Checked, String> {
        self.cells(Syntax::Csv, body)
    }

    /// The same of TSV.
    ///
    /// # Errors
    /// Why the whole body would be refused.
    pub fn check_tsv(&self, body: &[u8]) -> Result<Checked, String> {
        self.cells(Syntax::Tsv, body)
    }

    fn cells(&self, syntax: Syntax, body: &[u8]) -> Result<Checked, String> {
        let dialect = Dialect { syntax, header: Header::Absent };
        let mut records = Records::default();
        let mut judge = Judge::new(&self.0);
        let text = |refusal: Refusal| refusal.reason.into_string();
        let mut sheet = Sheet::begin(dialect, body, &self.0, 1 << 20).map_err(text)?;
        while sheet.step(&mut judge, &mut records).map_err(text)? {}
        let (mut places, mut piece, mut bytes) = (records.places(), Piece::default(), 0);
        loop {
            sheet.piece(&mut places, &mut judge, &mut piece);
            if piece.len() == 0 {
                return Ok(Checked { total: records.total, rejected: records.rejected(), bytes });
            }
            bytes += piece.rows().map(<[u8]>::len).sum::<usize>();
        }
    }
}
