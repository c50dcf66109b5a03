//! HTTP: ingest, query, stream, ops, health.
//!
//! [`Api`] is a [`tower::Service`] put together from plain [`Parts`]; whoever has a server mounts it. Nothing here
//! listens, reads configuration or knows which queue it speaks to.
//!
//! A request's way: tenant, credentials, table, form, body, and then what its path is about. Whatever fails has one
//! form, with a code from one table ([`errors_markdown`]).

mod answers;
mod api;
mod app;
mod auth;
mod body;
mod budget;
mod check;
mod clickhouse;
mod codes;
mod compress;
mod dedupe;
mod error;
mod ingest;
mod json;
mod metrics;
mod openapi;
mod ops;
mod options;
mod params;
mod pipes;
mod probes;
mod query;
mod request_id;
mod rows;
mod served;
mod stream;
mod tenant;
mod types;
mod ui;

pub use answers::{AnswerCache, Invalidation};
pub use api::Api;
pub use app::{Parts, RenderMetrics};
pub use auth::OperatorKey;
pub use check::{Checked, Checker};
pub use codes::errors_markdown;
pub use dedupe::{DedupeRules, DedupeStore, IdRule, OnOutage};
pub use metrics::METRICS;
pub use openapi::openapi_json;
pub use options::{ApiOptions, Surface};
pub use pipes::{PipeFinding, PipeSet, Pipes};
pub use probes::{Check, Health, Version};
pub use stream::filters_markdown as stream_filters_markdown;
pub use tenant::{Mode, TenantLimits, TenantRuntime, Tenants};
