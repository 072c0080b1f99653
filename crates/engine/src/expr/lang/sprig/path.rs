//! `sprig.*` functions on slash-separated paths. No file is ever accessed.

use crate::expr::Value;
use crate::expr::lang::builtin::Function;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base", 1, 1, |a, _| {
        let path = a.text(0)?.trim_end_matches('/');
        let base = path.rsplit('/').next().unwrap_or_default();
        Ok(Value::from(match (base, a.text(0)?) {
            ("", "") => ".",
            ("", _) => "/",
            (base, _) => base,
        }))
    }),
    Function::new("ext", 1, 1, |a, _| {
        let base = a.text(0)?.rsplit('/').next().unwrap_or_default();
        Ok(Value::from(base.rfind('.').map_or("", |at| &base[at..])))
    }),
    Function::new("dir", 1, 1, |a, work| {
        let path = a.text(0)?;
        work.claim_list(path.matches('/').count())?;
        let dir = path.rfind('/').map_or("", |at| &path[..=at]);
        Ok(Value::from(clean(dir)))
    }),
    Function::new("clean", 1, 1, |a, work| {
        work.claim_list(a.text(0)?.matches('/').count())?;
        Ok(Value::from(clean(a.text(0)?)))
    }),
    Function::new("isAbs", 1, 1, |a, _| Ok(Value::Bool(a.text(0)?.starts_with('/')))),
];

/// Returns the shortest equivalent path: no empty parts, no `.`, and `..` only at the start.
fn clean(path: &str) -> String {
    let rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            ".." if rooted => {}
            part => parts.push(part),
        }
    }
    match (rooted, parts.join("/")) {
        (true, rest) => format!("/{rest}"),
        (false, rest) if rest.is_empty() => ".".to_owned(),
        (false, rest) => rest,
    }
}
