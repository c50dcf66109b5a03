//! Who creates, changes and deletes streams: what WaveHouse itself never does.

use super::{Client, Options, Shape, WITHIN};
use crate::until;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use std::time::Duration;

/// How long one of several servers may take to greet before the next one is tried.
const GREETING: Duration = Duration::from_secs(2);
/// How long one of several servers may take to answer; the next request goes to another one then.
const ANSWER: Duration = Duration::from_secs(3);

/// The operator's identity, on whichever of some servers answers. One request at a time.
#[derive(Debug)]
pub struct Operator {
    ports: Vec<u16>,
    user: Option<&'static str>,
    api: String,
    client: Option<Client>,
}

impl Operator {
    pub(super) fn new(ports: Vec<u16>, options: &Options) -> Self {
        let api = options.domain.as_ref().map_or_else(|| "$JS.API".to_owned(), |domain| format!("$JS.{domain}.API"));
        Self { ports, user: options.operator(), api, client: None }
    }

    /// Creates what the files of the `nats-cli` format say, streams first: `<stream>.json` and
    /// `<stream>.<durable>.json`; other files are left alone. Returns when all of it has its leader.
    ///
    /// # Errors
    /// A file is no JSON, or the server refuses it.
    ///
    /// # Cancel safety
    /// Detached: a part of it may be there.
    pub async fn apply<N, T>(&mut self, files: impl IntoIterator<Item = (N, T)>, shape: &Shape) -> Result<()>
    where
        N: AsRef<str>,
        T: AsRef<str>,
    {
        let (mut streams, mut durables) = (Vec::new(), Vec::new());
        for (name, text) in files {
            let Some(object) = name.as_ref().strip_suffix(".json") else { continue };
            let config: Value = serde_json::from_str(text.as_ref()).with_context(|| object.to_owned())?;
            match object.split_once('.') {
                None => streams.push((object.to_owned(), config)),
                Some((stream, durable)) => durables.push((stream.to_owned(), durable.to_owned(), config)),
            }
        }
        for (name, config) in &mut streams {
            shape.stream(config);
            self.insist(&format!("STREAM.CREATE.{name}"), &config.to_string()).await.with_context(|| name.clone())?;
        }
        for (stream, durable, config) in &mut durables {
            shape.durable(config);
            let body = json!({ "stream_name": stream, "config": config }).to_string();
            let tail = format!("CONSUMER.DURABLE.CREATE.{stream}.{durable}");
            self.insist(&tail, &body).await.with_context(|| format!("{stream}/{durable}"))?;
        }
        for (stream, _) in &streams {
            self.stream_is_led(stream).await?;
        }
        for (stream, durable, _) in &durables {
            self.consumer_is_led(stream, durable).await?;
        }
        Ok(())
    }

    /// Asks for what may be asked for twice. A cluster that is young, or busy, may not answer, or have no place yet.
    async fn insist(&mut self, tail: &str, body: &str) -> Result<()> {
        let operator = tokio::sync::Mutex::new(self);
        let ask = || async {
            match operator.lock().await.ask(tail, body).await {
                Err(error) => {
                    let text = format!("{error:#}");
                    // what is wrong with the request stays wrong; a peer that was not heard yet is heard in a moment
                    let stays = text.contains("\"code\":4") && !text.contains("\"err_code\":10005");
                    if stays { Ok(Err(error)) } else { Err(error) }
                }
                Ok(_) => Ok(Ok(())),
            }
        };
        until(WITHIN, tail, ask).await?
    }

    /// Asks the JetStream API: the subject without its prefix.
    ///
    /// # Errors
    /// Nobody answers, or the answer is an error.
    ///
    /// # Cancel safety
    /// Detached: it may have been done.
    pub async fn ask(&mut self, tail: &str, body: &str) -> Result<Value> {
        let subject = format!("{}.{tail}", self.api);
        self.request(&subject, body).await.with_context(|| subject.clone())
    }

