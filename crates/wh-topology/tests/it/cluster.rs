//! Real servers with a configuration of the test's own.

use crate::client::Client;
use anyhow::Result;
use std::{path::Path, time::Duration};
use tempfile::TempDir;
use wh_testkit::{Process, free_port, servers, until};

const WITHIN: Duration = Duration::from_secs(20);

/// A server.
pub(crate) struct Server {
    pub(crate) port: u16,
    process: Process,
    _folder: TempDir,
}

impl Server {
    /// Starts the oldest tested release with these lines beside its port and its JetStream.
    pub(crate) async fn start(jetstream: &str, lines: &str) -> Result<Self> {
        let port = free_port()?;
        let mut server = Self::launch(port, jetstream, lines)?;
        server.process.listens(port, WITHIN).await?;
        Ok(server)
    }

    fn launch(port: u16, jetstream: &str, lines: &str) -> Result<Self> {
        let folder = TempDir::with_prefix("wh-topology-")?;
        let conf = config(port, folder.path(), jetstream, lines);
        std::fs::write(folder.path().join("nats.conf"), conf)?;
        let program = servers::nats_server(servers::NATS_VERSIONS[0])?;
        let log = folder.path().join("nats.log");
        let launch =
            Process::launch("nats-server", program).arg("-c").arg(folder.path().join("nats.conf")).log_file(log);
        Ok(Self { port, process: launch.start()?, _folder: folder })
    }
}

/// A configuration file.
pub(crate) fn config(port: u16, folder: &Path, jetstream: &str, lines: &str) -> String {
    let store = folder.join("jetstream");
    format!("listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: {store:?}, {jetstream} }}\n{lines}\n")
}

/// Three servers that are one cluster, with its leader elected.
pub(crate) async fn three() -> Result<Vec<Server>> {
    let routes = [free_port()?, free_port()?, free_port()?];
    let urls = routes.map(|port| format!("nats-route://127.0.0.1:{port}")).join(", ");
    let mut servers = Vec::new();
    for (number, route) in routes.iter().enumerate() {
        let lines =
            format!("server_name: n{number}\ncluster {{ name: wh, listen: \"127.0.0.1:{route}\", routes: [{urls}] }}");
        servers.push(Server::launch(free_port()?, "max_file_store: 1G", &lines)?);
    }
    for server in &mut servers {
        server.process.listens(server.port, WITHIN).await?;
    }
    let port = servers[0].port;
    until(WITHIN, "the cluster has a leader", || answers(port)).await?;
    Ok(servers)
}

async fn answers(port: u16) -> Result<serde_json::Value> {
    let mut client = Client::connect(port, None, "_INBOX_wh").await?;
    // before there is a leader nobody answers
    tokio::time::timeout(Duration::from_millis(300), client.request("$JS.API.INFO", "")).await??.json()
}
