//! What a client sees on its connection: a server of our own, and bytes.

use crate::rig::Rig;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use wh_types::Tasks;

/// Serves a rig's API on a free port until the tasks are dropped.
pub(super) async fn serve(rig: &Rig, tasks: &Tasks) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (api, group) = (rig.api.clone(), tasks.clone());
    drop(tasks.spawn("listener", async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(api.clone());
            drop(group.spawn("connection", async move {
                // how it ends is what the test looks at from the other side
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
            }));
        }
    }));
    address
}

/// Sends a structured query of table `t` and keeps the connection.
pub(super) async fn send(address: SocketAddr, path: &str, query: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /v1/query?table=t{path} HTTP/1.1\r\nhost: x\r\nx-request-id: id-1\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{query}",
        query.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Head and body as they come, chunk sizes and all, to the end of the connection.
pub(super) async fn receive(mut stream: TcpStream) -> (String, Vec<u8>) {
    let mut all = Vec::new();
    // a connection that is reset is one that ended
    stream.read_to_end(&mut all).await.ok();
    let at = memchr::memmem::find(&all, b"\r\n\r\n").unwrap();
    (String::from_utf8_lossy(&all[..at]).to_lowercase(), all.split_off(at + 4))
}
