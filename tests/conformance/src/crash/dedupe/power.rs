//! Power cuts, on the log's simulated disk: unsynced writes vanish, whole or sector by sector.

use super::{Acked, Answer, run};
use anyhow::{Context as _, ensure};
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};
use wh_dedupe::{
    Dedupe as _,
    log::{Dedupe, Options},
};
use wh_log::disk::sim::{SimDisk, Survive};

fn options(disk: &SimDisk) -> Options {
    let mut options = Options::new("/dedupe");
    options.segment_bytes = 64 * 1024;
    options.upkeep_every = Duration::from_millis(5);
    options.disk = Arc::new(disk.clone());
    options
}

/// Cuts the power so many times, each at another operation of the disk.
pub(super) fn log(rounds: u64) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let disk = SimDisk::new(0xded0);
    let mut acked = Acked::default();
    for round in 0..rounds {
        disk.survive([Survive::Chance, Survive::Nothing, Survive::Chance, Survive::Everything][round as usize % 4]);
        let before = acked.len();
        let cut = runtime.block_on(async {
            let store = Arc::new(Dedupe::open(options(&disk)).await?);
            let (sender, answers) = mpsc::channel::<Answer>();
            let report = Arc::new(move |answer| {
                // whoever hears of it is there until the end
                sender.send(answer).ok();
            });
            disk.cut_power_in([700, 40, 1_500, 300, 1_111][round as usize % 5] + round);
            run(store.clone(), round, report).await;
            answers.iter().for_each(|answer| acked.note(&answer));
            // what it still does, it does without power
            store.close().await;
            drop(store);
            disk.power_on();
            let store = Dedupe::open(options(&disk)).await?;
            ensure!(store.recovery().damaged + store.recovery().missing == 0, "{:?}", store.recovery());
            acked.check(&store).await?;
            store.close().await;
            anyhow::Ok(())
        });
        cut.with_context(|| format!("round {round}"))?;
        ensure!(acked.len() > before, "round {round} claimed nothing");
    }
    Ok(())
}
