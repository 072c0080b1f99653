//! Compares a value with its shape and reports every difference at once. Also returns a clean copy that typed
//! deserialization accepts: without nulls, and without values of the wrong type.

use std::collections::HashSet;

use octoflow_manifest::{Path, Problem};
use serde_json::{Map, Value};

use super::{Field, Shape, Support, code};
use crate::expr::nearest;

/// The result of a check.
#[derive(Debug, Default)]
pub struct Checked {
    /// The first [`MAX_PROBLEMS`] of them.
    pub problems: Vec<Problem>,
    /// One for each ignored field name, at its first place.
    pub warnings: Vec<Problem>,
    /// The value without nulls and invalid parts; a list with an invalid element is left out whole, so that indices
    /// keep their meaning.
    pub value: Value,
    /// Paths of values with wrong types, so that later checks draw no conclusions from what is missing there.
    pub broken: Vec<Path>,
}

/// Maximum number of problems reported: a user fixes the first few and tries again; an endless list helps nobody.
pub const MAX_PROBLEMS: usize = 100;

/// Maximum depth that is checked; the manifest reader allows less.
const MAX_DEPTH: usize = 128;

pub fn check(value: &Value, shape: &Shape) -> Checked {
    let mut checker = Checker { path: Path::root(), checked: Checked::default(), warned: HashSet::new() };
    let clean = checker.value(value, shape).unwrap_or(Value::Null);
    Checked { value: clean, ..checker.checked }
}

struct Checker {
    path: Path,
    checked: Checked,
    warned: HashSet<&'static str>,
}

impl Checker {
    /// Returns the clean copy, or `None` if the value itself has the wrong type.
    fn value(&mut self, value: &Value, shape: &Shape) -> Option<Value> {
        if self.path.segments().len() >= MAX_DEPTH {
            self.wrong(code::OUT_OF_RANGE, || format!("nested deeper than {MAX_DEPTH} levels"), None);
            return None;
        }
        match (shape, value) {
            (Shape::Object(_), Value::Object(object)) => Some(self.object(object, shape)),
            (Shape::Map(inner), Value::Object(object)) => self.map(object, inner),
            (Shape::List(inner), Value::Array(items)) => self.list(items, inner),
            (Shape::Any, _)
            | (Shape::Text | Shape::IntOrText, Value::String(_))
            | (Shape::Bool, Value::Bool(_))
            | (Shape::Scalar, Value::String(_) | Value::Number(_) | Value::Bool(_)) => Some(value.clone()),
            (Shape::IntOrText, Value::Number(number)) if !number.is_f64() => Some(value.clone()),
            (Shape::Word(words), Value::String(text)) => self.word(text, words),
            (Shape::Int { least, most }, Value::Number(number)) if !number.is_f64() => {
                self.number(value, number.as_i64(), *least, *most)
            }
            (Shape::Quantity, Value::Number(number)) if number.as_f64().is_some_and(|amount| amount >= 0.0) => {
                Some(value.clone())
            }
            (Shape::Like { fits, .. }, Value::String(text)) => self.like(value, fits(text)),
            (Shape::Like { fits, .. }, Value::Number(_) | Value::Bool(_)) => self.like(value, fits(&value.to_string())),
            (Shape::Either(_, full), Value::Array(_) | Value::Object(_)) => self.value(value, full),
            (Shape::Either(short, _), _) => self.value(value, short),
            (Shape::Quantity, Value::String(text)) if is_quantity(text) => Some(value.clone()),
            (Shape::Object(_) | Shape::List(_) | Shape::Map(_) | Shape::Text | Shape::Word(_) | Shape::Bool, _)
            | (Shape::Int { .. } | Shape::IntOrText | Shape::Scalar | Shape::Quantity | Shape::Like { .. }, _) => {
                self.mistyped(value, shape)
            }
        }
    }

    fn object(&mut self, object: &Map<String, Value>, shape: &Shape) -> Value {
        let mut clean = Map::new();
        for (key, value) in object {
            let Some(field) = shape.field(key) else {
                self.unknown(key, shape);
                continue;
            };
            if value.is_null() {
                continue;
            }
            self.path.push(key.as_str());
            match field.support {
                Support::Yes => {
                    if let Some(value) = self.value(value, field.shape) {
                        clean.insert(key.clone(), value);
                    }
                }
                Support::Ignored(why) => {
                    self.ignored(field, why);
                    clean.insert(key.clone(), value.clone());
                }
                Support::Refused => {
                    // An empty value requests nothing.
                    if !says_nothing(value) {
                        let (word, help) = match field.instead {
                            Some(instead) => ("", instead.to_owned()),
                            None => {
                                (" yet", format!("it would {}; remove it to run the workflow here", lower(field.about)))
                            }
                        };
                        self.wrong(code::UNSUPPORTED, || format!("`{key}` is not supported{word}"), Some(help));
                        clean.insert(key.clone(), value.clone());
                    }
                }
            }
            self.path.pop();
        }
        Value::Object(clean)
    }

