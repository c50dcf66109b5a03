//! Data shapes that other systems lost or changed, by the numbers of the case list (`docs/testing-cases.md`): each is
//! posted to the API, inserted as the worker inserts, and read back. Those that a version decides run on the older and
//! on the newer engine.

mod both;
mod older;

use crate::{
    differential::engine::{Bench, Newer, Served},
    rig::{Reply, Rig, Setup},
};
use std::sync::Arc;
use wh_api::{Mode, TenantLimits};
use wh_clickhouse::{Column, ColumnKind, Schema, SchemaHandle, TableSchema, types::Type};
use wh_types::Timestamp;

/// One table on an engine, and an API in front of it.
struct Case<'b, B> {
    bench: &'b B,
    table: String,
    /// What an insert names, where a column is EPHEMERAL.
    list: Option<Vec<String>>,
    rig: Rig,
}

impl<'b, B: Bench> Case<'b, B> {
    /// A table with these columns.
    async fn new(bench: &'b B, table: &str, mode: Mode, columns: &str) -> Self {
        bench.run(&format!("CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY tuple()")).await.unwrap();
        Self::over(bench, table, mode).await
    }

    /// A table that is there.
    async fn over(bench: &'b B, table: &str, mode: Mode) -> Self {
        let sql = format!(
            "SELECT name, type, default_kind, position FROM system.columns WHERE database = currentDatabase() AND table = \
             '{table}' ORDER BY position FORMAT TSVRaw"
        );
        let columns: Vec<Column> = bench.run(&sql).await.unwrap().lines().map(column).collect();
        let ephemeral = columns.iter().any(|column| column.kind == ColumnKind::Ephemeral);
        let list = ephemeral.then(|| columns.iter().filter(|c| c.writable()).map(|c| c.name.clone()).collect());
        let schema = Schema {
            version: bench.name().into(),
            timezone: "UTC".into(),
            settings: Arc::default(),
            tables: [("t".to_owned(), Arc::new(TableSchema::new("t", "MergeTree", columns)))].into(),
            taken_at: Timestamp::default(),
        };
        let limits = TenantLimits { table_modes: [("t".into(), mode)].into(), ..TenantLimits::default() };
        let rig = Rig::with(Setup { limits, schema: SchemaHandle::fixed(schema), ..Setup::default() });
        Self { bench, table: table.to_owned(), list, rig }
    }

    /// Posts records and inserts those that were accepted; gives the code of each that was refused, by its index.
    async fn ingest(&self, records: &[&str]) -> Vec<(u64, String)> {
        let reply = self.post(records).await;
        self.flush().await.unwrap();
        refused(&reply)
    }

    async fn post(&self, records: &[&str]) -> Reply {
        self.rig.lines(records.join("\n")).await
    }

    /// Inserts what is queued as one batch.
    async fn flush(&self) -> Result<(), String> {
        match self.rig.rows().await {
            rows if rows.is_empty() => Ok(()),
            rows => self.insert(&rows).await,
        }
    }

    /// Inserts what is queued; where that is refused, row by row, and gives the rows that are refused alone.
    async fn flush_apart(&self) -> Vec<String> {
        let rows = self.rig.rows().await;
        let mut refused = Vec::new();
        if self.insert(&rows).await.is_err() {
            for row in rows {
                if self.insert(std::slice::from_ref(&row)).await.is_err() {
                    refused.push(row);
                }
            }
        }
        refused
    }

    async fn insert(&self, rows: &[String]) -> Result<(), String> {
        self.bench.insert(&self.table, self.list.as_deref(), rows).await
    }

    async fn read(&self, select: &str) -> String {
        self.bench.run(&format!("SELECT {select} FROM {} FORMAT TSV", self.table)).await.unwrap().trim_end().to_owned()
    }

    async fn truncate(&self) {
        self.bench.run(&format!("TRUNCATE TABLE {}", self.table)).await.unwrap();
    }
}

fn column(line: &str) -> Column {
    let parts: Vec<&str> = line.split('\t').collect();
    let kind = match parts[2] {
        "" => ColumnKind::Ordinary,
        "DEFAULT" => ColumnKind::Default,
        "MATERIALIZED" => ColumnKind::Materialized,
        "ALIAS" => ColumnKind::Alias,
        _ => ColumnKind::Ephemeral,
    };
    Column {
        name: parts[0].into(),
        type_text: parts[1].into(),
        ty: Type::parse(parts[1]),
        kind,
        default_expression: String::new(),
        position: parts[3].parse().unwrap(),
    }
}

fn refused(reply: &Reply) -> Vec<(u64, String)> {
    reply.results().into_iter().map(|(index, _, code)| (index, code)).collect()
}

fn codes(of: &[(u64, &str)]) -> Vec<(u64, String)> {
    of.iter().map(|(index, code)| (*index, (*code).to_owned())).collect()
}

/// A test of each case on the older engine, and one of all of them on the newer.
macro_rules! on_both {
    ($($case:ident),* $(,)?) => {
        mod older_engine {
            $(#[tokio::test]
            async fn $case() {
                super::both::$case(&super::Served::new().await).await;
            })*
        }

        #[tokio::test]
        async fn every_case_holds_on_the_newer_engine() {
            let bench = Newer::new().await;
            $(both::$case(&bench).await;)*
        }
    };
}

on_both! {
    case_01_a_bare_number_for_a_datetime64_is_one_instant_on_every_version,
    case_02_fractions_are_exact_to_the_scale_and_2300_is_no_date_in_1970,
    case_04_zoneless_times_in_gaps_and_overlaps_are_the_columns,
    case_05_dates_out_of_range_are_refused_or_clamped_and_never_wrapped,
    case_06_integers_out_of_range_are_refused_and_lenient_wraps_as_clickhouse_does,
    case_07_the_largest_integers_keep_their_digits,
    case_10_a_decimal_takes_numbers_in_every_spelling,
    case_11_a_float_is_parsed_from_the_text_that_was_sent,
    case_13_dotted_and_duplicate_names_have_one_rule,
    case_14_a_dotted_key_beside_a_nested_one_costs_its_own_row_alone,
    case_15_keys_with_dots_come_back_nested,
    case_19_computed_and_ephemeral_columns_do_what_they_do_in_clickhouse,
    case_20_absent_null_and_default_are_three_things,
    case_21_a_required_column_that_is_missing_is_told,
    case_24_a_fixed_string_counts_bytes,
    case_25_addresses_are_read_as_clickhouse_reads_them,
    case_26_empty_and_absent_arrays_are_arrays_and_unequal_parts_cost_one_row,
    case_28_rows_of_a_json_column_keep_their_own_keys,
    white_space_inside_of_a_value_is_stored_where_clickhouse_stores_it,
}