    /// Asks any subject for JSON.
    ///
    /// # Errors
    /// Nobody answers, or the answer is an error or no JSON.
    ///
    /// # Cancel safety
    /// Detached: it may have been done.
    pub async fn request(&mut self, subject: &str, body: &str) -> Result<Value> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect().await?,
        };
        let Ok(Ok(reply)) = tokio::time::timeout(self.patience(ANSWER), client.request(subject, body)).await else {
            self.ports.rotate_left(1);
            bail!("no answer to {subject}");
        };
        self.client = Some(client);
        reply.json()
    }

    /// Publishes without asking for an answer.
    ///
    /// # Errors
    /// No server takes it.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn publish(&mut self, subject: &str, body: &str) -> Result<()> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => self.connect().await?,
        };
        client.publish(subject, body).await?;
        self.client = Some(client);
        Ok(())
    }

    /// One request that must be answered soon.
    pub(super) async fn answers_within_ms(mut self, ms: u64, tail: &str) -> Result<Value> {
        tokio::time::timeout(Duration::from_millis(ms), self.ask(tail, "")).await?
    }

    /// Where there is no other server to go to, a busy machine is given its time.
    fn patience(&self, of_several: Duration) -> Duration {
        if self.ports.len() > 1 { of_several } else { WITHIN }
    }

    async fn connect(&self) -> Result<Client> {
        let mut last = None;
        for port in &self.ports {
            match tokio::time::timeout(self.patience(GREETING), Client::connect(*port, self.user, "_INBOX_operator"))
                .await
            {
                Ok(Ok(client)) => return Ok(client),
                Ok(Err(error)) => last = Some(error),
                Err(_) => last = Some(anyhow::anyhow!("the server on {port} does not greet")),
            }
        }
        bail!("no server takes the operator: {last:?}")
    }

    /// Creates a stream from its configuration.
    ///
    /// # Errors
    /// The server refuses it.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn create_stream(&mut self, config: &Value) -> Result<Value> {
        let name = config["name"].as_str().context("a stream has a name")?;
        self.ask(&format!("STREAM.CREATE.{name}"), &config.to_string()).await
    }

    /// Changes some fields of a stream.
    ///
    /// # Errors
    /// The server refuses it.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn change_stream(&mut self, name: &str, fields: &Value) -> Result<Value> {
        let mut config = self.stream_info(name).await?["config"].take();
        merge(&mut config, fields);
        self.ask(&format!("STREAM.UPDATE.{name}"), &config.to_string()).await
    }

    /// Deletes a stream.
    ///
    /// # Errors
    /// There is none.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn delete_stream(&mut self, name: &str) -> Result<Value> {
        self.ask(&format!("STREAM.DELETE.{name}"), "").await
    }

    /// Deletes every message of a stream.
    ///
    /// # Errors
    /// There is no such stream, or it may not be purged.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn purge(&mut self, stream: &str) -> Result<Value> {
        self.ask(&format!("STREAM.PURGE.{stream}"), "").await
    }

    /// Creates a durable from its configuration.
    ///
    /// # Errors
    /// The server refuses it.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn create_durable(&mut self, stream: &str, config: &Value) -> Result<Value> {
        let name = config["durable_name"].as_str().context("a durable has a name")?;
        let body = json!({ "stream_name": stream, "config": config }).to_string();
        self.ask(&format!("CONSUMER.DURABLE.CREATE.{stream}.{name}"), &body).await
    }

    /// Changes some fields of a durable.
    ///
    /// # Errors
    /// The server refuses it.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn change_durable(&mut self, stream: &str, durable: &str, fields: &Value) -> Result<Value> {
        let mut config = self.consumer_info(stream, durable).await?["config"].take();
        merge(&mut config, fields);
        self.create_durable(stream, &config).await
    }

    /// Deletes a durable.
    ///
    /// # Errors
    /// There is none.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn delete_durable(&mut self, stream: &str, durable: &str) -> Result<Value> {
        self.ask(&format!("CONSUMER.DELETE.{stream}.{durable}"), "").await
    }

    /// A stream's configuration and state.
    ///
    /// # Errors
    /// There is none, or it has no leader.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stream_info(&mut self, stream: &str) -> Result<Value> {
        self.ask(&format!("STREAM.INFO.{stream}"), "").await
    }

    /// A consumer's configuration and state.
    ///
    /// # Errors
    /// There is none, or it has no leader.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn consumer_info(&mut self, stream: &str, durable: &str) -> Result<Value> {
        self.ask(&format!("CONSUMER.INFO.{stream}.{durable}"), "").await
    }

    /// The name of the server that leads a stream.
    ///
    /// # Errors
    /// None does, or it is no cluster.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn stream_leader(&mut self, stream: &str) -> Result<String> {
        leader(&self.stream_info(stream).await?)
    }

    /// The name of the server that leads a consumer.
    ///
    /// # Errors
    /// None does, or it is no cluster.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn consumer_leader(&mut self, stream: &str, durable: &str) -> Result<String> {
        leader(&self.consumer_info(stream, durable).await?)
    }

    /// Makes a stream's leader step down.
    ///
    /// # Errors
    /// None is elected, or it is no cluster.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn step_down_stream(&mut self, stream: &str) -> Result<Value> {
        self.ask(&format!("STREAM.LEADER.STEPDOWN.{stream}"), "").await
    }

    /// Makes a consumer's leader step down.
    ///
    /// # Errors
    /// None is elected, or it is no cluster.
    ///
    /// # Cancel safety
    /// Detached.
    pub async fn step_down_consumer(&mut self, stream: &str, durable: &str) -> Result<Value> {
        self.ask(&format!("CONSUMER.LEADER.STEPDOWN.{stream}.{durable}"), "").await
    }

    async fn stream_is_led(&mut self, stream: &str) -> Result<()> {
        let operator = tokio::sync::Mutex::new(self);
        let look = || async { is_led(&operator.lock().await.stream_info(stream).await?) };
        until(WITHIN, &format!("stream {stream} is led"), look).await?;
        Ok(())
    }

    async fn consumer_is_led(&mut self, stream: &str, durable: &str) -> Result<()> {
        let operator = tokio::sync::Mutex::new(self);
        let look = || async { is_led(&operator.lock().await.consumer_info(stream, durable).await?) };
        until(WITHIN, &format!("consumer {stream}/{durable} is led"), look).await?;
        Ok(())
    }
}

/// A server that is alone leads everything, and says nothing of a cluster.
fn is_led(info: &Value) -> Result<()> {
    if info["cluster"]["name"].is_string() { leader(info).map(drop) } else { Ok(()) }
}

fn leader(info: &Value) -> Result<String> {
    let leader = info["cluster"]["leader"].as_str().unwrap_or("");
    ensure!(!leader.is_empty(), "it has no leader: {}", info["cluster"]);
    Ok(leader.to_owned())
}

fn merge(config: &mut Value, fields: &Value) {
    for (name, value) in fields.as_object().into_iter().flatten() {
        config[name] = value.clone();
    }
}
