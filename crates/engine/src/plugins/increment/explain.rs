//! Where a new document breaks the rule: the first place, as deep as it can be told, in words without values.

use octoflow_manifest::Path;
use serde_json::{Map, Value};

use super::{Conflict, Judge, MemberRule, Mode, Place, TooLarge, command, matching};

/// Finds the conflict of two documents of which one does not extend the other.
pub(super) fn explain(judge: &Judge, old: &Value, new: &Value) -> Result<Conflict, TooLarge> {
    let mut finder = Finder { judge, path: Path::root() };
    let what = finder.values(old, new, Place::ROOT)?;
    let path = finder.path.to_string();
    let message = if path.is_empty() { format!("the document {what}") } else { format!("{path} {what}") };
    Ok(Conflict { path, message })
}

/// Walks down to the conflict; afterwards `path` is where it is.
struct Finder<'a> {
    judge: &'a Judge,
    path: Path,
}

impl Finder<'_> {
    fn values(&mut self, old: &Value, new: &Value, place: Place) -> Result<String, TooLarge> {
        match (old, new) {
            (Value::Null, new) => self.addition(new, place),
            (Value::Object(old), Value::Object(new)) => self.objects(old, new, place),
            (Value::Array(old), Value::Array(new)) => self.arrays(old, new, place),
            (old, new) if kind(old) == kind(new) => Ok("was changed".to_owned()),
            (old, new) => Ok(format!("was {} and is now {}", kind(old), kind(new))),
        }
    }

    fn objects(
        &mut self,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        place: Place,
    ) -> Result<String, TooLarge> {
        for (key, value) in old {
            let found = new.get(key);
            if self.judge.member_extends(key, value, found, place)? {
                continue;
            }
            self.path.push(key.as_str());
            let Some(found) = found else { return Ok("was removed".to_owned()) };
            return match Judge::rule(key, value, Some(found), place) {
                MemberRule::Extend | MemberRule::Exempt => self.values(value, found, place.member(key)),
                MemberRule::Scheduler => Ok(self.scheduler().to_owned()),
                MemberRule::Command => Ok(self.command(value, found)),
            };
        }
        for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
            if !self.judge.may_add_member(key, value, place)? {
                return self.member_addition(key, value, place);
            }
        }
        Ok("was changed".to_owned())
    }

    fn arrays(&mut self, old: &[Value], new: &[Value], place: Place) -> Result<String, TooLarge> {
        let matching = matching::find(self.judge, old, new, place)?;
        if let Some(at) = matching.forbidden {
            self.path.push(at);
            let same = old.iter().find(|old| old.is_object() && matching::name(old) == matching::name(&new[at]));
            return match same {
                Some(old) if !self.judge.extends(old, &new[at], place.element())? => {
                    self.values(old, &new[at], place.element())
                }
                Some(_) | None => self.addition(&new[at], place.element()),
            };
        }
        let Some(at) = matching.new_of.iter().position(Option::is_none) else { return Ok("was changed".to_owned()) };
        self.path.push(at);
        let value = &old[at];
        let same_name = |new: &&Value| matching::name(value).is_some() && matching::name(new) == matching::name(value);
        let same_index = new.get(at).filter(|_| matching.old_of.get(at) == Some(&None));
        match new.iter().find(same_name).or(same_index) {
            Some(found) if !self.judge.extends(value, found, place.element())? => {
                self.values(value, found, place.element())
            }
            Some(_) | None => {
                Ok("was removed: every old element needs a new one of its own that has all of it".to_owned())
            }
        }
    }

    /// Says which part of an addition may not be added.
    fn addition(&mut self, value: &Value, place: Place) -> Result<String, TooLarge> {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            Value::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    if !self.judge.may_add(value, place.element())? {
                        self.path.push(at);
                        return self.addition(value, place.element());
                    }
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    if !self.judge.may_add_member(key, value, place)? {
                        return self.member_addition(key, value, place);
                    }
                }
            }
        }
        Ok("may not be added".to_owned())
    }

    fn member_addition(&mut self, key: &str, value: &Value, place: Place) -> Result<String, TooLarge> {
        self.path.push(key);
        if key == super::SCHEDULER_NAME && !place.own_keys {
            return Ok(self.scheduler().to_owned());
        }
        self.addition(value, place.member(key))
    }

    fn scheduler(&self) -> &'static str {
        match self.judge.mode {
            Mode::Decorate => "was set or changed: a decorator may not name the scheduler",
            Mode::Bind => "was changed: a binder may name the scheduler only where none is named",
        }
    }

    fn command(&mut self, old: &Value, new: &Value) -> String {
        const RULE: &str = "what was there must stand at the end, whole; new commands may only be put in front of it \
                            (text ends with `;`, `&&` or a new line)";
        let (Some(old), Some(new)) = (command::texts(old), command::texts(new)) else { return RULE.to_owned() };
        if let (Some((old_script, old_head)), Some((new_script, new_head))) = (old.split_last(), new.split_last())
            && old_head == new_head
            && command::text_before(old_script, new_script).is_none()
        {
            self.path.push(old_head.len());
        }
        format!("was changed: {RULE}")
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
