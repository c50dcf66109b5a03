//! Closing a connection whose request was answered before its body had come. Closed at once, the system would reset it
//! over the unread bytes, and the client would lose the answer that says why. So what still comes is read and thrown
//! away for a while, after our side was closed.

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Sleep, sleep},
};

/// How long what still comes is read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the request at hand has a body that was not read to its end. Shared by a connection and its bodies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unread(Arc<AtomicBool>);

impl Unread {
    /// Watches the body of the connection's next request.
    pub(crate) fn watch<B: Body>(&self, body: B) -> Watched<B> {
        self.0.store(!body.is_end_stream(), Ordering::Relaxed);
        Watched { body, unread: self.clone() }
    }

    /// Whether some of it has not been read.
    pub(crate) fn is_left(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A body that says when it was read to its end.
#[derive(Debug)]
pub(crate) struct Watched<B> {
    body: B,
    unread: Unread,
}

impl<B: Body<Data: Buf> + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if frame.is_none() || self.body.is_end_stream() {
            self.unread.0.store(false, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection that closes so.
#[derive(Debug)]
pub(crate) struct Lingering {
    stream: TcpStream,
    unread: Unread,
    /// Set once our side is closed.
    until: Option<Pin<Box<Sleep>>>,
}

impl Lingering {
    pub(crate) fn new(stream: TcpStream, unread: Unread) -> Self {
        Self { stream, unread, until: None }
    }
}

impl AsyncRead for Lingering {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.until.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            if !this.unread.is_left() {
                return Poll::Ready(Ok(()));
            }
        }
        let until = this.until.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        let mut waste = [0; 16 * 1024];
        while until.as_mut().poll(cx).is_pending() {
            let mut waste = ReadBuf::new(&mut waste);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut waste)) {
                Ok(()) if !waste.filled().is_empty() => {}
                // the client has closed its side too, or is gone
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
