//! The request body: pieces end to end, with a known length, so that a cut upload is never taken for a whole one.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

/// Whether any of a body was taken for sending. Until then nothing can have happened on the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun(Arc<AtomicBool>);

impl Begun {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Pieces, sent without copying.
#[derive(Debug)]
pub(crate) struct Pieces {
    pieces: VecDeque<Bytes>,
    left: u64,
    begun: Begun,
}

impl Pieces {
    pub(crate) fn new(pieces: impl IntoIterator<Item = Bytes>) -> Self {
        let pieces: VecDeque<Bytes> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
        let left = pieces.iter().map(|piece| piece.len() as u64).sum();
        Self { pieces, left, begun: Begun::default() }
    }

    pub(crate) fn begun(&self) -> Begun {
        self.begun.clone()
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.begun.0.store(true, Ordering::Release);
        let piece = self.pieces.pop_front();
        self.left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Poll::Ready(piece.map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
