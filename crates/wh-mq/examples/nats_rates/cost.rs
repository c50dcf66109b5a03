//! Processor time of a process, and the server's count of messages.

use serde_json::Value;
use std::time::Duration;
use wh_testkit::http;

/// Processor time used so far, by the kernel's count of hundredths of a second.
pub(crate) fn cpu(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(10 * ticks)
}

/// Messages that came to the server and left it.
pub(crate) async fn messages(monitor: u16) -> (u64, u64) {
    let reply = http::get(format!("http://127.0.0.1:{monitor}/varz")).send().await.unwrap();
    let varz: Value = serde_json::from_str(&reply.text()).unwrap();
    let number = |name: &str| varz[name].as_u64().unwrap();
    (number("in_msgs"), number("out_msgs"))
}
