//! What `EXPLAIN QUERY TREE` prints: the tables and the functions of a statement, every subquery's too. Pure.

use std::collections::BTreeSet;

/// Table functions that read nothing which changes.
const CONSTANT: &[&str] =
    &["numbers", "numbers_mt", "zeros", "zeros_mt", "values", "null", "generate_series", "generateSeries"];
/// Functions that read what is no table in the tree: dictionaries, tables of the engine Join, files, and a subquery's
/// value that was put in the place of the subquery.
const READING: &[&str] = &["dict", "joinGet", "__getScalar", "file", "catboost", "hasColumnInTable"];

/// What a statement names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    /// Full names, without quotes.
    pub(super) tables: BTreeSet<String>,
    /// Functions, in lower case.
    pub(super) functions: BTreeSet<String>,
    /// Something is read that is no table, or was not looked up.
    pub(super) unknown: bool,
}

impl Tree {
    /// Reads the printed tree.
    pub(super) fn parse(text: &str) -> Self {
        let mut tree = Self::default();
        let mut known = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("QUERY id") || line.starts_with("UNION id") {
                known = true;
            } else if line.starts_with("TABLE id") && line.ends_with(", table_name: system.one") {
                // what a statement without FROM reads
            } else if let Some(rest) = line.strip_prefix("TABLE id") {
                match rest.split_once(", table_name: ") {
                    Some((_, name)) if !rest.contains(", temporary_table_name: ") => {
                        tree.tables.insert(without_modifiers(name).to_owned());
                    }
                    _ => tree.unknown = true,
                }
            } else if let Some(rest) = line.strip_prefix("TABLE_FUNCTION id") {
                let name = rest.split_once(", table_function_name: ").map_or("", |(_, name)| until_comma(name));
                tree.unknown |= !CONSTANT.contains(&name);
            } else if let Some(rest) = line.strip_prefix("FUNCTION id") {
                if let Some((_, name)) = rest.split_once(", function_name: ") {
                    let name = until_comma(name);
                    tree.unknown |= READING.iter().any(|reading| name.starts_with(reading));
                    tree.functions.insert(name.to_ascii_lowercase());
                }
            } else if line.starts_with("IDENTIFIER id") {
                tree.unknown = true;
            }
        }
        tree.unknown |= !known;
        tree
    }
}

/// The table that a statement inserts into, and its database where that is named, by what `EXPLAIN AST` prints. `None`: it is
/// no plain insert into a table, or has settings of its own.
pub(super) fn inserts_into(lines: &[String]) -> Option<(Option<&str>, &str)> {
    let (first, rest) = lines.split_first()?;
    if !first.starts_with("InsertQuery") || rest.iter().any(|line| line.trim_start() == "Set") {
        return None;
    }
    // parts of the statement itself stand one blank in
    let own = rest.iter().filter_map(|line| line.strip_prefix(' ')).filter(|line| !line.starts_with(' '));
    let names: Vec<&str> = own.map_while(|line| line.strip_prefix("Identifier ")).collect();
    match names.as_slice() {
        [table] => Some((None, table)),
        [database, table] => Some((Some(database), table)),
        _ => None,
    }
}

fn until_comma(text: &str) -> &str {
    text.split_once(',').map_or(text, |(name, _)| name)
}

/// `FINAL` and `SAMPLE` are printed behind the name.
fn without_modifiers(name: &str) -> &str {
    let ends = [", final: ", ", sample_size: ", ", sample_offset: "].into_iter().filter_map(|word| name.find(word));
    &name[..ends.min().unwrap_or(name.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_functions_are_found_wherever_they_stand() {
        let tree = Tree::parse(
            "QUERY id: 0\n  PROJECTION\n    LIST id: 1, nodes: 1\n      CONSTANT id: 2, constant_value: 1\n        EXPRESSION\n          \
             FUNCTION id: 3, function_name: now, function_type: ordinary, result_type: DateTime\n  JOIN TREE\n    \
             TABLE id: 4, alias: __table1, table_name: d.t, final: 1\n    TABLE id: 5, table_name: d.x.y\n    \
             TABLE_FUNCTION id: 6, alias: __table3, table_function_name: numbers\n",
        );
        assert_eq!(tree.tables.iter().collect::<Vec<_>>(), ["d.t", "d.x.y"]);
        assert_eq!(tree.functions.iter().collect::<Vec<_>>(), ["now"]);
        assert!(!tree.unknown);
    }

    #[test]
    fn the_table_of_an_insert_is_the_first_thing_it_names() {
        let of = |text: &str| {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            inserts_into(&lines).map(|(database, table)| (database.map(str::to_owned), table.to_owned()))
        };
        let select = " SelectWithUnionQuery (children 1)\n  ExpressionList (children 1)\n   Identifier x";
        assert_eq!(of(&format!("InsertQuery (children 2)\n Identifier t\n{select}")), Some((None, "t".into())));
        let both = format!("InsertQuery (children 3)\n Identifier d\n Identifier t\n{select}");
        assert_eq!(of(&both), Some((Some("d".into()), "t".into())));
        assert_eq!(of(&format!("InsertQuery (children 2)\n Function url (children 1)\n{select}")), None);
        assert_eq!(of("InsertQuery (children 2)\n Identifier t\n Set"), None);
        assert_eq!(of("AlterQuery (children 2)\n Identifier t"), None);
    }

    #[test]
    fn what_is_no_table_is_not_known() {
        for line in [
            "TABLE_FUNCTION id: 6, alias: __table3, table_function_name: url",
            "TABLE id: 1, temporary_table_name: x",
            "FUNCTION id: 3, function_name: dictGetString, function_type: ordinary",
            "IDENTIFIER id: 3, identifier: x",
        ] {
            assert!(Tree::parse(&format!("QUERY id: 0\n  {line}\n")).unknown, "{line}");
        }
        assert!(Tree::parse("").unknown, "no tree at all");
        assert!(!Tree::parse("QUERY id: 0\n").unknown);
    }
}
