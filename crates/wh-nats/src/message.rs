//! A message that was received.

use bytes::Bytes;
use std::fmt;

/// A message: what a subscription, a request or a direct get gives. Cloning copies its headers, not its body.
#[derive(Clone)]
pub struct Message(async_nats::Message);

impl Message {
    pub(crate) fn new(inner: async_nats::Message) -> Self {
        Self(inner)
    }

    /// The subject it was published to.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// Where its sender, or the server, wants an answer.
    #[must_use]
    pub fn reply(&self) -> Option<&str> {
        self.0.reply.as_deref()
    }

    /// Takes where an answer is wanted, so that it need not be copied.
    pub(crate) fn take_reply(&mut self) -> Option<async_nats::Subject> {
        self.0.reply.take()
    }

    /// The last value of a header: the server's own word, where a publisher had set the same name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.values(name)?.last().map(async_nats::HeaderValue::as_str)
    }

    /// The first value of a header: where a stored message was stored before, its first storage.
    #[must_use]
    pub fn header_first(&self, name: &str) -> Option<&str> {
        self.values(name)?.first().map(async_nats::HeaderValue::as_str)
    }

    /// Looked through: the map would make a name of its own to look it up, and hash it.
    fn values(&self, name: &str) -> Option<&[async_nats::HeaderValue]> {
        let mut all = self.0.headers.as_ref()?.iter();
        all.find(|(other, _)| AsRef::<str>::as_ref(*other) == name).map(|(_, values)| values.as_slice())
    }

    /// Every header with every value. Names come in no order, values of a name in theirs.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.headers.iter().flat_map(async_nats::HeaderMap::iter);
        all.flat_map(|(name, values)| values.iter().map(move |value| (AsRef::<str>::as_ref(name), value.as_str())))
    }

    /// Every header with its first value: where a stored message was stored before, its first storage. In no order.
    pub fn headers_first(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.0.headers.iter().flat_map(async_nats::HeaderMap::iter);
        all.filter_map(|(name, values)| Some((AsRef::<str>::as_ref(name), values.first()?.as_str())))
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.0.payload
    }

    /// The body, without a copy.
    #[must_use]
    pub fn into_body(self) -> Bytes {
        self.0.payload
    }

    /// The status and its text, which only messages made by the server have.
    #[must_use]
    pub fn status(&self) -> Option<(u16, &str)> {
        Some((self.0.status?.as_u16(), self.0.description.as_deref().unwrap_or_default()))
    }

    /// Bytes on the wire: subject, reply, headers and body.
    #[must_use]
    pub fn wire_len(&self) -> usize {
        self.0.length
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Message");
        shown.field("subject", &self.subject()).field("status", &self.status()).field("bytes", &self.body().len());
        shown.finish_non_exhaustive()
    }
}
