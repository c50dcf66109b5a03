//! `multipart/form-data`: how parameters travel that are too long for a request line. ClickHouse takes 128 KiB a field.

use bytes::Bytes;
use std::fmt::Write;

/// Longest value of a parameter on the wire, in bytes: ClickHouse's own default for a field of a form
/// (`http_max_field_value_size`).
pub const LONGEST_VALUE: usize = 128 * 1024;

/// A form's body and its media type. `Err` names the field that cannot be sent and says why.
pub(crate) fn encode<'a>(fields: &[(&'a str, &str)]) -> Result<(Bytes, String), (&'a str, &'static str)> {
    for (name, value) in fields {
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err((name, "a name of letters, digits and underscores is needed"));
        }
        if value.len() > LONGEST_VALUE {
            return Err((name, "is longer than 128 KiB"));
        }
    }
    // any text that no value contains
    let mut number = 0_u32;
    let mut boundary = String::from("wavehouse-0");
    while fields.iter().any(|(_, value)| value.contains(&boundary)) {
        number += 1;
        boundary = format!("wavehouse-{number}");
    }
    let mut body = String::new();
    for (name, value) in fields {
        // writing to a string does not fail
        write!(body, "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").ok();
    }
    write!(body, "--{boundary}--\r\n").ok();
    Ok((Bytes::from(body), format!("multipart/form-data; boundary={boundary}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_in_no_value_and_bad_fields_are_named() {
        let (body, kind) = encode(&[("query", "SELECT 1"), ("param_x", "a\r\n--wavehouse-0--\r\nb")]).unwrap();
        assert_eq!(kind, "multipart/form-data; boundary=wavehouse-1");
        assert!(body.ends_with(b"b\r\n--wavehouse-1--\r\n"));
        assert_eq!(encode(&[("a\"b", "")]).unwrap_err().0, "a\"b");
        assert_eq!(encode(&[("long", &"x".repeat(LONGEST_VALUE + 1))]).unwrap_err().1, "is longer than 128 KiB");
    }
}
