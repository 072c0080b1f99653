//! `sprig.urlParse` and `sprig.urlJoin`: a URL split into a map, and joined again.

use crate::expr::Value;
use crate::expr::lang::argument::Arguments;
use crate::expr::lang::builtin::Function;
use crate::expr::lang::work::{CallResult, EvalWork};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::new("urlParse", 1, 1, parse), Function::new("urlJoin", 1, 1, join)];

fn parse(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let text = a.text(0)?;
    work.claim(text.len().saturating_mul(2))?;
    if text.chars().any(char::is_control) {
        return Err(a.fault("an address holds no control characters"));
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme.to_ascii_lowercase(), rest),
        _ => (String::new(), rest),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (userinfo, host, path, opaque) = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let (userinfo, host) = authority.rsplit_once('@').unwrap_or(("", authority));
            (userinfo, host, path, "")
        }
        None if !scheme.is_empty() && !rest.starts_with('/') => ("", "", "", rest),
        None => ("", "", rest, ""),
    };
    let hostname = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inner, _)) => inner,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let fields = [
        ("scheme", scheme.as_str()),
        ("host", host),
        ("hostname", hostname),
        ("path", path),
        ("query", query),
        ("opaque", opaque),
        ("fragment", fragment),
        ("userinfo", userinfo),
    ];
    Ok(fields.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

fn join(a: &Arguments<'_>, work: &mut EvalWork) -> CallResult {
    let map = a.map(0)?;
    let field = |name: &str| match map.get(name) {
        None | Some(Value::Nil) => Ok(""),
        Some(Value::Str(text)) => Ok(&**text),
        Some(other) => Err(a.fault(format!("`{name}` must be a string, not {}", other.kind()))),
    };
    let mut url = String::new();
    for name in ["scheme", "userinfo", "host", "path", "query", "fragment", "opaque"] {
        work.claim(field(name)?.len() + 4)?;
    }
    if !field("scheme")?.is_empty() {
        url.push_str(field("scheme")?);
        url.push(':');
    }
    if field("opaque")?.is_empty() {
        let (host, userinfo, path) = (field("host")?, field("userinfo")?, field("path")?);
        if !host.is_empty() || !userinfo.is_empty() {
            url.push_str("//");
            if !userinfo.is_empty() {
                url.push_str(userinfo);
                url.push('@');
            }
            url.push_str(host);
            if !path.is_empty() && !path.starts_with('/') {
                url.push('/');
            }
        }
        url.push_str(path);
    } else {
        url.push_str(field("opaque")?);
    }
    for (name, sign) in [("query", '?'), ("fragment", '#')] {
        if !field(name)?.is_empty() {
            url.push(sign);
            url.push_str(field(name)?);
        }
    }
    Ok(Value::from(url))
}
