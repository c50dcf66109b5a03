//! Putting a request together: parameters, settings, body. Pure; sends nothing.

use crate::{
    Error, Insert, Kind, Query, Result, ServerSettings, body::Pieces, error::Purpose, form, options::Target, sql,
};
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::{HeaderValue, Method, Request};
use wh_types::frame;

/// The longest request line that the HTTP library can send (64 KiB), less room for the origin.
const LONGEST_URI: usize = 60 * 1024;
/// ClickHouse's own size of a block. An insert of fewer rows is one block; one of more is given a larger block.
const BLOCK_ROWS: u64 = 1_048_449;

/// Settings that every insert has: those that change what a row means, and those by which an insert is one block, so
/// that a cut upload stores nothing. `true`: every version knows it; `false`: sent where the server is known to.
const PINNED: &[(&str, &str, bool)] = &[
    ("async_insert", "0", true),
    ("date_time_input_format", "best_effort", true),
    ("input_format_allow_errors_num", "0", true),
    ("input_format_allow_errors_ratio", "0", true),
    ("input_format_column_name_matching_mode", "match_case", false),
    ("input_format_defaults_for_omitted_fields", "1", true),
    ("input_format_import_nested_json", "0", true),
    ("input_format_null_as_default", "1", true),
    // pieces of a body that are parsed in parallel are blocks of their own; and one connection inserts batches of
    // 10,000 rows of 256 bytes an eighth slower with it
    ("input_format_parallel_parsing", "0", true),
    ("input_format_skip_unknown_fields", "0", true),
    ("max_insert_block_size_bytes", "0", false),
];

/// The parameters of a request, in the order they were added. A later one wins.
struct Line {
    query: Serializer<'static, String>,
}

impl Line {
    fn new(database: &str) -> Self {
        let mut query = Serializer::new(String::new());
        query.append_pair("database", database);
        Self { query }
    }

    fn add(&mut self, name: &str, value: &str) {
        self.query.append_pair(name, value);
    }

    fn finish(mut self, target: &Target) -> String {
        format!("{}{}?{}", target.origin, target.path, self.query.finish())
    }
}

fn build(purpose: Purpose, method: Method, target: &Target, uri: String, body: Pieces) -> Result<Request<Pieces>> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri.parse().map_err(|cause: http::uri::InvalidUri| {
        Error::new(Kind::Invalid, purpose, "the request line cannot be built").caused(cause)
    })?;
    *request.headers_mut() = target.headers.clone();
    Ok(request)
}

/// The request of an insert.
pub(crate) fn insert(
    purpose: Purpose,
    target: &Target,
    database: &str,
    known: Option<&ServerSettings>,
    insert: &Insert<'_>,
) -> Result<Request<Pieces>> {
    let columns = match insert.columns {
        None => String::new(),
        Some([]) => return Err(Error::new(Kind::Invalid, purpose, "the list of columns is empty")),
        Some(columns) => format!(" ({})", sql::quoted_list(columns.iter().map(String::as_str))),
    };
    let sql = format!("INSERT INTO {}{columns} FORMAT JSONEachRow", sql::quoted(insert.table.as_str()));
    let mut line = Line::new(database);
    // the text travels in the line, where proxies and logs see it; one too long is a frame before the rows
    let long = sql.len() > LONGEST_URI / 4;
    if !long {
        line.add("query", &sql);
    }
    for (name, value, always) in PINNED {
        if *always || known.is_some_and(|known| known.knows(name)) {
            line.add(name, value);
        }
    }
    line.add("max_insert_block_size", &(insert.rows.saturating_add(1)).max(BLOCK_ROWS).to_string());
    if let Some(token) = insert.token {
        line.add("insert_deduplication_token", token);
    }
    for (name, value) in insert.settings {
        line.add(name, value);
    }
    let uri = checked(purpose, line.finish(target))?;
    let mut pieces = Vec::with_capacity(insert.frames.len() + 1);
    if long {
        pieces.push(
            frame::encode(insert.encoding, format!("{sql}\n").as_bytes()).map_err(|cause| {
                Error::new(Kind::Invalid, purpose, "the statement cannot be compressed").caused(cause)
            })?,
        );
    }
    pieces.extend_from_slice(insert.frames);
    let mut request = build(purpose, Method::POST, target, uri, Pieces::new(pieces))?;
    request.headers_mut().insert("content-encoding", HeaderValue::from_static(insert.encoding.name()));
    Ok(request)
}

/// The request of a query.
pub(crate) fn query(
    purpose: Purpose,
    target: &Target,
    database: &str,
    known: Option<&ServerSettings>,
    compress: bool,
    query: &Query,
) -> Result<Request<Pieces>> {
    let mut line = Line::new(database);
    // a user who may change no setting is read-only already, and would be refused for what we add
    let settings = known.and_then(|known| known.value("readonly")) != Some("1");
    if settings {
        if query.read_only {
            line.add("readonly", "2");
            line.add("cancel_http_readonly_queries_on_client_close", "1");
        }
        if known.is_some_and(|known| known.knows("http_write_exception_in_output_format")) {
            line.add("http_write_exception_in_output_format", "0");
        }
        if compress {
            line.add("enable_http_compression", "1");
        }
    }
    if query.wait_end {
        line.add("wait_end_of_query", "1");
    }
    if let Some(format) = &query.format {
        line.add("default_format", format);
    }
    for (name, value) in &query.settings {
        line.add(name, value);
    }
    let params: Vec<(String, &str)> =
        query.params.iter().map(|(name, value)| (format!("param_{name}"), &**value)).collect();
    let length: usize = params.iter().map(|(name, value)| name.len() + value.len()).sum();
    // a byte may take three in the line
    let mut request = if length * 3 <= LONGEST_URI / 2 {
        for (name, value) in &params {
            line.add(name, value);
        }
        let uri = checked(purpose, line.finish(target))?;
        let body = Pieces::new([Bytes::copy_from_slice(query.sql.as_bytes())]);
        build(purpose, Method::POST, target, uri, body)?
    } else {
        let uri = checked(purpose, line.finish(target))?;
        let mut fields: Vec<(&str, &str)> = params.iter().map(|(name, value)| (&**name, *value)).collect();
        fields.push(("query", &query.sql));
        let (body, kind) = form::encode(&fields)
            .map_err(|(name, why)| Error::new(Kind::Invalid, purpose, format!("the parameter {name:?} {why}")))?;
        let kind = HeaderValue::try_from(kind)
            .map_err(|cause| Error::new(Kind::Invalid, purpose, "the form has no media type").caused(cause))?;
        let mut request = build(purpose, Method::POST, target, uri, Pieces::new([body]))?;
        request.headers_mut().insert("content-type", kind);
        request
    };
    if compress {
        request.headers_mut().insert("accept-encoding", HeaderValue::from_static("zstd"));
    }
    Ok(request)
}

/// The request that asks for a sign of life.
pub(crate) fn ping(purpose: Purpose, target: &Target) -> Result<Request<Pieces>> {
    let uri = format!("{}{}ping", target.origin, target.path);
    build(purpose, Method::GET, target, uri, Pieces::new([]))
}

fn checked(purpose: Purpose, uri: String) -> Result<String> {
    if uri.len() > LONGEST_URI {
        let text = format!("settings make a request line of {} bytes, at most {LONGEST_URI}", uri.len());
        return Err(Error::new(Kind::Invalid, purpose, text));
    }
    Ok(uri)
}

#[cfg(test)]
mod tests;
