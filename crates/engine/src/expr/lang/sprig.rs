//! The functions of `sprig.*`, by name. They keep the argument order their users know (`sprig.trimSuffix(suffix,
//! text)`); a pipe puts its value first, as pipes do everywhere in the language. Functions that need keys, the network
//! or the environment are refused by name.

use super::builtin::Function;
use crate::expr::nearest;

mod case;
mod coerce;
mod convert;
mod date;
mod dict;
mod kind;
mod link;
mod list;
mod math;
mod path;
mod pattern;
mod random;
mod semver;
mod text;
mod wrap;

const FAMILIES: [&[Function]; 13] = [
    text::FUNCTIONS,
    wrap::FUNCTIONS,
    path::FUNCTIONS,
    kind::FUNCTIONS,
    link::FUNCTIONS,
    math::FUNCTIONS,
    list::FUNCTIONS,
    dict::FUNCTIONS,
    convert::FUNCTIONS,
    pattern::FUNCTIONS,
    date::FUNCTIONS,
    semver::FUNCTIONS,
    random::FUNCTIONS,
];

/// Functions that also exist with the prefix `must`. In Sprig those fail where the others return nothing; here both
/// fail, because a hidden mistake is found late.
const MUST_VARIANTS: [&str; 31] = [
    "date_modify",
    "dateModify",
    "toDate",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "fromJson",
    "deepCopy",
    "merge",
    "mergeOverwrite",
    "append",
    "push",
    "prepend",
    "first",
    "rest",
    "last",
    "initial",
    "reverse",
    "uniq",
    "without",
    "has",
    "slice",
    "chunk",
    "compact",
    "regexMatch",
    "regexFindAll",
    "regexFind",
    "regexReplaceAll",
    "regexReplaceAllLiteral",
    "regexSplit",
    "regexQuoteMeta",
];

pub(super) fn find(name: &str) -> Option<&'static Function> {
    let exact = FAMILIES.iter().copied().flatten().find(|function| function.name == name);
    exact.or_else(|| find(without_must(name)?))
}

/// Returns the name without its `must` prefix.
fn without_must(name: &str) -> Option<&'static str> {
    let rest = name.strip_prefix("must_").or_else(|| name.strip_prefix("must"))?;
    MUST_VARIANTS.iter().copied().find(|known| {
        let first = rest.chars().next().map(|c| c.to_ascii_lowercase());
        known.chars().next() == first && known.get(1..) == rest.get(1..)
    })
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().copied().flatten().map(|function| function.name)
}

/// Returns the error message for an unknown function.
pub(super) fn unknown(name: &str) -> String {
    if let Some(reason) = refused(name) {
        return format!("sprig.{name}() is not available: {reason}");
    }
    let hint = nearest(name, names()).map(|known| format!("; did you mean 'sprig.{known}'?")).unwrap_or_default();
    format!("unknown function 'sprig.{name}'{hint}")
}

fn refused(name: &str) -> Option<&'static str> {
    match name {
        "env" | "expandenv" => Some("the environment of the engine is not the workflow's to read"),
        "genPrivateKey"
        | "genCA"
        | "genCAWithKey"
        | "genSelfSignedCert"
        | "genSelfSignedCertWithKey"
        | "genSignedCert"
        | "genSignedCertWithKey"
        | "buildCustomCert"
        | "derivePassword"
        | "bcrypt"
        | "htpasswd"
        | "encryptAES"
        | "decryptAES" => Some("keys and secrets do not belong into expressions, whose results are recorded"),
        "getHostByName" => Some("an expression may not ask the network"),
        "osBase" | "osDir" | "osClean" | "osExt" | "osIsAbs" => {
            Some("paths differ between the machines a workflow runs on; use base, dir, clean, ext and isAbs")
        }
        _ => None,
    }
}
