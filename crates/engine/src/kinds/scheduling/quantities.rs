//! Amounts of resources as objects of scheduling write them. Reads them; compares nothing.

use octoflow_manifest::{Path, Problem};
use serde_json::Value;

pub use crate::pod::quantity::render;
use crate::{
    admit::shape::{code::OUT_OF_RANGE, short},
    pod::quantity::thousandths,
    schedule::spec::Quantities,
};

/// Parses an amount in the unit of its resource: `cpu` in thousandths, everything else in whole units, rounded up.
pub fn parse(resource: &str, text: &str) -> Result<u64, String> {
    let thousandths = thousandths(text)
        .ok_or_else(|| format!("`{}` is not an amount such as 500m, 4 or 16Gi, or is too large", short(text)))?;
    Ok(if resource == "cpu" { thousandths } else { thousandths.div_ceil(1000) })
}

/// Parses `cpu=8,memory=16Gi`.
pub fn parse_all(text: &str) -> Result<Quantities, String> {
    let mut quantities = Quantities::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, amount) = pair.split_once('=').ok_or_else(|| format!("`{pair}` is not NAME=AMOUNT"))?;
        let name = name.trim();
        check_name(name)?;
        if quantities.insert(name.to_owned(), parse(name, amount.trim())?).is_some() {
            return Err(format!("{name} is given twice"));
        }
    }
    Ok(quantities)
}

/// Reads a map of amounts; what is wrong is reported at its key.
pub(super) fn read(map: &Value, at: &Path, problems: &mut Vec<Problem>) -> Quantities {
    let mut quantities = Quantities::new();
    for (name, value) in map.as_object().into_iter().flatten() {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            // The shape of it was reported already.
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => continue,
        };
        let path = at.clone().join(name.as_str());
        if problems.iter().any(|problem| problem.path.as_ref() == Some(&path)) {
            continue;
        }
        match check_name(name).and_then(|()| parse(name, &text)) {
            Ok(amount) => drop(quantities.insert(name.clone(), amount)),
            Err(why) => problems.push(Problem::error(OUT_OF_RANGE, why).path(path)),
        }
    }
    quantities
}

fn check_name(name: &str) -> Result<(), String> {
    let (domain, word) = name.split_once('/').map_or(("", name), |(domain, word)| (domain, word));
    let good = |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if !word.is_empty() && name.len() <= 253 && good(domain) && good(word) {
        return Ok(());
    }
    Err(format!("`{}` is not a resource such as cpu, memory or nvidia.com/gpu", short(name)))
}
