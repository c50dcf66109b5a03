//! The HTTP server: listens, accepts within a bound, serves each connection, and stops without cutting answers.

use crate::{
    front::Front,
    linger::{Lingering, Unread, Watched},
    metrics,
};
use axum::body::Body;
use http::{HeaderValue, Request, Response, header};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tracing::{debug, info, warn};
use wh_types::{Stop, Tasks};

/// The body of a request.
pub(crate) type Incoming = Watched<hyper::body::Incoming>;

/// Bounds of the server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_connections: usize,
    pub(crate) header_timeout: Duration,
}

/// Why the port could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else has it.
    #[error("cannot listen on {0}: the port is taken by another process (server.port, WH_SERVER_PORT)")]
    Taken(SocketAddr),
    /// The address is not this machine's, or the system refuses.
    #[error("cannot listen on {addr} (server.host, server.port): {source}")]
    Refused {
        /// Where.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// Opens the port.
pub(crate) async fn listen(addr: SocketAddr) -> Result<TcpListener, ListenError> {
    TcpListener::bind(addr).await.map_err(|source| {
        if source.kind() == io::ErrorKind::AddrInUse {
            ListenError::Taken(addr)
        } else {
            ListenError::Refused { addr, source }
        }
    })
}

/// What can be served.
pub(crate) trait Api:
    tower::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Api for S where
    S: tower::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    accept: Stop,
    cut: Stop,
    tasks: Tasks,
}

impl Server {
    /// Serves until [`Server::drain`].
    pub(crate) fn start<S: Api>(listener: TcpListener, front: Front<S>, limits: Limits) -> Self {
        let server = Self { accept: Stop::new(), cut: Stop::new(), tasks: Tasks::new() };
        let connections = Connections {
            front,
            limits,
            stop: server.accept.clone(),
            cut: server.cut.clone(),
            tasks: server.tasks.clone(),
        };
        server.tasks.spawn("http/accept", connections.accept(listener));
        server
    }

    /// Accepts no more, lets requests in flight end, closes what is idle; after `within` cuts the rest. Gives how many
    /// connections were cut.
    pub(crate) async fn drain(&self, within: Duration) -> usize {
        self.accept.give();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_ok() {
            return 0;
        }
        let cut = self.tasks.len();
        self.cut.give();
        self.tasks.wait().await;
        cut
    }
}

struct Connections<S> {
    front: Front<S>,
    limits: Limits,
    stop: Stop,
    cut: Stop,
    tasks: Tasks,
}

impl<S: Api> Connections<S> {
    async fn accept(self, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(self.limits.max_connections.min(Semaphore::MAX_PERMITS)));
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(self.limits.header_timeout);
        loop {
            let slot = tokio::select! {
                biased;
                () = self.stop.wait() => return,
                slot = self.slot(&slots) => slot,
            };
            let Some(slot) = slot else { return };
            let accepted = tokio::select! {
                biased;
                () = self.stop.wait() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let connection =
                        serve(builder.clone(), stream, self.front.clone(), self.stop.clone(), self.cut.clone());
                    let open = metrics::Connection::open();
                    self.tasks.spawn("http/connection", async move {
                        connection.await;
                        drop((slot, open));
                    });
                }
                Err(error) => self.wait_after(&error).await,
            }
        }
    }

    /// Room for one more connection.
    async fn slot(&self, slots: &Arc<Semaphore>) -> Option<tokio::sync::OwnedSemaphorePermit> {
        if let Ok(slot) = slots.clone().try_acquire_owned() {
            return Some(slot);
        }
        let max = self.limits.max_connections;
        warn!(max, "server.max_connections is reached ({max}), new connections wait");
        metrics::connections_full();
        let slot = slots.clone().acquire_owned().await.ok();
        info!("connections are accepted again");
        slot
    }

    /// Without file handles `accept` fails at once, again and again: let connections end first.
    async fn wait_after(&self, error: &io::Error) {
        use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
        if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
            return;
        }
        warn!(%error, "a connection could not be accepted, retrying in 1 s");
        tokio::select! {
            () = self.stop.wait() => {}
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
        }
    }
}

async fn serve<S: Api>(builder: http1::Builder, stream: TcpStream, front: Front<S>, stop: Stop, cut: Stop) {
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "TCP_NODELAY could not be set");
    }
    let unread = Unread::default();
    let stream = Lingering::new(stream, unread.clone());
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let (front, unread) = (front.clone(), unread.clone());
        let request = request.map(|body| unread.watch(body));
        async move {
            let mut answer = front.call(request).await?;
            // what is left of the body stands where the next request would: say that none is read
            if unread.is_left() {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.wait() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = cut.wait() => return,
            }
        }
    };
    if let Err(error) = ended {
        // clients that go away, and such that never speak HTTP
        debug!(%error, "a connection ended with an error");
    }
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
