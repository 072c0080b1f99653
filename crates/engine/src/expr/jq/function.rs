//! Functions that filters may call.

use serde_json::{Map, Value, json};

use super::{
    JqTree, Operator, plain,
    run::{JqMachine, Results, kind, number, operate, order, truthy},
};

const PLAIN: [&str; 31] = [
    "length",
    "keys",
    "values",
    "add",
    "any",
    "all",
    "first",
    "last",
    "min",
    "max",
    "sort",
    "unique",
    "reverse",
    "flatten",
    "tostring",
    "tonumber",
    "tojson",
    "fromjson",
    "type",
    "not",
    "empty",
    "to_entries",
    "from_entries",
    "ascii_downcase",
    "ascii_upcase",
    "floor",
    "ceil",
    "trim",
    "arrays",
    "objects",
    "strings",
];
const ONE: [&str; 15] = [
    "map",
    "select",
    "join",
    "split",
    "has",
    "contains",
    "startswith",
    "endswith",
    "sort_by",
    "unique_by",
    "first",
    "any",
    "all",
    "ltrimstr",
    "rtrimstr",
];

/// Checks that a function with this many arguments exists.
pub(super) fn known(name: &str, arguments: usize) -> Result<(), String> {
    let list: &[&str] = match arguments {
        0 => &PLAIN,
        1 => &ONE,
        _ => &[],
    };
    if list.contains(&name) {
        return Ok(());
    }
    if PLAIN.contains(&name) || ONE.contains(&name) {
        return Err(format!("the function `{name}` does not take {arguments} arguments"));
    }
    Err(format!("the function `{name}` is not known here"))
}

pub(super) fn call(machine: &mut JqMachine, name: &str, arguments: &[JqTree], input: &Value) -> Results {
    match arguments {
        [] => plainly(machine, name, input),
        [argument, ..] => with(machine, name, argument, input),
    }
}

