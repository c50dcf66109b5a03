//! The yardstick: rows sent straight to ClickHouse by a plain client, over one connection, one insert after the other.

use crate::{Options, connection::Connection};
use anyhow::{Result, ensure};
use std::time::Instant;
use wh_types::{Encoding, frame};

/// Each body is compressed as it is sent, as our own system must.
#[expect(clippy::disallowed_methods, reason = "a load generator measures with the machine's clock")]
pub(crate) async fn run(options: Options) -> Result<String> {
    let bodies = options.bodies()?;
    let mut connection = Connection::open(options.address).await?;
    let (began, mut inserts, mut bytes) = (Instant::now(), 0_u64, 0_usize);
    let mut rows = 0_usize;
    for body in bodies.iter().cycle() {
        if inserts >= options.requests || began.elapsed() >= options.within {
            break;
        }
        let frame = frame::encode(Encoding::Zstd, body)?;
        let head = format!(
            "POST {} HTTP/1.1\r\nhost: {}\r\ncontent-encoding: zstd\r\ncontent-length: {}\r\n\r\n",
            options.path,
            options.address,
            frame.len()
        );
        connection.write(head.as_bytes()).await?;
        connection.write(&frame).await?;
        let status = connection.answer().await?;
        ensure!(status == 200, "ClickHouse answered {status}: {}", connection.last_body());
        inserts += 1;
        bytes += frame.len();
        rows += body.iter().filter(|byte| **byte == b'\n').count();
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(format!(r#"{{"inserts":{inserts},"rows":{rows},"compressed_bytes":{bytes},"seconds":{seconds:.4}}}"#))
}
