//! Values of a type: its edges from `values.txt`, and as many more by chance that is the same every time.

use super::data::section;
use wh_clickhouse::types::Type;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    fn digits(&mut self, count: u64) -> String {
        let first = char::from(b'1' + self.below(9) as u8);
        std::iter::once(first).chain((1..count).map(|_| char::from(b'0' + self.below(10) as u8))).collect()
    }

    fn one<'a>(&mut self, of: &'a [String]) -> &'a str {
        &of[self.below(of.len() as u64) as usize]
    }
}

fn quoted(text: impl AsRef<str>) -> String {
    format!("\"{}\"", text.as_ref())
}

fn owned(texts: &[&str]) -> impl Iterator<Item = String> {
    texts.iter().map(|text| (*text).to_owned())
}

/// Without the wrappers that values see through.
fn bare(ty: &Type) -> &Type {
    if let Type::Nullable(inner) | Type::LowCardinality(inner) | Type::Simple(inner) = ty { bare(inner) } else { ty }
}

/// The values that are put to a type, as JSON texts, each once.
pub(crate) fn values(text: &str) -> Vec<String> {
    let seed =
        text.bytes().fold(0x9e37_79b9_7f4a_7c15, |sum: u64, b| (sum ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mut out = all(&Type::parse(text), &mut Dice(seed | 1));
    let mut seen = std::collections::HashSet::new();
    out.retain(|value| seen.insert(value.clone()));
    out
}

fn all(ty: &Type, dice: &mut Dice) -> Vec<String> {
    let mut out: Vec<String> = owned(&section("common")).collect();
    own(bare(ty), dice, &mut out);
    out
}

/// Some of the values of a part's type.
fn some(ty: &Type, dice: &mut Dice, count: u64) -> Vec<String> {
    let all = all(ty, dice);
    (0..count).map(|_| dice.one(&all).to_owned()).collect()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "what is common to all is enough for the rest")]
fn own(ty: &Type, dice: &mut Dice, out: &mut Vec<String>) {
    match ty {
        Type::Int { bits, .. } => whole(u64::from(*bits), dice, out),
        Type::Interval(_) => whole(64, dice, out),
        Type::Float { .. } => floats(dice, out),
        Type::Decimal { precision, scale } => decimals(u64::from(*precision), u64::from(*scale), dice, out),
        Type::String | Type::FixedString(_) | Type::Dynamic => {
            for length in [0, 1, 2, 3, 4, 31, 32, 33, 300] {
                out.extend(["x".repeat(length), "é".repeat(length / 2), "\\u00e9".repeat(length / 2)].map(quoted));
            }
            out.extend(owned(&["[ {\"a\" : \"x y\"} , 1 ]", "{\"a\":\"\\u0041\"}", "1.50", "1.5E+05"]));
        }
        Type::Enum { values, .. } => {
            for (name, number) in values {
                let near = [number.wrapping_sub(1), *number, number.wrapping_add(1)];
                out.extend(near.iter().flat_map(|n| [n.to_string(), quoted(n.to_string()), format!("{n}.0")]));
                out.extend([name.clone(), name.to_uppercase(), format!("{name} ")].map(quoted));
                out.push((i64::from(*number) + 65_536).to_string());
            }
        }
        Type::Uuid => uuids(dice, out),
        Type::Ipv4 | Type::Ipv6 => addresses(dice, out),
        Type::Date | Type::Date32 => {
            out.extend(section("digits").iter().flat_map(|digits| [(*digits).to_owned(), quoted(digits)]));
            out.extend(section("dates").iter().map(quoted));
            out.extend(section("times").iter().map(|time| quoted(format!("2023-05-06{time}"))));
            out.extend((0..60).map(|_| quoted(day(dice))));
        }
        Type::DateTime(_) | Type::DateTime64 { .. } => moments(dice, out),
        Type::Time | Type::Time64(_) => clocks(dice, out),
        Type::Json(_) => out.extend(owned(&section("json"))),
        Type::Array(inner) => {
            let inside = some(inner, dice, 90);
            out.extend(inside.iter().map(|value| format!("[{value}]")));
            out.extend(inside.chunks(7).map(|values| format!("[{}]", values.join(", "))));
        }
        Type::Map(key, inner) => {
            let keys = some(key, dice, 60);
            out.extend(keys.iter().filter(|key| key.starts_with('"')).map(|key| format!("{{{key}:1}}")));
            for value in some(inner, dice, 60) {
                out.push(format!("{{\"1\":{value}}}"));
                out.push(format!("{{\"2020-01-01\": {value}, \"1\":{value}}}"));
            }
        }
        Type::Tuple(members) | Type::Nested(members) => {
            for _ in 0..80 {
                let mut given = Vec::new();
                for (at, member) in members.iter().enumerate() {
                    let all = some(&member.ty, dice, 40);
                    let name = member.name.as_ref().map(|name| format!("\"{name}\":")).unwrap_or_default();
                    if dice.below(8) > 0 {
                        given.push(format!("{name}{}", dice.one(&all)));
                    }
                    if at == 0 && dice.below(10) == 0 {
                        given.push(format!("{name} {}", dice.one(&all)));
                    }
                }
                let named = members.first().is_some_and(|member| member.name.is_some());
                let tuple = if named { format!("{{{}}}", given.join(",")) } else { format!("[{}]", given.join(" , ")) };
                out.push(if matches!(ty, Type::Nested(_)) { format!("[{tuple},{tuple}]") } else { tuple });
            }
        }
        Type::Geo(_) => {
            for value in some(&Type::Float { bits: 64 }, dice, 30) {
                let point = format!("[{value}, 1.5]");
                out.extend([format!("[{point}]"), format!("[[{point},{point}]]"), format!("[[[{point}]]]"), point]);
            }
            out.extend(owned(&["[1,2,3]", "[[1,2],[3]]", "[[],[1,2]]", "[\"1\",\"2\"]", "\"POINT(1 2)\""]));
        }
        Type::Variant(types) => out.extend(types.iter().flat_map(|ty| some(ty, dice, 40))),
        _ => {}
    }
}

fn whole(bits: u64, dice: &mut Dice, out: &mut Vec<String>) {
    // the limits of each width, one below, one above
    for power in [bits - 1, bits] {
        for add in [-1, 0, 1] {
            let text = power_of_two(power, add);
            let negative = format!("-{text}");
            out.extend([quoted(&text), quoted(&negative), format!("{text}.0"), text, negative]);
        }
    }
    out.extend(section("whole").iter().map(quoted));
    for _ in 0..60 {
        let count = 1 + dice.below(bits / 3 + 2);
        let digits = format!("{}{}", ["", "-"][dice.below(2) as usize], dice.digits(count));
        out.extend([quoted(&digits), digits]);
    }
    out.push(format!("1{}", "0".repeat(200)));
}

/// A power of two is no multiple of ten, so adding one changes its last digit alone.
fn power_of_two(power: u64, add: i8) -> String {
    let mut digits = vec![1_u8];
    for _ in 0..power {
        let mut carry = 0;
        for digit in &mut digits {
            let doubled = *digit * 2 + carry;
            (*digit, carry) = (doubled % 10, doubled / 10);
        }
        if carry > 0 {
            digits.push(carry);
        }
    }
    digits[0] = digits[0].checked_add_signed(add).unwrap();
    digits.iter().rev().map(|digit| char::from(b'0' + digit)).collect()
}

fn floats(dice: &mut Dice, out: &mut Vec<String>) {
    out.extend(section("float edges").iter().flat_map(|edge| [(*edge).to_owned(), format!("-{edge}"), quoted(edge)]));
    out.extend(section("floats").iter().map(quoted));
    for _ in 0..100 {
        let (whole, fraction) = (1 + dice.below(20), 1 + dice.below(20));
        let mantissa = format!("{}.{}", dice.digits(whole), dice.digits(fraction));
        let power = dice.below(700) as i64 - 350;
        out.extend([format!("{mantissa}e{power}"), format!("-{mantissa}"), quoted(format!("{mantissa}E{power}"))]);
    }
}

fn decimals(precision: u64, scale: u64, dice: &mut Dice, out: &mut Vec<String>) {
    let room = precision - scale;
    for whole in [room.saturating_sub(1), room, room + 1] {
        for fraction in [0, scale.saturating_sub(1), scale, scale + 1, scale + 30] {
            let front = if whole == 0 { "0".to_owned() } else { "9".repeat(whole as usize) };
            let text = if fraction == 0 { front } else { format!("{front}.{}", "9".repeat(fraction as usize)) };
            out.extend([quoted(&text), format!("-{text}"), text]);
        }
        out.extend([format!("1e{whole}"), format!("1E-{whole}"), format!("0.1e{}", whole + 1)]);
        out.extend([format!("12.5e{whole}"), quoted(format!("1e{whole}"))]);
    }
    out.extend(section("decimals").iter().map(quoted));
    for _ in 0..60 {
        let (whole, fraction) = (1 + dice.below(room + 2), dice.below(scale + 4));
        let front = dice.digits(whole);
        let text = if fraction == 0 { front } else { format!("{front}.{}", dice.digits(fraction)) };
        let power = dice.below(2 * precision) as i64 - precision as i64;
        out.extend([quoted(&text), format!("{text}e{power}"), text]);
    }
}

fn uuids(dice: &mut Dice, out: &mut Vec<String>) {
    for _ in 0..20 {
        let hex = format!("{:016x}{:016x}", dice.next(), dice.next());
        let dashed = format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        let cut = dashed[..dice.below(36) as usize].to_owned();
        let (loud, odd, braced) = (dashed.to_uppercase(), dashed.replace('-', "_"), format!("{{{dashed}}}"));
        out.extend([hex, dashed, cut, loud, odd, braced].map(quoted));
    }
}

fn addresses(dice: &mut Dice, out: &mut Vec<String>) {
    out.extend(section("addresses").iter().map(quoted));
    for _ in 0..40 {
        let four: Vec<String> = (0..4).map(|_| dice.below(260).to_string()).collect();
        let eight: Vec<String> = (0..8).map(|_| format!("{:x}", dice.below(0x1_0000))).collect();
        let cut = dice.below(8) as usize;
        let short = format!("{}::{}", eight[..cut].join(":"), eight[cut + 1..].join(":"));
        out.extend([four.join("."), eight.join(":"), short].map(quoted));
    }
}

fn day(dice: &mut Dice) -> String {
    format!("{:04}-{:02}-{:02}", 1890 + dice.below(420), 1 + dice.below(12), 1 + dice.below(31))
}

fn moments(dice: &mut Dice, out: &mut Vec<String>) {
    for digits in section("digits") {
        out.extend([digits.to_owned(), quoted(digits), format!("{digits}.25")]);
    }
    out.extend(section("dates").iter().chain(&section("moments")).map(quoted));
    out.extend(section("times").iter().map(|time| quoted(format!("2023-05-06{time}"))));
    for _ in 0..80 {
        let zone = ["", "", "Z", "+05:30", "-08:00"][dice.below(5) as usize];
        let clock = format!("{:02}:{:02}:{:02}", dice.below(24), dice.below(60), dice.below(60));
        let count = dice.below(12);
        let fraction = if dice.below(2) == 0 { String::new() } else { format!(".{}", dice.digits(count)) };
        out.push(quoted(format!("{} {clock}{fraction}{zone}", day(dice))));
        out.push(dice.below(1 << 33).to_string());
    }
}

fn clocks(dice: &mut Dice, out: &mut Vec<String>) {
    out.extend(section("clocks").iter().map(quoted));
    for _ in 0..60 {
        let (hours, minutes, seconds) = (dice.below(1000), dice.below(70), dice.below(70));
        out.push(quoted(format!("{hours:02}:{minutes:02}:{seconds:02}.{}", dice.below(1000))));
    }
    out.extend((0..20).map(|_| dice.below(1 << 52).to_string()));
    out.extend(owned(&["3599999999", "3600000000", "3599999999999999", "3600000000000000", "-3600000"]));
}
