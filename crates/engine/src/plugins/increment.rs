//! The increment rule: a decorator or binder may only add to a document. Decides whether a new document holds all of the
//! old one, says what was added, and names the place where it does not. Bounded work, whatever the documents are.

mod blame;
mod command;
mod explain;
mod matching;
mod record;

use std::cell::Cell;

use octoflow_model::plugin::increment::Increment;
use serde_json::{Map, Number, Value};

pub use blame::blame;

/// Limit of the comparisons of two values, so that hostile documents cost milliseconds.
const MAX_STEPS: u64 = 4_000_000;
/// Limit of the nesting, which is that of the JSON reader.
const MAX_DEPTH: usize = 128;

/// A member that may be changed or dropped.
const NODE_SELECTOR: &str = "nodeSelector";
/// A member that decorators may not touch.
const SCHEDULER_NAME: &str = "schedulerName";
/// A member whose elements are only prepended.
const COMMAND: &str = "command";
/// Members with keys of the user's own, among which no name has a meaning.
const OWN_KEYS: [&str; 4] = ["annotations", "labels", "matchLabels", NODE_SELECTOR];

/// Who changes the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A decorator, which may not set a scheduler.
    Decorate,
    /// A binder, which may add one.
    Bind,
}

/// Why a new document is no increment of the old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Path of the value, in the old document if it has it there. Empty if it is the whole document.
    pub path: String,
    /// The path and what is wrong with it. It holds no value of either document.
    pub message: String,
}

/// Checks that `new` has all of `old`, and returns what it has more.
pub fn check(old: &Value, new: &Value, mode: Mode) -> Result<Increment, Conflict> {
    let judge = Judge { mode, left: Cell::new(MAX_STEPS) };
    let verdict = judge.extends(old, new, Place::ROOT).and_then(|extends| {
        if extends { record::record(&judge, old, new).map(Ok) } else { explain::explain(&judge, old, new).map(Err) }
    });
    verdict.unwrap_or_else(|TooLarge| {
        let message = format!(
            "the documents are too large to compare: more than {MAX_STEPS} comparisons or {MAX_DEPTH} levels would be \
             needed"
        );
        Err(Conflict { path: String::new(), message })
    })
}

/// The work would be more than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooLarge;

/// Where in a document two values are, as far as the rules depend on it.
#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// True below a member with keys of the user's own.
    own_keys: bool,
}

impl Place {
    const ROOT: Self = Self { depth: 0, own_keys: false };

    fn member(self, key: &str) -> Self {
        Self { depth: self.depth + 1, own_keys: self.own_keys || OWN_KEYS.contains(&key) }
    }

    fn element(self) -> Self {
        Self { depth: self.depth + 1, own_keys: self.own_keys }
    }
}

/// What the rules say of a member of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MemberRule {
    /// It must hold the old value and may hold more.
    Extend,
    /// Anything goes.
    Exempt,
    Scheduler,
    Command,
}

/// One comparison, with the work that it may still do.
struct Judge {
    mode: Mode,
    left: Cell<u64>,
}

impl Judge {
    fn spend(&self, steps: usize) -> Result<(), TooLarge> {
        let left = self.left.get().checked_sub(u64::try_from(steps).unwrap_or(u64::MAX)).ok_or(TooLarge)?;
        self.left.set(left);
        Ok(())
    }

    fn enter(&self, place: Place) -> Result<(), TooLarge> {
        if place.depth > MAX_DEPTH { Err(TooLarge) } else { self.spend(1) }
    }

