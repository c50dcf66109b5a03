//! The live page: served whole, closed against everything but its own server, and standing on paths that there are. What
//! its scripts do is tested in a browser: `cargo xtask ui`.

use crate::rig::{Rig, Setup, get};
use std::collections::BTreeSet;
use wh_api::{ApiOptions, Surface};

const SCRIPTS: &[&str] = &["/ui/live.js", "/ui/follow.js", "/ui/sse.js"];

async fn text(rig: &Rig, path: &str) -> String {
    let reply = rig.send(get(path)).await;
    assert_eq!(reply.status, 200, "{path}");
    reply.text().to_owned()
}

/// What stands between `before` and `after`, everywhere.
fn between<'a>(text: &'a str, before: &'a str, after: char) -> impl Iterator<Item = &'a str> {
    text.split(before).skip(1).filter_map(move |rest| Some(rest.split_once(after)?.0))
}

#[tokio::test]
async fn every_file_of_the_page_is_served_under_a_policy_that_lets_nothing_else_in() {
    let rig = Rig::new();
    for (path, media) in [
        ("/ui/", "text/html; charset=utf-8"),
        ("/ui/live.css", "text/css; charset=utf-8"),
        ("/ui/live.js", "text/javascript; charset=utf-8"),
        ("/ui/follow.js", "text/javascript; charset=utf-8"),
        ("/ui/sse.js", "text/javascript; charset=utf-8"),
    ] {
        let reply = rig.send(get(path)).await;
        assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, Some(media)), "{path}");
        let policy: BTreeSet<&str> = reply.header("content-security-policy").unwrap().split("; ").collect();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(rule), "{path}: {policy:?}");
        }
        let fixed = ["x-content-type-options", "x-frame-options", "referrer-policy", "cross-origin-opener-policy"];
        let told = fixed.map(|name| reply.header(name).unwrap());
        assert_eq!(told, ["nosniff", "DENY", "no-referrer", "same-origin"], "{path}");
    }
    let moved = rig.send(get("/ui")).await;
    assert_eq!((moved.status.as_u16(), moved.header("location")), (308, Some("/ui/")));
    let missing = rig.send(get("/ui/nothing.js")).await;
    assert_eq!(missing.outcome(), (404, Some("route.not_found".into())));
}

#[tokio::test]
async fn the_page_needs_nothing_from_elsewhere_and_nothing_inline() {
    let rig = Rig::new();
    let html = text(&rig, "/ui/").await;
    for attribute in ["src=\"", "href=\""] {
        for file in between(&html, attribute, '"') {
            assert_eq!(rig.send(get(&format!("/ui/{file}"))).await.status, 200, "{file}");
        }
    }
    for inline in [" style=", "<style", " onclick=", " onload=", "javascript:", "//"] {
        assert!(!html.contains(inline), "{inline} in the page");
    }
    assert_eq!(html.matches("<script").count(), html.matches("<script type=\"module\" src=").count());
    let ids: BTreeSet<&str> = between(&html, " id=\"", '"').collect();
    for script in SCRIPTS {
        let code = text(&rig, script).await;
        for file in between(&code, "from \"./", '"') {
            assert_eq!(rig.send(get(&format!("/ui/{file}"))).await.status, 200, "{script} needs {file}");
        }
        for id in between(&code, "$(\"", '"') {
            assert!(ids.contains(id), "{script} looks for {id}");
        }
        // nothing outlives the page, and no text of a row becomes part of it
        for never in [
            "localStorage",
            "sessionStorage",
            "indexedDB",
            "cookie",
            "innerHTML",
            "outerHTML",
            "eval(",
            "http:",
            "https:",
        ] {
            assert!(!code.contains(never), "{never} in {script}");
        }
    }
}

#[tokio::test]
async fn the_paths_that_the_page_asks_are_there() {
    let rig = Rig::new();
    let mut asked = BTreeSet::new();
    for script in SCRIPTS {
        let code = text(&rig, script).await;
        let paths = code.split("fetch(`").skip(1).filter_map(|rest| rest.split_once(['?', '`']));
        asked.extend(paths.map(|(path, _)| path.to_owned()));
    }
    assert_eq!(asked.iter().map(String::as_str).collect::<Vec<_>>(), ["/v1/ops/schema", "/v1/stream"]);
    let asks = &rig;
    let code = |path: String| async move { asks.send(get(&path)).await.outcome().1 };
    assert_eq!(code("/v1/ops/schema?tenant=0".to_owned()).await.as_deref(), Some("auth.required"));
    // with the very parameters that it sends
    for since in ["", "&since=1m", "&since=15m", "&since=1h"] {
        let response = rig.raw(get(&format!("/v1/stream?table=t&events=committed{since}"))).await;
        assert_eq!(response.status(), 200, "{since}");
    }
    let html = text(&rig, "/ui/").await;
    let offered: Vec<&str> = between(&html, "<option value=\"", '"').collect();
    assert_eq!(offered, ["", "1m", "15m", "1h"]);
}

#[tokio::test]
async fn a_process_without_streams_has_no_page() {
    let options = ApiOptions { surface: Surface::Operator, ..ApiOptions::default() };
    let rig = Rig::with(Setup { options, ..Setup::default() });
    assert_eq!(rig.send(get("/ui/")).await.outcome(), (404, Some("route.not_found".into())));
}
