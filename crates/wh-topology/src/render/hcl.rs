//! Writes the few shapes of HCL that Terraform resources need, laid out as `terraform fmt` does. It reads nothing.

/// An attribute's value, written out.
#[derive(Debug)]
pub(super) struct Value(String);

impl Value {
    /// A text; `${` and `%{` would begin a template.
    pub(super) fn text(text: &str) -> Self {
        Self(serde_json::Value::from(text).to_string().replace("${", "$${").replace("%{", "%%{"))
    }

    pub(super) fn number(number: impl Into<i64>) -> Self {
        Self(number.into().to_string())
    }

    pub(super) fn flag(flag: bool) -> Self {
        Self(flag.to_string())
    }

    pub(super) fn texts(texts: &[String]) -> Self {
        let texts: Vec<_> = texts.iter().map(|text| Self::text(text).0).collect();
        Self(format!("[{}]", texts.join(", ")))
    }

    /// A reference to another resource, or any other expression.
    pub(super) fn expression(text: String) -> Self {
        Self(text)
    }
}

/// `kind "type" "name" { … }`, with blocks after its attributes.
pub(super) fn block(head: &str, attributes: &[(String, Value)], blocks: &[String]) -> String {
    let blocks = blocks.iter().map(|block| format!("\n{}", indented(block)));
    format!("{head} {{\n{}{}}}\n", indented(&aligned(attributes)), blocks.collect::<String>())
}

fn aligned(attributes: &[(String, Value)]) -> String {
    let width = attributes.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    attributes.iter().map(|(key, Value(value))| format!("{key:width$} = {value}\n")).collect()
}

fn indented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") }).collect()
}