fn plainly(machine: &mut JqMachine, name: &str, input: &Value) -> Results {
    let wrong = || format!("{} has no {name}", kind(input));
    let items = || input.as_array().ok_or_else(wrong);
    let text = || input.as_str().ok_or_else(wrong);
    machine.step(input.as_array().map_or(1, Vec::len))?;
    let one = match name {
        "empty" => return Ok(Vec::new()),
        "arrays" => return Ok(input.is_array().then(|| input.clone()).into_iter().collect()),
        "objects" => return Ok(input.is_object().then(|| input.clone()).into_iter().collect()),
        "strings" => return Ok(input.is_string().then(|| input.clone()).into_iter().collect()),
        "values" => return Ok((!input.is_null()).then(|| input.clone()).into_iter().collect()),
        "length" => match input {
            Value::Null => json!(0),
            Value::String(text) => json!(text.chars().count()),
            Value::Array(items) => json!(items.len()),
            Value::Object(map) => json!(map.len()),
            Value::Number(amount) => number(amount.as_f64().unwrap_or_default().abs()),
            Value::Bool(_) => return Err(wrong()),
        },
        "keys" => match input {
            Value::Object(map) => json!(map.keys().collect::<std::collections::BTreeSet<_>>()),
            Value::Array(items) => json!((0..items.len()).collect::<Vec<_>>()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(wrong()),
        },
        "add" => {
            let values = elements(input).ok_or_else(wrong)?;
            values.into_iter().try_fold(Value::Null, |sum, item| operate(Operator::Add, &sum, item))?
        }
        "any" => json!(items()?.iter().any(truthy)),
        "all" => json!(items()?.iter().all(truthy)),
        "first" => items()?.first().cloned().unwrap_or_default(),
        "last" => items()?.last().cloned().unwrap_or_default(),
        "min" => items()?.iter().min_by(|a, b| order(a, b)).cloned().unwrap_or_default(),
        "max" => items()?.iter().max_by(|a, b| order(a, b)).cloned().unwrap_or_default(),
        "sort" | "unique" => {
            let mut sorted = items()?.clone();
            sorted.sort_by(order);
            if name == "unique" {
                sorted.dedup();
            }
            Value::Array(sorted)
        }
        "reverse" => match input.as_str() {
            Some(text) => json!(text.chars().rev().collect::<String>()),
            None => Value::Array(items()?.iter().rev().cloned().collect()),
        },
        "flatten" => {
            let mut flat = Vec::new();
            let mut open: Vec<&Value> = items()?.iter().rev().collect();
            while let Some(item) = open.pop() {
                machine.step(1)?;
                match item.as_array() {
                    Some(inner) => open.extend(inner.iter().rev()),
                    None => flat.push(item.clone()),
                }
            }
            Value::Array(flat)
        }
        "tostring" => json!(plain(input)),
        "tojson" => json!(input.to_string()),
        "fromjson" => serde_json::from_str(text()?).map_err(|error| format!("the text is no JSON: {error}"))?,
        "tonumber" if input.is_number() => input.clone(),
        "tonumber" => number(text()?.trim().parse().map_err(|_| format!("'{}' is no number", plain(input)))?),
        "floor" => number(input.as_f64().ok_or_else(wrong)?.floor()),
        "ceil" => number(input.as_f64().ok_or_else(wrong)?.ceil()),
        "type" => json!(kind(input)),
        "not" => json!(!truthy(input)),
        "trim" => json!(text()?.trim()),
        "ascii_downcase" => json!(text()?.to_ascii_lowercase()),
        "ascii_upcase" => json!(text()?.to_ascii_uppercase()),
        "to_entries" => {
            let map = input.as_object().ok_or_else(wrong)?;
            Value::Array(map.iter().map(|(key, value)| json!({"key": key, "value": value})).collect())
        }
        "from_entries" => {
            let mut map = Map::new();
            for entry in items()? {
                let key = [&entry["key"], &entry["name"], &entry["k"]].into_iter().find(|key| !key.is_null());
                map.insert(key.map(plain).unwrap_or_default(), entry["value"].clone());
            }
            Value::Object(map)
        }
        _ => return Err(format!("the function `{name}` is not known here")),
    };
    Ok(vec![one])
}

fn with(machine: &mut JqMachine, name: &str, argument: &JqTree, input: &Value) -> Results {
    let wrong = || format!("{} has no {name}", kind(input));
    let items = || input.as_array().ok_or_else(wrong);
    let one = match name {
        "select" => {
            let holds = machine.run(argument, input)?;
            return Ok(holds.iter().filter(|holds| truthy(holds)).map(|_| input.clone()).collect());
        }
        "first" => return Ok(machine.run(argument, input)?.into_iter().take(1).collect()),
        "map" => {
            let mut mapped = Vec::new();
            for item in elements(input).ok_or_else(wrong)? {
                mapped.extend(machine.run(argument, item)?);
            }
            Value::Array(mapped)
        }
        "any" | "all" => {
            let mut held = Vec::new();
            for item in items()? {
                held.extend(machine.run(argument, item)?.iter().map(truthy));
            }
            json!(if name == "any" { held.contains(&true) } else { !held.contains(&false) })
        }
        "sort_by" | "unique_by" => {
            let mut keyed = Vec::new();
            for item in items()? {
                keyed.push((Value::Array(machine.run(argument, item)?), item.clone()));
            }
            keyed.sort_by(|(a, _), (b, _)| order(a, b));
            if name == "unique_by" {
                keyed.dedup_by(|(a, _), (b, _)| a == b);
            }
            Value::Array(keyed.into_iter().map(|(_, item)| item).collect())
        }
        _ => {
            let given = machine.one(argument, input)?;
            let (text, part) = (input.as_str(), given.as_str());
            match (name, text, part) {
                ("join", _, Some(part)) => json!(items()?.iter().map(plain).collect::<Vec<_>>().join(part)),
                ("split", Some(text), Some(part)) => json!(text.split(part).collect::<Vec<_>>()),
                ("startswith", Some(text), Some(part)) => json!(text.starts_with(part)),
                ("endswith", Some(text), Some(part)) => json!(text.ends_with(part)),
                ("ltrimstr", Some(text), Some(part)) => json!(text.strip_prefix(part).unwrap_or(text)),
                ("rtrimstr", Some(text), Some(part)) => json!(text.strip_suffix(part).unwrap_or(text)),
                ("has", ..) => json!(match (input, &given) {
                    (Value::Object(map), Value::String(key)) => map.contains_key(key),
                    (Value::Array(items), Value::Number(index)) => {
                        index.as_u64().is_some_and(|index| (index as usize) < items.len())
                    }
                    _ => return Err(wrong()),
                }),
                ("contains", ..) => json!(contains(machine, input, &given)?),
                _ => return Err(wrong()),
            }
        }
    };
    Ok(vec![one])
}

/// The elements of a list or the values of an object.
fn elements(value: &Value) -> Option<Vec<&Value>> {
    let of_list = || Some(value.as_array()?.iter().collect());
    value.as_object().map(|map| map.values().collect()).or_else(of_list)
}

/// Reports whether the whole contains the part. Depth is bounded by that of the object and the filter.
fn contains(machine: &mut JqMachine, whole: &Value, part: &Value) -> Result<bool, String> {
    machine.step(1)?;
    Ok(match (whole, part) {
        (Value::String(whole), Value::String(part)) => whole.contains(part.as_str()),
        (Value::Array(whole), Value::Array(parts)) => {
            for part in parts {
                let mut found = false;
                for item in whole {
                    found = found || contains(machine, item, part)?;
                }
                if !found {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Object(whole), Value::Object(parts)) => {
            for (key, part) in parts {
                match whole.get(key) {
                    Some(value) if contains(machine, value, part)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (whole, part) => whole == part,
    })
}
