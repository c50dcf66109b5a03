//! ClickHouse answers, and does not let its tables be read: who asks is told the number of its error and nothing else of it.

use crate::rig::{Rig, Setup, get, post};
use std::sync::Arc;
use wh_clickhouse::{Client, Discovery, DiscoveryOptions, Options};
use wh_testkit::clickhouse::database;
use wh_types::{OsEntropy, Stop, SystemClock, Tasks};

#[tokio::test]
async fn a_schema_that_clickhouse_refuses_is_told_by_the_number_of_its_error() {
    let real = database().await.unwrap();
    let endpoint = real.endpoint();
    let own = Options { url: endpoint.url().into(), user: endpoint.user_name().into(), ..Options::default() };
    let password = Some(endpoint.password().into());
    let wrong = [
        (Options { password: Some("not it".into()), user: "nobody-known".into(), ..own.clone() }, "516"),
        (Options { password, database: "a_database_that_is_not_there".into(), ..own }, "81"),
    ];
    for (options, code) in wrong {
        let (clickhouse, stop) = (Client::new(options).unwrap(), Stop::new());
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(OsEntropy));
        let options = DiscoveryOptions::default();
        let schema = Discovery::start(clickhouse.clone(), options, clock, entropy, &Tasks::new(), stop.clone());
        let error = schema.refresh().await.unwrap_err();
        assert_eq!(error.code().map(|code| code.to_string()).as_deref(), Some(code), "{error}");
        let rig = Rig::with(Setup { clickhouse, schema, ..Setup::default() });
        let said = format!("ClickHouse answers with its error {code}");
        for path in ["/v1/ingest?table=t", "/v1/query?table=t"] {
            let reply = rig.send(post(path, "application/json", "{}")).await;
            assert_eq!(reply.outcome(), (503, Some("schema.not_loaded".into())));
            assert_eq!(reply.value()["error"], format!("schema not loaded yet: {said}"));
        }
        let ready = rig.send(get("/readyz")).await;
        let text = ready.text();
        assert!(ready.status == 503 && text.contains(&said) && text.contains("the server's log"), "{text}");
        assert!(!text.contains("DB::Exception") && !text.contains("nobody-known"), "{text}");
        stop.give();
    }
}
