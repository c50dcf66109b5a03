//! A body of 16 MiB of gzip that holds 1 GiB: what it is answered, and what it costs in memory.
#![expect(clippy::print_stdout, reason = "it prints its line")]
#![expect(clippy::disallowed_methods, reason = "a bench measures with the machine's clock")]

use crate::bench::ingest::Bench;
use anyhow::{Context, Result, ensure};
use flate2::{Compress, Compression, FlushCompress};
use std::{
    fs,
    time::{Duration, Instant},
};
use wh_testkit::http;

const MIB: usize = 1 << 20;

pub(super) async fn run(bench: &Bench) -> Result<()> {
    let engine = bench.engine().await?;
    let (mut process, port) = bench.wavehouse(&engine.url(), "").await?;
    let bomb = gzip()?;
    let before = peak_from_now(process.id())?;
    let (began, size) = (Instant::now(), bomb.len());
    let reply = http::post(format!("http://127.0.0.1:{port}/v1/ingest?table=flights"), bomb)
        .header("content-type", "application/x-ndjson")
        .header("content-encoding", "gzip")
        .timeout(Duration::from_secs(60))
        .send()
        .await?;
    let took = began.elapsed();
    ensure!(reply.status == 413, "{} {}", reply.status, reply.text());
    let more = peak(process.id())?.saturating_sub(before);
    println!(
        "\n{} MiB of gzip that hold 1 GiB: {} after {} ms, memory up by {} MiB at most (aim: less than 64)",
        size / MIB,
        reply.status.as_u16(),
        took.as_millis(),
        more / MIB
    );
    process.stop(Duration::from_secs(30)).await?;
    engine.stop().await
}

/// A block of noise and spaces over and over; nobody gets to an end, so there is none.
fn gzip() -> Result<Vec<u8>> {
    let (mut plain, mut state) = (vec![b' '; MIB], 1_u64);
    for byte in &mut plain[..9_900] {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *byte = state.to_le_bytes()[7];
    }
    let mut block = Vec::with_capacity(64 << 10);
    Compress::new(Compression::fast(), false).compress_vec(&plain, &mut block, FlushCompress::Sync)?;
    let mut bomb = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    while bomb.len() + block.len() <= 16 * MIB {
        bomb.extend_from_slice(&block);
    }
    ensure!(bomb.len() / block.len() >= 1_000, "it holds {} MiB only", bomb.len() / block.len());
    Ok(bomb)
}

/// The most memory a process had, in bytes.
fn peak(process: u32) -> Result<usize> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no peak")?;
    let kib: usize = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}

/// Makes the peak what the process has now, and gives that.
fn peak_from_now(process: u32) -> Result<usize> {
    fs::write(format!("/proc/{process}/clear_refs"), "5")?;
    peak(process)
}
