//! What units cost that have nothing to do.

use super::{PLACES, cost, setup::Setup};
use std::time::Duration;
use wh_mq::{Broker, Budget};
use wh_topology::Role;

pub(crate) async fn run(setup: &mut Setup, time: Duration) {
    println!("\n— idle units in one process, over {time:?}");
    let server = setup.server.process().id();
    measure(setup, server, time, 0).await;
    for place in [PLACES[1], PLACES[2]] {
        let broker = setup.broker(place, Role::Ingest).await;
        let mut feeds = Vec::new();
        for unit in broker.units() {
            feeds.push(broker.feed(unit, Budget { rows: 20_000, bytes: 8 << 20 }).await.unwrap());
        }
        // past the first pulls
        tokio::time::sleep(Duration::from_secs(5)).await;
        measure(setup, server, time, feeds.len()).await;
        for feed in feeds {
            feed.release().await.unwrap();
        }
        broker.close().await;
    }
}

#[expect(clippy::cast_precision_loss, reason = "rates")]
async fn measure(setup: &Setup, server: u32, time: Duration, units: usize) {
    let own = std::process::id();
    let (cpu, messages) = ((cost::cpu(server), cost::cpu(own)), cost::messages(setup.monitor).await);
    tokio::time::sleep(time).await;
    let (cpu_after, after) = ((cost::cpu(server), cost::cpu(own)), cost::messages(setup.monitor).await);
    let percent = |from: Duration, to: Duration| 100.0 * (to - from).as_secs_f64() / time.as_secs_f64();
    let rate = |from: u64, to: u64| (to - from) as f64 / time.as_secs_f64();
    println!(
        "{units:4} units: server {:5.2} % of a core, this process {:5.2} %; {:6.1} messages/s to the server, {:6.1} from it",
        percent(cpu.0, cpu_after.0),
        percent(cpu.1, cpu_after.1),
        rate(messages.0, after.0),
        rate(messages.1, after.1),
    );
}
