//! Power cuts, on the log's simulated disk: unsynced writes vanish, whole or sector by sector.

use super::{
    Keeps,
    acked::{Acked, Answer},
    workload,
};
use anyhow::{Context as _, ensure};
use std::sync::{Arc, mpsc};
use wh_log::disk::sim::{SimDisk, Survive};
use wh_mq::{Broker as _, embedded};

fn options(disk: &SimDisk, keeps: Keeps) -> embedded::Options {
    let mut options = embedded::Options::new("/queue");
    options.shards = 3;
    // what the check holds comes once, however busy the machine is
    options.ack_wait = std::time::Duration::from_secs(600);
    options.segment_bytes = 128 * 1024;
    options.upkeep_every = std::time::Duration::from_millis(5);
    options.disk = Arc::new(disk.clone());
    keeps.set(&mut options);
    options
}

/// Cuts the power so many times, each at another operation of the disk.
pub(super) fn rounds(rounds: u64, keeps: Keeps) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let disk = SimDisk::new(0x5eed);
    let mut acked = Acked::default();
    for round in 0..rounds {
        disk.survive([Survive::Chance, Survive::Nothing, Survive::Chance, Survive::Everything][round as usize % 4]);
        let before = acked.stored();
        runtime
            .block_on(async {
                let broker = embedded::Broker::open(options(&disk, keeps)).await?;
                let (sender, answers) = mpsc::channel::<Answer>();
                let report: workload::Report = Arc::new(move |answer| drop(sender.send(answer)));
                disk.cut_power_in([700, 40, 2_500, 300, 1_111][round as usize % 5] + round);
                workload::run(Arc::new(broker.clone()), round, report).await;
                answers.iter().for_each(|answer| acked.note(&answer));
                // what it still does, it does without power
                broker.close().await;
                disk.power_on();
                let broker = embedded::Broker::open(options(&disk, keeps)).await?;
                ensure!(broker.recovery().damage_count == 0, "{:?}", broker.recovery());
                acked.check(&broker, keeps).await?;
                broker.close().await;
                anyhow::Ok(())
            })
            .with_context(|| format!("round {round}"))?;
        ensure!(acked.stored() > before, "round {round} stored nothing");
    }
    Ok(())
}
