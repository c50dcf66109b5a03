//! What a file of pipes may and may not say, and what its pipes become with the values of a call.

use super::*;
use crate::pipes::{finding::PipeFinding, given};
use serde_json::{Value, json};

fn told(text: &str) -> Vec<PipeFinding> {
    PipeSet::parse(text.as_bytes()).map_or_else(|findings| findings, |(_, warnings)| warnings)
}

fn one(pipe: &Value) -> Arc<Pipe> {
    let text = json!({ "pipes": [pipe] }).to_string();
    let (set, warnings) = PipeSet::parse(text.as_bytes()).unwrap();
    assert_eq!(warnings, [], "{text}");
    Arc::clone(set.iter().next().unwrap())
}

fn bound(pipe: &Value, query: &str, body: &str) -> Result<(String, Vec<(String, String)>), String> {
    let given = given::read(query, body.as_bytes()).unwrap();
    let bound = one(pipe).bind(&given, "UTC");
    bound.map(|bound| (bound.sql, bound.params)).map_err(|refused| format!("{}: {}", refused.code.name, refused.text))
}

#[test]
fn a_whole_pipe_is_read() {
    let pipe = one(&json!({"name": "late", "sql": "SELECT {n:UInt8}", "description": "d", "allowed_roles": ["viewer"],
        "parameters": [{"name": "n", "type": "UInt8", "required": false, "default": 5, "description": "how many"}],
        "cache_ttl": "1m", "max_rows": 10, "max_execution_time": 500, "max_memory_usage": "1GiB", "max_rows_to_read": 7}));
    assert_eq!((pipe.name.as_str(), pipe.ttl), ("late", Some(Duration::from_secs(60))));
    let limits = PipeLimits {
        max_rows: Some(10),
        max_execution_time: Some(Duration::from_millis(500)),
        max_memory_usage: Some(1 << 30),
        max_rows_to_read: Some(7),
    };
    assert_eq!(pipe.limits, limits);
    assert!(pipe.allows("viewer") && pipe.allows("admin") && !pipe.allows("") && !pipe.allows("view"));
    let closed = one(&json!({"name": "x", "sql": "SELECT 1", "cache_ttl": "0"}));
    assert!(closed.allows("admin") && !closed.allows("viewer") && closed.ttl == Some(Duration::ZERO));
    for empty in ["{}", "{\"pipes\": []}"] {
        assert!(PipeSet::parse(empty.as_bytes()).unwrap().0.is_empty());
    }
}

