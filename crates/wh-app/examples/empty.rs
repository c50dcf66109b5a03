//! An axum server whose handlers do nothing: what `xtask bench ingest` and `xtask bench api` compare single events with.
//!
//! Takes the port as its argument; ends when its standard input does.

use axum::{Router, routing::post};
use std::io::Read;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let port = std::env::args().nth(1).unwrap_or_default().parse::<u16>()?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    // the second says that no id came before, as those who send rows with ids want to hear
    let app = Router::new()
        .route("/", post(|| async {}))
        .route("/ids", post(|| async { r#"{"duplicates":0,"results":[]}"# }));
    let stdin_ends = async {
        // whatever ends it, it has ended
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        drop(ended.await);
    };
    axum::serve(axum::serve::ListenerExt::tap_io(listener, |tcp| drop(tcp.set_nodelay(true))), app)
        .with_graceful_shutdown(stdin_ends)
        .await?;
    Ok(())
}
