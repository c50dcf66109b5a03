//! Values with parts: arrays, maps, tuples. As bad as the worst of their parts.

use super::{
    Edit, Edited, Verdict, json, scalar, time,
    walk::{Part, Parts, spaced},
};
use crate::types::{Accept, JsonKind, Nested, Type, accepts};
use std::ops::Range;

/// Deeper values are left to ClickHouse. A type is never deeper than its parser allows; this bounds JSON.
const DEEPEST: usize = 128;

pub(super) fn judge(
    ty: &Type,
    text: &[u8],
    span: Range<usize>,
    kind: JsonKind,
    edits: &mut Vec<Edited>,
    depth: usize,
) -> Verdict {
    if depth > DEEPEST {
        return Verdict::CannotTell;
    }
    if let Type::Nullable(inner) | Type::LowCardinality(inner) | Type::Simple(inner) = ty
        && kind != JsonKind::Null
    {
        return judge(inner, text, span, kind, edits, depth + 1);
    }
    let value = &text[span.clone()];
    if matches!(ty, Type::Variant(_) | Type::Dynamic | Type::Opaque(_))
        && matches!(kind, JsonKind::Array | JsonKind::Object)
        && spaced(value)
    {
        edits.push((span.clone(), Edit::Verbatim));
    }
    match (ty, kind) {
        (Type::DateTime64 { .. }, JsonKind::Integer | JsonKind::Float) => {
            edits.push((span, Edit::Seconds));
            time::bare(value)
        }
        (Type::String, JsonKind::Array | JsonKind::Object) => {
            if spaced(value) {
                edits.push((span, Edit::Text));
            }
            Verdict::Takes
        }
        (Type::Array(inner), JsonKind::Array) => {
            each(Parts::of(text, &span), |part| nested(inner, text, part, edits, depth))
        }
        (Type::Nested(members), JsonKind::Array) => {
            let tuple = Type::Tuple(members.clone());
            each(Parts::of(text, &span), |part| nested(&tuple, text, part, edits, depth))
        }
        (Type::Map(key, inner), JsonKind::Object) => each(Parts::of(text, &span), |part| {
            let name = part.key.clone().map_or(Verdict::CannotTell, |at| scalar(key, &text[at], JsonKind::String));
            name.worse(nested(inner, text, part, edits, depth))
        }),
        (Type::Tuple(members), JsonKind::Array) if members.first().is_none_or(|member| member.name.is_none()) => {
            unnamed(members, text, span, edits, depth)
        }
        (Type::Tuple(members), JsonKind::Object) if members.first().is_some_and(|member| member.name.is_some()) => {
            named(members, text, span, edits, depth)
        }
        (Type::Geo(name), JsonKind::Array) => match shape(name) {
            Some(ty) => judge(&ty, text, span, kind, edits, depth + 1),
            None => Verdict::CannotTell,
        },
        (Type::Json(arguments), JsonKind::Object) if arguments.is_empty() => json::object(text, &span),
        // which of its types a value becomes is the engine's choice
        (Type::Variant(_), kind) => match accepts(ty, kind) {
            Accept::No(why) => Verdict::WrongKind(why),
            Accept::Yes if kind == JsonKind::Null => Verdict::Takes,
            Accept::Yes | Accept::CannotTell => Verdict::CannotTell,
        },
        _ => scalar(ty, value, kind),
    }
}

fn each(parts: Parts<'_>, mut verdict: impl FnMut(&Part) -> Verdict) -> Verdict {
    let mut worst = Verdict::Takes;
    for part in parts {
        worst = worst.worse(verdict(&part));
        if worst.rank() == 3 {
            break;
        }
    }
    worst
}

/// A part of a value. Its null where NULL has no place becomes the default.
fn nested(ty: &Type, text: &[u8], part: &Part, edits: &mut Vec<Edited>, depth: usize) -> Verdict {
    let verdict = judge(ty, text, part.value.clone(), part.kind, edits, depth + 1);
    if part.kind == JsonKind::Null && verdict == Verdict::Takes && !ty.nullable() {
        return Verdict::alters("has a null in it where the type has no NULL");
    }
    if let Verdict::WrongKind(wants) = verdict {
        return Verdict::Refuses(format!("has {} in it, where the type wants {wants}", part.kind.name()).into());
    }
    verdict
}

fn unnamed(members: &[Nested], text: &[u8], span: Range<usize>, edits: &mut Vec<Edited>, depth: usize) -> Verdict {
    let mut types = members.iter();
    let worst = each(Parts::of(text, &span), |part| match types.next() {
        Some(member) => nested(&member.ty, text, part, edits, depth),
        None => Verdict::refuses("has more elements than the tuple"),
    });
    if worst.rank() < 3 && types.next().is_some() {
        return Verdict::refuses("has fewer elements than the tuple");
    }
    worst
}

fn named(members: &[Nested], text: &[u8], span: Range<usize>, edits: &mut Vec<Edited>, depth: usize) -> Verdict {
    let mut given = vec![false; members.len()];
    let worst = each(Parts::of(text, &span), |part| {
        // as it stands: ClickHouse does not unescape the keys of a tuple
        let key = part.key.clone().map_or(&b""[..], |at| super::inside(&text[at]));
        let found = members.iter().position(|member| member.name.as_deref().is_some_and(|n| n.as_bytes() == key));
        let Some(at) = found else {
            return Verdict::alters("has a member that the tuple does not have: it would be dropped");
        };
        if std::mem::replace(&mut given[at], true) {
            return Verdict::refuses("has a member twice");
        }
        nested(&members[at].ty, text, part, edits, depth)
    });
    let missing = |(member, given): (&Nested, &bool)| !given && !member.ty.nullable();
    if members.iter().zip(&given).any(missing) {
        return worst.worse(Verdict::alters("lacks a member of the tuple: its default would be stored"));
    }
    worst
}

/// What a shape is made of.
fn shape(name: &str) -> Option<Type> {
    let point = || {
        let ordinate = || Nested { name: None, ty: Type::Float { bits: 64 } };
        Type::Tuple(vec![ordinate(), ordinate()])
    };
    let depth = match name {
        "Point" => 0,
        "Ring" | "LineString" => 1,
        "Polygon" | "MultiLineString" => 2,
        "MultiPolygon" => 3,
        _ => return None,
    };
    Some((0..depth).fold(point(), |inner, _| Type::Array(Box::new(inner))))
}
