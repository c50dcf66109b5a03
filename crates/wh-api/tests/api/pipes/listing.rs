//! What pipes there are: for callers those they may run, for the operator all of them whole.

use super::engine;
use crate::rig::{get, keyed};
use serde_json::json;

#[tokio::test]
async fn a_caller_sees_what_it_may_run_and_the_operator_sees_all_of_it() {
    let whole = json!({"name": "late", "sql": "SELECT {n:UInt8}, {{s:x}}", "description": "Late flights",
        "allowed_roles": ["viewer"], "cache_ttl": "1m", "max_rows": 5, "max_memory_usage": "1MiB",
        "parameters": [{"name": "n", "required": true, "description": "how many"}]});
    let engine = engine(json!([whole, {"name": "closed", "sql": "SELECT 1"}])).await;
    let reply = engine.rig.send(get("/v1/pipes")).await;
    let parameters = json!([{"name": "n", "type": "UInt8", "required": true, "description": "how many"},
        {"name": "s", "type": "any", "required": false, "default": "x"}]);
    let view = json!({"name": "late", "description": "Late flights", "parameters": parameters});
    assert_eq!(reply.value(), json!({"pipes": [view]}));
    assert_eq!(reply.header("cache-control"), Some("no-cache"));
    assert_eq!(engine.rig.send(get("/v1/pipes?x=1")).await.status, 400);
    let all = engine.rig.send(keyed(get("/v1/pipes"))).await.value();
    assert_eq!(all["pipes"].as_array().unwrap().len(), 2);

    assert_eq!(engine.rig.send(get("/v1/ops/pipes")).await.status, 401);
    let all = engine.rig.send(keyed(get("/v1/ops/pipes"))).await.value();
    let names: Vec<_> = all["pipes"].as_array().unwrap().iter().map(|pipe| pipe["name"].clone()).collect();
    assert_eq!(names, ["closed", "late"]);
    let one = engine.rig.send(keyed(get("/v1/ops/pipes/late?tenant=acme"))).await.value();
    assert_eq!(one, all["pipes"][1]);
    assert_eq!(
        one,
        json!({"name": "late", "description": "Late flights", "parameters": parameters, "sql": "SELECT {n:UInt8}, {{s:x}}",
            "allowed_roles": ["viewer"], "kind": null, "cache_ttl_ms": 60_000, "max_rows": 5, "max_memory_usage": 1 << 20})
    );
    let none = engine.rig.send(keyed(get("/v1/ops/pipes/nothing"))).await;
    assert_eq!(none.outcome(), (404, Some("pipe.not_found".into())));
}
