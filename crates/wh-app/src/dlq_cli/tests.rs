//! Flags into requests, answers into lines.

use super::{args::Dlq, print};
use clap::Parser;
use serde_json::{Value, json};

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    dlq: Dlq,
}

fn body(line: &str) -> Result<Value, &'static str> {
    let words = std::iter::once("dlq").chain(line.split(' '));
    let cli = Cli::try_parse_from(words).map_err(|_| "clap")?;
    let (chosen, edit) = match &cli.dlq.command {
        super::DlqCommand::Check { chosen, edit } | super::DlqCommand::Replay { chosen, edit, .. } => {
            (chosen, edit.steps().map_err(|_| "edit")?)
        }
        super::DlqCommand::Purge { chosen, .. } => (chosen, Vec::new()),
        super::DlqCommand::List { .. } | super::DlqCommand::Show { .. } | super::DlqCommand::Counts { .. } => {
            panic!("{line} chooses nothing")
        }
    };
    let body = chosen.body(edit).map_err(|_| "chosen")?;
    Ok(serde_json::from_str(&body.text()).unwrap())
}

#[test]
fn flags_become_a_request() {
    assert_eq!(body("purge --all --yes"), Ok(json!({"all": true})));
    assert_eq!(body("check a-1.2 a-1.3"), Ok(json!({"ids": ["a-1.2", "a-1.3"]})));
    assert_eq!(
        body("replay --table t --held --code 27 --cursor c7"),
        Ok(json!({"filter": {"table": "t", "code": "27", "held": true}, "cursor": "c7"}))
    );
    let edit = body(r#"check --all --remove d --set c={"x":[1]} --rename a=b=c --to-string e --edit [{"op":"x"}]"#);
    assert_eq!(
        edit.unwrap()["edit"],
        json!([{"op": "rename", "column": "a", "to": "b=c"}, {"op": "to_string", "column": "e"},
               {"op": "set", "column": "c", "value": {"x": [1]}}, {"op": "remove", "column": "d"}, {"op": "x"}])
    );
    for (line, why) in [
        ("purge", "chosen"),
        ("purge --all --table t", "chosen"),
        ("purge a --all", "clap"),
        ("check a --code 27", "chosen"),
        ("check --all --limit 0", "chosen"),
        ("check --all --set a", "edit"),
        ("check --all --set a=b", "edit"),
        ("purge --all --set a=1", "clap"),
    ] {
        assert_eq!(body(line), Err(why), "{line}");
    }
}

#[test]
fn lists_are_tables_without_control_characters() {
    let page = json!({"letters": [
        {"id": "0000000e-1.3", "table": "t", "code": "27", "reason": "Code: 27. DB::Exception: a\u{1b}[31m\nb", "attempted": "2026-01-01T00:00:02.5Z"},
        {"id": "0000000e-22.0", "table": "events", "code": "117", "column": "c", "reason": "x".repeat(200),
         "attempted": "2026-01-01T00:00:02.5Z", "retry_until": "2026-01-01T00:10:02.5Z"}], "next": "c7"});
    let mut out = Vec::new();
    print::list(&page, &mut out);
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "ID             TABLE   CODE  COLUMN  ATTEMPTED            HELD  REASON");
    assert_eq!(lines[1], "0000000e-1.3   t       27    -       2026-01-01T00:00:02        a [31m b");
    assert!(lines[2].contains("held  xxx") && lines[2].ends_with('…'), "{}", lines[2]);
    assert_eq!(lines[3], "there may be more: --cursor c7");
}

#[test]
fn totals_say_what_is_not_good() {
    let mut totals = print::Totals::default();
    let report = json!({"matched": 3, "replayed": 2, "refused": 1, "purged": 2, "next": null});
    totals.add(&report);
    assert!(!totals.is_good(&report));
    let mut out = Vec::new();
    totals.print("replay", &report, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "replay: 3 looked at, 2 replayed, 1 refused, 2 purged\n");
    let gone = json!({"matched": 0, "not_found": 1, "next": null, "results": [
        {"id": "0000000e-1.3", "status": "not_found", "code": "dead_letter.not_found", "reason": "there is none"}]});
    let (mut totals, mut out) = (print::Totals::default(), Vec::new());
    totals.add(&gone);
    assert!(!totals.is_good(&gone));
    print::results(&gone, &mut out);
    totals.print("purge", &gone, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "0000000e-1.3  -  not_found  dead_letter.not_found: there is none\npurge: 0 looked at, 1 not found\n"
    );
    let stopped = json!({"matched": 1, "stopped": {"code": "queue.unavailable", "reason": "away"}, "next": "c1"});
    assert!(!print::Totals::default().is_good(&stopped));
}
