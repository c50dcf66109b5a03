//! One command to a Redis server, as an operator would say it by hand.

use anyhow::{Context, Result, bail, ensure};
use futures::future::BoxFuture;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
};

/// Most elements and bytes of an answer.
const MOST: usize = 64 << 20;

/// Sends one command over a connection of its own, after logging in where a password is given, and gives the answer as
/// text: nothing for nil, a line each for the elements of an array.
///
/// # Errors
/// The server is not there or answers with an error.
///
/// # Cancel safety
/// Detached: the server may do it.
pub async fn command(port: u16, password: Option<&str>, words: &[&str]) -> Result<String> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.with_context(|| format!("no server on port {port}"))?;
    let mut stream = BufReader::new(stream);
    if let Some(password) = password {
        say(&mut stream, &["AUTH", password]).await?;
    }
    say(&mut stream, words).await
}

async fn say(stream: &mut BufReader<TcpStream>, words: &[&str]) -> Result<String> {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(text.as_bytes()).await?;
    answer(stream).await.with_context(|| format!("redis: {}", words[0]))
}

fn answer(stream: &mut BufReader<TcpStream>) -> BoxFuture<'_, Result<String>> {
    Box::pin(async move {
        let mut line = String::new();
        ensure!(stream.read_line(&mut line).await? > 0, "closed without an answer");
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).context("an empty line")?;
        match kind {
            "+" | ":" => Ok(rest.to_owned()),
            "-" => bail!("{rest}"),
            "$" | "*" if rest == "-1" => Ok(String::new()),
            "$" => {
                let length: usize = rest.parse()?;
                ensure!(length <= MOST, "an answer of {length} bytes");
                let mut bytes = vec![0; length + 2];
                stream.read_exact(&mut bytes).await?;
                Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
            }
            "*" => {
                let mut all = Vec::new();
                for _ in 0..rest.parse::<usize>()?.min(MOST) {
                    all.push(answer(stream).await?);
                }
                Ok(all.join("\n"))
            }
            other => bail!("an answer of the kind {other:?}"),
        }
    })
}