    /// Reports whether `new` has all of `old`.
    fn extends(&self, old: &Value, new: &Value, place: Place) -> Result<bool, TooLarge> {
        self.enter(place)?;
        match (old, new) {
            (Value::Null, new) => self.may_add(new, place),
            (Value::Bool(old), Value::Bool(new)) => Ok(old == new),
            (Value::Number(old), Value::Number(new)) => Ok(same_number(old, new)),
            (Value::String(old), Value::String(new)) => self.same_text(old, new),
            (Value::Object(old), Value::Object(new)) => self.object_extends(old, new, place),
            (Value::Array(old), Value::Array(new)) => Ok(matching::find(self, old, new, place)?.is_complete()),
            (
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) | Value::Array(_),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) | Value::Array(_),
            ) => Ok(false),
        }
    }

    fn object_extends(
        &self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        place: Place,
    ) -> Result<bool, TooLarge> {
        for (key, old) in old {
            if !self.member_extends(key, old, new.get(key), place)? {
                return Ok(false);
            }
        }
        for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
            if !self.may_add_member(key, value, place)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reports whether a member of an object holds its old value; `new` is missing if the member was dropped.
    fn member_extends(&self, key: &str, old: &Value, new: Option<&Value>, place: Place) -> Result<bool, TooLarge> {
        let below = place.member(key);
        Ok(match (Self::rule(key, old, new, place), new) {
            (MemberRule::Exempt, None) => true,
            (MemberRule::Extend | MemberRule::Scheduler | MemberRule::Command, None) => false,
            (MemberRule::Exempt, Some(new)) => self.spend(new_size(new)).map(|()| true)?,
            (MemberRule::Extend, Some(new)) => self.extends(old, new, below)?,
            (MemberRule::Scheduler, Some(new)) => match self.mode {
                Mode::Decorate => is_unset(old) && is_unset(new) || old == new,
                Mode::Bind => is_unset(old) || old == new,
            },
            (MemberRule::Command, Some(new)) => {
                command::texts(old).zip(command::texts(new)).map_or(Ok(false), |(old, new)| {
                    self.spend(old.len() + new.len())?;
                    Ok(command::prepended(&old, &new))
                })?
            }
        })
    }

    fn rule(key: &str, old: &Value, new: Option<&Value>, place: Place) -> MemberRule {
        let is_command = || command::texts(old).is_some() && new.is_none_or(|new| command::texts(new).is_some());
        match key {
            _ if place.own_keys => MemberRule::Extend,
            NODE_SELECTOR => MemberRule::Exempt,
            SCHEDULER_NAME => MemberRule::Scheduler,
            COMMAND if is_command() => MemberRule::Command,
            _ => MemberRule::Extend,
        }
    }

    /// Reports whether a value may be added: a decorator's may not name a scheduler.
    fn may_add(&self, value: &Value, place: Place) -> Result<bool, TooLarge> {
        self.enter(place)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(true),
            Value::Array(values) => {
                for value in values {
                    if !self.may_add(value, place.element())? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Value::Object(members) => {
                for (key, value) in members {
                    if !self.may_add_member(key, value, place)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }

    fn may_add_member(&self, key: &str, value: &Value, place: Place) -> Result<bool, TooLarge> {
        let names_scheduler = key == SCHEDULER_NAME && !place.own_keys && !is_unset(value);
        match self.mode {
            Mode::Decorate if names_scheduler => Ok(false),
            Mode::Decorate | Mode::Bind => self.may_add(value, place.member(key)),
        }
    }

    fn same_text(&self, old: &str, new: &str) -> Result<bool, TooLarge> {
        if old.len() != new.len() {
            return Ok(false);
        }
        self.spend(old.len() / 64)?;
        Ok(old == new)
    }
}

/// Reports whether a value says nothing, as writers with typed fields write it.
fn is_unset(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// Estimates what a value that is taken as it is costs.
fn new_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        Value::Array(values) => values.len(),
        Value::Object(members) => members.len(),
    }
}

/// Compares numbers by value, however they are written: `1e3` is `1000`.
fn same_number(old: &Number, new: &Number) -> bool {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(old), whole(new)) {
        (Some(old), Some(new)) => old == new,
        (None, None) => old.as_f64() == new.as_f64(),
        (Some(whole), None) => is_whole(new, whole),
        (None, Some(whole)) => is_whole(old, whole),
    }
}

/// Reports whether a fraction is this whole number, exactly.
fn is_whole(fraction: &Number, whole: i128) -> bool {
    const EXACT: f64 = 1e19;
    let Some(fraction) = fraction.as_f64().filter(|value| value.fract() == 0.0 && value.abs() <= EXACT) else {
        return false;
    };
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and smaller than the type's largest number")]
    let exact = fraction as i128;
    exact == whole
}

#[cfg(test)]
mod tests;