    fn map(&mut self, object: &Map<String, Value>, inner: &Shape) -> Option<Value> {
        let mut clean = Map::new();
        for (key, value) in object {
            if value.is_null() && !matches!(inner, Shape::Any) {
                continue;
            }
            self.path.push(key.as_str());
            if let Some(value) = self.value(value, inner) {
                clean.insert(key.clone(), value);
            }
            self.path.pop();
        }
        Some(Value::Object(clean))
    }

    fn list(&mut self, items: &[Value], inner: &Shape) -> Option<Value> {
        let mut clean = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            self.path.push(index);
            clean.push(self.value(item, inner));
            self.path.pop();
        }
        clean.into_iter().collect::<Option<Vec<_>>>().map(Value::Array)
    }

    fn word(&mut self, text: &str, words: &[&'static str]) -> Option<Value> {
        if words.contains(&text) {
            return Some(Value::String(text.to_owned()));
        }
        let help = nearest(text, words.iter().copied()).map(|word| format!("did you mean `{word}`?"));
        // The empty word is the default, which nobody has to write.
        let named = || words.iter().copied().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
        self.wrong(code::OUT_OF_RANGE, || format!("`{}` is not one of: {}", short(text), named()), help);
        self.broken()
    }

    fn number(&mut self, value: &Value, number: Option<i64>, least: i64, most: i64) -> Option<Value> {
        if number.is_some_and(|number| (least..=most).contains(&number)) {
            return Some(value.clone());
        }
        let bounds = match (least, most) {
            (_, i64::MAX) => format!("at least {least}"),
            _ => format!("between {least} and {most}"),
        };
        self.wrong(code::OUT_OF_RANGE, || format!("{value} is out of range, it must be {bounds}"), None);
        self.broken()
    }

    fn like(&mut self, value: &Value, verdict: Result<(), String>) -> Option<Value> {
        match verdict {
            Ok(()) => Some(value.clone()),
            Err(why) => {
                self.wrong(code::OUT_OF_RANGE, || why, None);
                self.broken()
            }
        }
    }

    fn mistyped(&mut self, value: &Value, shape: &Shape) -> Option<Value> {
        let quote = matches!(shape, Shape::Text | Shape::Word(_)) && (value.is_number() || value.is_boolean());
        let help = if matches!(shape, Shape::List(_)) && value.is_object() {
            Some("start each entry with a dash".to_owned())
        } else if matches!(shape, Shape::Int { .. } | Shape::Bool) && value.is_string() {
            Some("write it without quotes".to_owned())
        } else {
            None
        };
        let message = || format!("expected {}, found {}", shape.noun(), found(value));
        if quote {
            self.push(|path| Problem::error(code::WRONG_TYPE, message()).path(path).help_quoting(&value.to_string()));
        } else {
            self.wrong(code::WRONG_TYPE, message, help);
        }
        self.broken()
    }

    fn broken(&mut self) -> Option<Value> {
        if self.checked.broken.len() < MAX_PROBLEMS {
            self.checked.broken.push(self.path.clone());
        }
        None
    }

    fn unknown(&mut self, key: &str, shape: &Shape) {
        let near = nearest(key, shape.fields().map(|field| field.name));
        let help = match near {
            Some(name) => Some(format!("did you mean `{name}`?")),
            None => known(shape),
        };
        self.path.push(key);
        self.wrong(code::UNKNOWN_FIELD, || format!("unknown field `{}`", short(key)), help);
        self.path.pop();
    }

    fn ignored(&mut self, field: &'static Field, why: &'static str) {
        if self.warned.insert(field.name) {
            let message = format!("`{}` is accepted but has no effect: {why}", field.name);
            self.checked.warnings.push(Problem::warning(code::IGNORED, message).path(self.path.clone()));
        }
    }

    fn wrong(&mut self, code: &'static str, message: impl FnOnce() -> String, help: Option<String>) {
        self.push(|path| {
            let problem = Problem::error(code, message()).path(path);
            Problem { help, ..problem }
        });
    }

    fn push(&mut self, problem: impl FnOnce(Path) -> Problem) {
        if self.checked.problems.len() < MAX_PROBLEMS {
            self.checked.problems.push(problem(self.path.clone()));
        }
    }
}

/// Lists the known fields, if the list is short enough to print.
fn known(shape: &Shape) -> Option<String> {
    let names: Vec<String> = shape.fields().map(|field| format!("`{}`", field.name)).collect();
    (1..=12).contains(&names.len()).then(|| format!("known here: {}", names.join(", ")))
}

fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn found(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("the text `{}`", short(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

/// Truncates a text for a message.
pub(crate) fn short(text: &str) -> String {
    const SHOWN: usize = 60;
    let line: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() { format!("{line}…") } else { line }
}

fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn is_quantity(text: &str) -> bool {
    if text.contains("{{") {
        return true;
    }
    // Nobody asks for less than nothing.
    let number = text.strip_prefix('+').unwrap_or(text);
    let digits = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (amount, unit) = number.split_at(digits);
    let suffix = matches!(
        unit,
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei"
    );
    let exponent = unit.strip_prefix(['e', 'E']).is_some_and(|power| power.parse::<i8>().is_ok());
    amount.parse::<f64>().is_ok() && (suffix || exponent)
}