#[test]
fn files_of_upstream_load_as_they_are() {
    let old = json!({"name": "by_origin", "allowed_roles": [],
        "sql": "SELECT * FROM t WHERE origin = {{origin}} AND id IN {{ids}} LIMIT {{limit:10}}",
        "parameters": [{"name": "origin", "type": "string", "required": true}, {"name": "ids", "type": "array"}]});
    let expected = "SELECT * FROM t WHERE origin = {origin:String} AND id IN {ids:Array(Int64)} LIMIT {limit:Int64}";
    let params = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        list.iter().map(|(name, wire)| ((*name).to_owned(), (*wire).to_owned())).collect()
    };
    let given = bound(&old, "origin=DTW&limit=3", r#"{"ids":[1,2]}"#).unwrap();
    assert_eq!(given, (expected.to_owned(), params(&[("origin", "DTW"), ("ids", "[1,2]"), ("limit", "3")])));
    let given = bound(&old, "ids=1&ids=2", r#"{"origin":"DTW"}"#).unwrap();
    assert_eq!(given.1, params(&[("origin", "DTW"), ("ids", "[1,2]"), ("limit", "10")]));
    let empty = json!({"name": "x", "sql": "SELECT {{x:}}"});
    assert_eq!(bound(&empty, "", "").unwrap(), ("SELECT {x:String}".to_owned(), params(&[("x", "")])));
}

#[test]
fn a_call_that_cannot_work_is_refused_by_name() {
    let pipe = json!({"name": "p", "sql": "SELECT {a:UInt8}, {b:String}, {{c}}", "parameters": [
        {"name": "a", "type": "UInt8", "required": true}, {"name": "b", "default": "x"}, {"name": "c", "type": "Date", "default": "2001-01-01"}]});
    for (query, body, refusal) in [
        ("", "", "pipe.parameter_missing: missing required parameter: a"),
        ("a=1&z=2", "", "pipe.parameter_unknown: unknown parameter: \"z\"; there are a, b, c"),
        ("a=256", "", "pipe.parameter_invalid: the parameter \"a\" (UInt8) is out of range"),
        ("a=1", "{\"a\":\"x\"}", "pipe.parameter_invalid: the parameter \"a\" (UInt8) is no number"),
        ("a=1&c=soon", "", "pipe.parameter_invalid: the parameter \"c\" (Date) is no date"),
        ("a=1&b=1&b=2", "", "pipe.parameter_invalid: the parameter \"b\" (String) is given more than once"),
        ("a=1", "{\"b\":null}", "pipe.parameter_invalid: the parameter \"b\" (String) is null"),
    ] {
        let told = bound(&pipe, query, body).unwrap_err();
        assert!(told.starts_with(refusal), "{query} {body}: {told}");
    }
    assert_eq!(bound(&pipe, "a=1", "").unwrap().0, "SELECT {a:UInt8}, {b:String}, {c:Date}");
    let none = json!({"name": "p", "sql": "SELECT 1"});
    assert!(bound(&none, "a=1", "").unwrap_err().ends_with("this pipe has none"));
}

#[test]
fn a_parameter_that_must_be_given_must_be_whatever_the_statement_says() {
    let text = json!({"pipes": [{"name": "p", "sql": "SELECT 1", "parameters": [
        {"name": "a", "type": "UInt8", "required": true, "default": 1}, {"name": "b", "type": "string"}]}]});
    let (set, warnings) = PipeSet::parse(text.to_string().as_bytes()).unwrap();
    let pipe = set.get("p").unwrap();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    let given = |query: &str| given::read(query, b"").unwrap();
    assert_eq!(pipe.bind(&given("b=x"), "UTC").unwrap_err().code.name, "pipe.parameter_missing");
    assert_eq!(pipe.bind(&given("a=300"), "UTC").unwrap_err().code.name, "pipe.parameter_invalid");
    assert_eq!(pipe.bind(&given("a=3"), "UTC").unwrap().params, []);
}

#[test]
fn every_finding_has_its_place() {
    let text = r#"{
  "pipes": [
    {"name": "a/b", "sql": "SELECT '{{x}}'", "colour": 1},
    {"name": "b", "sql": "SELECT {x:UInt8}, {x:UInt16}", "name": "c"},
    {"sql": "SELECT 1"},
    {"name": "d", "sql": " ", "allowed_roles": ["", 5, "admin"], "max_rows": 0},
    {"name": "e", "sql": "SELECT {x:UInt8}", "parameters": [{"name": "x", "type": "Map(String, String)"}, {"name": "x"}, {}]},
    {"name": "f", "sql": "SELECT {{x:1}}, {{x:2}}", "max_execution_time": "soon", "max_memory_usage": "much", "cache_ttl": "2000h"},
    {"name": "g", "sql": "SELECT {x:Identifier}"},
    {"name": "h", "sql": "SELECT {x:UInt8}", "parameters": [{"name": "x", "default": "many"}]},
    {"name": "h", "sql": "SELECT 1"},
    7
  ]
}"#;
    let findings: Vec<String> = told(text).iter().map(ToString::to_string).collect();
    for expected in [
        "pipes[0].colour (line 3): is an unknown key; there are name, sql,",
        "pipes[0].name (line 3): must be a text without slashes",
        "pipes[0].sql (line 3): line 1 of the statement: the placeholder of \"x\" stands in a quoted text",
        "pipes[1].name (line 4): stands there twice",
        "pipes[1].sql (line 4): \"x\" is UInt16 in one place and UInt8 in another",
        "pipes[2] (line 5): needs a name and sql",
        "pipes[3].sql (line 6): must be a statement",
        "pipes[3].allowed_roles[0] (line 6): must be the name of a role",
        "pipes[3].allowed_roles[1] (line 6): is a whole number, not a string",
        "pipes[3].allowed_roles[2] (line 6): has no effect",
        "pipes[3].max_rows (line 6): must be a whole number of at least 1",
        "pipes[4].parameters[0].type (line 7): Map is no type of parameters",
        "pipes[4].parameters[1] (line 7): there are two parameters named \"x\"",
        "pipes[4].parameters[2] (line 7): needs a name",
        "pipes[5].sql (line 8): \"x\" has two defaults: \"1\" and \"2\"",
        "pipes[5].max_execution_time (line 8): must be a time",
        "pipes[5].max_memory_usage (line 8): must be a size",
        "pipes[5].cache_ttl (line 8): must be a time of at most a day",
        "pipes[6].sql (line 9): the place of \"x\": \"Identifier\" is no type of parameters",
        "pipes[7].parameters[0].default (line 10): the default of \"x\" (UInt8) is no number",
        "pipes[8] (line 11): there are two pipes named \"h\"",
        "pipes[9] (line 12): is a whole number, not an object",
    ] {
        assert!(findings.iter().any(|finding| finding.starts_with(expected)), "{expected}\n{findings:#?}");
    }
}

#[test]
fn what_is_no_file_of_pipes_is_refused() {
    for (text, expected) in [
        ("", "line 1: the file is empty"),
        ("null", "line 1: the file holds null, not an object"),
        ("[]", "the file holds an array"),
        ("{\"pipes\": [}", "line 1: not JSON"),
        ("{\n\"pipes\": []\n}\n{}", "line 4: something follows the object"),
        ("\u{feff}{}", "not JSON"),
        ("{\"pipes\": {}}", "pipes (line 1): is an object, not an array"),
        ("{\"pipe\": []}", "pipe (line 1): is an unknown key; there are pipes"),
    ] {
        let findings = told(text);
        assert!(findings.iter().any(|finding| finding.to_string().contains(expected)), "{text}: {findings:?}");
    }
    assert!(PipeSet::parse(&vec![b' '; PipeSet::MAX_BYTES + 1]).is_err());
    assert!(PipeSet::parse(b"{\"pipes\": [\"\xff\"]}").unwrap_err()[0].problem.contains("UTF-8"));
    let many = format!("{{\"pipes\": [{}{{}}]}}", "{},".repeat(PipeSet::MAX_PIPES));
    assert!(told(&many)[0].problem.contains("more than 1000"));
    let wrong = format!("{{\"pipes\": [{}{{}}]}}", "{},".repeat(500));
    assert_eq!(told(&wrong).len(), 101);
}

proptest::proptest! {
    #[test]
    fn no_text_of_a_file_panics(text in "[{}\\[\\]\":,a-z0-9 \n]{0,80}|\\{\"pipes\":\\[\\{\"name\":\"a\",\"sql\":\"[^\"]{0,30}\"\\}\\]\\}") {
        drop(told(&text));
    }
}
