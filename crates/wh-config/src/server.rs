//! The keys of the listener: where, how many, how long.

use crate::{Roles, Server, finding::Finding, resolve::Take};
use std::net::{IpAddr, Ipv4Addr};

/// The listener, and what is wrong with it.
pub(crate) fn server(take: &mut Take<'_>, roles: Roles, allow_open: bool) -> Server {
    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let host = match take.text("server.host") {
        "" | "localhost" => LOOPBACK,
        text => text.parse().unwrap_or_else(|_| {
            take.problem("server.host", "must be an IP address or localhost");
            LOOPBACK
        }),
    };
    // without the api there are probes, metrics, and what the operator key opens
    if roles.api && !host.is_loopback() {
        let open = "is not a loopback address, and nothing checks yet who may write and read";
        take.findings.push(if allow_open {
            Finding::warning("server.host", open)
                .hint("auth.allow_open allows it: see that only friends reach this port")
        } else {
            Finding::error("server.host", open).hint("auth.allow_open: true allows it all the same")
        });
    }
    let max_connections = take.usize("server.max_connections");
    let server = Server {
        host,
        port: u16::try_from(take.u64("server.port")).unwrap_or(u16::MAX),
        max_connections,
        max_streams: match take.number("server.max_streams") {
            Some(streams) => usize::try_from(streams).unwrap_or(usize::MAX),
            None => max_connections.div_ceil(4).saturating_mul(3).min(max_connections.saturating_sub(1)).max(1),
        },
        max_replays: take.usize("server.max_replays"),
        header_timeout: take.span("server.header_timeout"),
        body_timeout: take.span("server.body_timeout"),
        body_idle_timeout: take.span("server.body_idle_timeout"),
        request_timeout: take.span("server.request_timeout"),
        shutdown_timeout: take.span("server.shutdown_timeout"),
    };
    if server.request_timeout < server.body_timeout {
        take.problem("server.request_timeout", "must not be below server.body_timeout");
    }
    if take.given("server.max_streams") && server.max_streams >= server.max_connections {
        take.problem("server.max_streams", "must be below server.max_connections: each stream keeps a connection");
    }
    server
}

#[cfg(test)]
mod tests {
    use crate::tests::found;

    #[test]
    fn streams_leave_connections_for_everything_else() {
        let bounds = |text: &str| {
            let (config, _) = found(text).unwrap();
            (config.server.max_streams, config.tenant_defaults.stream_max_connections)
        };
        assert_eq!(bounds(""), (7_500, 7_500));
        assert_eq!(bounds("server: {max_connections: 1}"), (1, 1));
        assert_eq!(bounds("server: {max_connections: 2}"), (1, 1));
        let given = "server: {max_connections: 100, max_streams: 99}\ntenant_defaults: {stream: {max_connections: 7}}";
        assert_eq!(bounds(given), (99, 7));
        let errors = found("server: {max_connections: 100, max_streams: 100}").unwrap_err();
        assert!(errors.len() == 1 && errors[0].contains("server.max_streams"), "{errors:?}");
    }
}
