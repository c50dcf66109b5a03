//! Grouping by intervals of time. Pure.

use super::Build;
use crate::query::{ast::TimeBucket, operand::Operand, refused::Refused, value::is_zone};
use wh_clickhouse::types::Type;

/// Units by the suffix of an interval, and whether a date has them.
const UNITS: &[(&str, &str, bool)] = &[
    ("s", "SECOND", false),
    ("m", "MINUTE", false),
    ("h", "HOUR", false),
    ("d", "DAY", true),
    ("w", "WEEK", true),
    ("mo", "MONTH", true),
    ("y", "YEAR", true),
];
const MAX_COUNT: u32 = 10_000;

/// A number and a unit: `5m`.
fn interval(text: &str) -> Option<(u32, &'static str, bool)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, suffix) = text.split_at(end);
    let (_, unit, of_dates) = UNITS.iter().find(|(known, ..)| *known == suffix)?;
    let count = count.parse().ok().filter(|count| (1..=MAX_COUNT).contains(count))?;
    Some((count, unit, *of_dates))
}

impl Build<'_> {
    /// The start of the interval that a row's time falls into.
    pub(super) fn bucket(&self, bucket: &TimeBucket) -> Result<Operand, Refused> {
        let column = self.column("time_bucket.column", &bucket.column)?;
        if !column.is_time() {
            let text = format!("needs a date or time column, {:?} is {}", column.name, column.shown);
            return Err(Refused::at("time_bucket.column", text));
        }
        let (count, unit, of_dates) = interval(&bucket.interval).ok_or_else(|| {
            let text = format!("is a whole number from 1 to {MAX_COUNT} and one of s, m, h, d, w, mo, y, like \"5m\"");
            Refused::at("time_bucket.interval", text)
        })?;
        let zone = bucket.zone.as_deref().unwrap_or("UTC");
        if !is_zone(zone) {
            return Err(Refused::at("time_bucket.zone", "is the name of a time zone, like \"Europe/Paris\""));
        }
        let name = self.alias("time_bucket.alias", bucket.alias.clone().unwrap_or_else(|| "time_bucket".to_owned()))?;
        let shown = "a time bucket".to_owned();
        if column.is_date() {
            if !of_dates {
                return Err(Refused::at("time_bucket.interval", "of a date column has days, weeks, months or years"));
            }
            if bucket.zone.is_some() {
                return Err(Refused::at("time_bucket.zone", "is for columns of times: a date has none"));
            }
            let sql = format!("toDate32(toStartOfInterval({}, INTERVAL {count} {unit}))", column.sql);
            return Ok(Operand { sql, name, ty: Type::Date32, shown });
        }
        let sql =
            format!("toDateTime64(toStartOfInterval({}, INTERVAL {count} {unit}, '{zone}'), 0, '{zone}')", column.sql);
        Ok(Operand { sql, name, ty: Type::DateTime64 { precision: 0, zone: Some(zone.to_owned()) }, shown })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_number_and_a_unit() {
        assert_eq!(interval("5m"), Some((5, "MINUTE", false)));
        assert_eq!(interval("3mo"), Some((3, "MONTH", true)));
        for other in ["", "m", "5", "0m", "10001s", "5 m", "-5m", "1.5h", "5M", "5m;", "99999999999s", "1d1h"] {
            assert_eq!(interval(other), None, "{other}");
        }
    }
}
