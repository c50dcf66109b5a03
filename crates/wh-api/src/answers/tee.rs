//! A streamed answer that is kept once it has ended well, if it is small enough. Nothing waits for that but its end.

use super::{Place, kept::pack};
use crate::budget::{Budget, Held};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{HeaderName, HeaderValue};
use std::{io, sync::Arc};
use wh_types::{Clock, Mono};

/// What keeping a stream takes.
#[derive(Debug)]
pub(crate) struct Tee {
    place: Place,
    told: Vec<(HeaderName, HeaderValue)>,
    began: Mono,
    clock: Arc<dyn Clock>,
    gathered: Gathered,
}

/// What has come so far.
#[derive(Debug)]
struct Gathered {
    pieces: Vec<Bytes>,
    bytes: usize,
    most: usize,
    budget: Budget,
    held: Option<Held>,
    /// It is too large, or there is no room for it now.
    over: bool,
}

impl super::Answers {
    /// For an answer whose computation begins now.
    pub(crate) fn gather(&self, place: Place, told: Vec<(HeaderName, HeaderValue)>) -> Tee {
        let (budget, most) = (self.gathering.clone(), self.most());
        Tee {
            place,
            told,
            began: self.clock.now(),
            clock: Arc::clone(&self.clock),
            gathered: Gathered { pieces: Vec::new(), bytes: 0, most, budget, held: None, over: false },
        }
    }
}

impl Gathered {
    fn take(&mut self, piece: &Bytes) {
        if self.over {
            return;
        }
        self.bytes += piece.len();
        if self.held.is_none() {
            self.held = self.budget.try_take(self.most);
        }
        if self.bytes > self.most || self.held.is_none() {
            (self.over, self.held) = (true, None);
            self.pieces = Vec::new();
        } else {
            // a copy: what came may be a part of something larger
            self.pieces.push(Bytes::copy_from_slice(piece));
        }
    }
}

/// Passes a body on and keeps it. One that fails, or whose reader leaves, is not kept.
pub(crate) fn tee(
    body: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    tee: Tee,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let state = (Box::pin(body), Some(tee));
    let pieces = stream::unfold(state, |(mut body, mut tee)| async move {
        match body.next().await {
            Some(Ok(piece)) => {
                if let Some(tee) = &mut tee {
                    tee.gathered.take(&piece);
                }
                Some((Ok(piece), (body, tee)))
            }
            Some(Err(error)) => Some((Err(error), (body, None))),
            None => {
                if let Some(tee) = tee.take() {
                    tee.keep().await;
                }
                None
            }
        }
    });
    pieces.fuse()
}

impl Tee {
    async fn keep(self) {
        let Self { place, told, began, clock, gathered } = self;
        if gathered.over {
            return;
        }
        let Some(value) = pack(&told, &gathered.pieces, gathered.most) else { return };
        let took = clock.now().saturating_duration_since(began);
        if let Err(error) = place.cache.put(&place.at, &place.key, value, place.life.of(took)).await {
            tracing::debug!(%error, "an answer is not kept");
        }
    }
}
