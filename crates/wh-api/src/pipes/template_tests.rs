//! Where placeholders are found, and where they are refused.

use super::*;
use proptest::prelude::*;

fn slots(sql: &str) -> Vec<(String, String)> {
    let (slots, faults) = scan(sql);
    assert_eq!(faults, [], "{sql}");
    let shown = |form| match form {
        Form::Native(ty) => ty,
        Form::Loose(None) => "?".to_owned(),
        Form::Loose(Some(default)) => format!("?={default}"),
    };
    slots.into_iter().map(|slot| (slot.name, shown(slot.form))).collect()
}

#[test]
fn placeholders_are_found_in_both_forms() {
    for (sql, expected) in [
        ("SELECT {a:UInt64} + { b : Array( String ) }", &[("a", "UInt64"), ("b", "Array( String )")][..]),
        ("SELECT {d:DateTime('UTC')}, {e:Enum8('}' = 1)}", &[("d", "DateTime('UTC')"), ("e", "Enum8('}' = 1)")]),
        ("LIMIT {{limit:10}} OFFSET {{ offset }}", &[("limit", "?=10"), ("offset", "?")]),
        ("WHERE a = {{x:}}", &[("x", "?=")]),
        // no placeholders: a map, an unfinished brace, a word with a dollar, a lone quote in a comment
        ("SELECT {'a': 1}, {, a$b$ {a:String} -- it's\n", &[("a", "String")]),
        ("SELECT '{' || {a:String} || \"b\" || 'it''s \\' {' ", &[("a", "String")]),
        ("/* a /* b */ ' */ SELECT {a:String} # it's\n#!'\n, 1 // '\n", &[("a", "String")]),
        ("SELECT $$it's$$, $x$ $y$ ' $x$, \u{2018}it's\u{2019}, {a:String}", &[("a", "String")]),
    ] {
        let found = slots(sql);
        let found: Vec<_> = found.iter().map(|(name, form)| (name.as_str(), form.as_str())).collect();
        assert_eq!(found, expected, "{sql}");
    }
}

#[test]
fn a_place_where_nothing_would_be_bound_is_refused() {
    for (sql, told) in [
        ("SELECT '{{id}}'", "\"id\" stands in a quoted text"),
        ("SELECT 'a {id:String} b'", "\"id\" stands in a quoted text"),
        ("SELECT `{{id}}`", "in a quoted text"),
        ("SELECT \"{{id}}\"", "in a quoted text"),
        ("SELECT $q$ {{id}} $q$", "in a quoted text"),
        ("SELECT \u{201c}{{id}}\u{201d}", "in a quoted text"),
        ("SELECT 1 -- {{id}}", "in a comment"),
        ("SELECT 1 /* /* */ {id:UInt8} */", "in a comment"),
        ("SELECT 'open", "a quoted text that begins here has no end"),
        ("SELECT 1 /* open", "a comment that begins here has no end"),
        ("SELECT {{id", "no end"),
        ("SELECT {{1d}}", "cannot name a parameter"),
        ("SELECT {{a b}}", "cannot name a parameter"),
        ("SELECT {_request_body:String}", "cannot name a parameter"),
    ] {
        let (_, faults) = scan(sql);
        assert_eq!(faults.len(), 1, "{sql}: {faults:?}");
        assert!(faults[0].1.contains(told), "{sql}: {faults:?}");
    }
}

proptest! {
    #[test]
    fn no_text_panics_and_places_are_where_they_say(sql in "[{}a-c:'`/*#$\\\\ \n-]{0,40}|.{0,20}") {
        let (slots, faults) = scan(&sql);
        for slot in slots {
            let text = &sql[slot.span.clone()];
            let placed = text.starts_with('{') && text.ends_with('}') && text.contains(&slot.name);
            prop_assert!(placed, "{}", text);
        }
        prop_assert!(faults.iter().all(|(at, _)| *at <= sql.len()));
    }
}
