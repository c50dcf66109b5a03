//! A block as a message: headers and the body as it is (decision D1). Pure.
//!
//! The tenant and the table are the subject's. Reading is bounded and gives [`Unreadable`] where a message is no block
//! of ours, which its reader parks whole.

use bytes::Bytes;
use std::sync::Arc;
use wh_nats::Headers;
use wh_types::{Block, BlockId, Chain, Encoding, MAX_BLOCK_ROWS, Timestamp, TopicKey};

/// The version of these headers.
pub(crate) const FORMAT: &str = "1";
/// Most bytes of a decoded body: the most that a server takes as a message, which rows packed into it may not exceed.
const MAX_DECODED: u32 = 64 * 1024 * 1024;
/// Longest process name of a chain, and longest trace.
pub(crate) const MAX_TEXT: usize = 512;

pub(crate) const WH_FORMAT: &str = "Wh-Format";
pub(crate) const WH_ROWS: &str = "Wh-Rows";
pub(crate) const WH_BYTES: &str = "Wh-Bytes";
pub(crate) const WH_RECEIVED: &str = "Wh-Received";
pub(crate) const WH_ENCODING: &str = "Wh-Encoding";
pub(crate) const WH_CHAIN: &str = "Wh-Chain";
pub(crate) const TRACEPARENT: &str = "traceparent";
pub(crate) const MSG_ID: &str = "Nats-Msg-Id";

/// A message that is no block of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub(crate) struct Unreadable {
    /// The header at fault, or `subject` or `body`.
    pub(crate) field: &'static str,
    /// What is wrong with it.
    pub(crate) problem: String,
}

fn unreadable(field: &'static str, problem: impl Into<String>) -> Unreadable {
    Unreadable { field, problem: problem.into() }
}

/// The headers of a block. Its message's body is the block's own. The id comes first, a name that the client knows.
pub(crate) fn headers(block: &Block) -> Headers {
    let mut headers = Headers::with_capacity(288);
    headers.append(MSG_ID, block.id);
    headers.append(WH_FORMAT, FORMAT);
    headers.append(WH_ROWS, block.rows);
    headers.append(WH_BYTES, block.decoded_bytes);
    headers.append(WH_RECEIVED, block.received);
    headers.append(WH_ENCODING, block.encoding.name());
    if let Some(chain) = &block.chain {
        headers.append(WH_CHAIN, format_args!("{}-{}", chain.process, chain.n));
    }
    if let Some(trace) = &block.trace {
        headers.append(TRACEPARENT, trace);
    }
    headers
}

/// The headers of a block as they were received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fields<'a> {
    format: Option<&'a str>,
    rows: Option<&'a str>,
    bytes: Option<&'a str>,
    received: Option<&'a str>,
    encoding: Option<&'a str>,
    id: Option<&'a str>,
    chain: Option<&'a str>,
    trace: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// Takes the first value of each name: what a history adds comes after what a partition stored.
    pub(crate) fn of(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut fields = Self::default();
        for (name, value) in headers {
            let field = match name {
                WH_FORMAT => &mut fields.format,
                WH_ROWS => &mut fields.rows,
                WH_BYTES => &mut fields.bytes,
                WH_RECEIVED => &mut fields.received,
                WH_ENCODING => &mut fields.encoding,
                MSG_ID => &mut fields.id,
                WH_CHAIN => &mut fields.chain,
                TRACEPARENT => &mut fields.trace,
                _ => continue,
            };
            field.get_or_insert(value);
        }
        fields
    }
}

/// The table that a subject's part after the prefix, the topic key, names.
///
/// # Errors
/// [`Unreadable`]: it names none.
pub(crate) fn topic(tail: &str) -> Result<TopicKey, Unreadable> {
    TopicKey::parse(tail).ok_or_else(|| unreadable("subject", "it names no tenant and table"))
}

/// Reads a block of a table.
///
/// # Errors
/// [`Unreadable`]: it is no block of ours.
pub(crate) fn decode(key: &TopicKey, fields: &Fields<'_>, body: Bytes) -> Result<Block, Unreadable> {
    let known = |name: &'static str, value: Option<_>| value.ok_or_else(|| unreadable(name, "it is missing"));
    match known(WH_FORMAT, fields.format)? {
        FORMAT => {}
        other => return Err(unreadable(WH_FORMAT, format!("{} is not known here", show(other)))),
    }
    let rows = number(WH_ROWS, known(WH_ROWS, fields.rows)?, MAX_BLOCK_ROWS)?;
    let decoded_bytes = number(WH_BYTES, known(WH_BYTES, fields.bytes)?, MAX_DECODED)?;
    let received = known(WH_RECEIVED, fields.received)?;
    let received =
        received.parse::<Timestamp>().map_err(|_| unreadable(WH_RECEIVED, format!("{} is no time", show(received))))?;
    let encoding = known(WH_ENCODING, fields.encoding)?;
    let encoding = encoding
        .parse::<Encoding>()
        .map_err(|()| unreadable(WH_ENCODING, format!("{} is not known here", show(encoding))))?;
    let id = known(MSG_ID, fields.id)?;
    let id = BlockId::parse(id).ok_or_else(|| unreadable(MSG_ID, format!("{} is no id of a block", show(id))))?;
    if (rows == 0) != body.is_empty() {
        return Err(unreadable("body", format!("it has {} bytes and {rows} rows", body.len())));
    }
    let chain = fields.chain.map(chain).transpose()?;
    // a trace that is too long is only not followed
    let trace = fields.trace.filter(|trace| trace.len() <= MAX_TEXT).map(Arc::from);
    let (tenant, table) = (key.tenant().clone(), key.table().clone());
    Ok(Block { id, tenant, table, received, rows, decoded_bytes, encoding, body, chain, trace })
}

fn chain(text: &str) -> Result<Chain, Unreadable> {
    let bad = || unreadable(WH_CHAIN, format!("{} is no process and number", show(text)));
    let (process, n) = text.rsplit_once('-').ok_or_else(bad)?;
    if process.len() > MAX_TEXT || !n.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    Ok(Chain { process: Arc::from(process), n: n.parse().map_err(|_| bad())? })
}

fn number(field: &'static str, text: &str, most: u32) -> Result<u32, Unreadable> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<u32>() {
        Ok(number) if digits && number <= most => Ok(number),
        _ => Err(unreadable(field, format!("{} is no number up to {most}", show(text)))),
    }
}

/// A value from outside in a message of ours: bounded, its controls escaped.
fn show(text: &str) -> String {
    let short: String = text.chars().take(64).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}

#[cfg(test)]
mod tests;
