//! What an increment added, as data for the trace. Bounded: large values and long lists are cut and say so.

use octoflow_manifest::Path;
use octoflow_model::plugin::increment::{Addition, Increment, Movement};
use serde_json::{Map, Value};

use super::{Judge, MemberRule, Place, TooLarge, command, matching};

/// Limit of the entries of each list.
const MAX_ENTRIES: usize = 256;
/// Limits of one value and of all values together, as JSON text.
const MAX_VALUE: usize = 4 * 1024;
const MAX_TOTAL: usize = 64 * 1024;

/// Lists what `new` has more than `old`, which it extends.
pub(super) fn record(judge: &Judge, old: &Value, new: &Value) -> Result<Increment, TooLarge> {
    let mut recorder = Recorder { judge, path: Path::root(), found: Increment::default(), bytes: 0 };
    recorder.values(old, new, Place::ROOT)?;
    Ok(recorder.found)
}

struct Recorder<'a> {
    judge: &'a Judge,
    /// Path of the value at hand in the new document.
    path: Path,
    found: Increment,
    bytes: usize,
}

impl Recorder<'_> {
    fn values(&mut self, old: &Value, new: &Value, place: Place) -> Result<(), TooLarge> {
        self.judge.spend(1)?;
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => self.objects(old, new, place)?,
            (Value::Array(old), Value::Array(new)) => self.arrays(old, new, place)?,
            (Value::Null, Value::Null) => {}
            (Value::Null, new) => self.add(new, false),
            // Scalars are equal.
            _ => {}
        }
        Ok(())
    }

    fn objects(&mut self, old: &Map<String, Value>, new: &Map<String, Value>, place: Place) -> Result<(), TooLarge> {
        for (key, value) in old {
            let found = new.get(key);
            self.path.push(key.as_str());
            match (Judge::rule(key, value, found, place), found) {
                (MemberRule::Exempt | MemberRule::Scheduler, found) => {
                    let found = found.unwrap_or(&Value::Null);
                    if found != value {
                        self.add(found, false);
                    }
                }
                (MemberRule::Extend, Some(found)) => self.values(value, found, place.member(key))?,
                (MemberRule::Command, Some(found)) => self.command(value, found),
                (MemberRule::Extend | MemberRule::Command, None) => {}
            }
            self.path.pop();
        }
        for (key, value) in new.iter().filter(|(key, _)| !old.contains_key(*key)) {
            self.path.push(key.as_str());
            self.add(value, false);
            self.path.pop();
        }
        Ok(())
    }

    fn arrays(&mut self, old: &[Value], new: &[Value], place: Place) -> Result<(), TooLarge> {
        let matching = matching::find(self.judge, old, new, place)?;
        let mut inserted = 0;
        for (at, value) in new.iter().enumerate() {
            self.path.push(at);
            match matching.old_of[at] {
                None => {
                    self.add(value, true);
                    inserted += 1;
                }
                Some(from) => {
                    if from != at - inserted {
                        self.moved(from);
                    }
                    self.values(&old[from], value, place.element())?;
                }
            }
            self.path.pop();
        }
        Ok(())
    }

    fn command(&mut self, old: &Value, new: &Value) {
        let (Some(old), Some(new)) = (command::texts(old), command::texts(new)) else { return };
        let in_front = new.len().saturating_sub(old.len());
        for (at, text) in new.iter().take(in_front).enumerate() {
            self.path.push(at);
            self.add(&Value::from(*text), true);
            self.path.pop();
        }
        let (Some(old), Some((new, head))) = (old.last(), new.split_last()) else { return };
        if let Some(front) = command::text_before(old, new).filter(|front| !front.is_empty()) {
            self.path.push(head.len());
            self.add(&Value::from(front), false);
            self.path.pop();
        }
    }

    fn add(&mut self, value: &Value, inserted: bool) {
        if self.found.added.len() >= MAX_ENTRIES {
            self.found.omitted = self.found.omitted.saturating_add(1);
            return;
        }
        let path = self.path.to_string();
        let length = value.to_string().len();
        let cut = length > MAX_VALUE || self.bytes + length > MAX_TOTAL;
        let value = if cut { Value::from(format!("({length} bytes of JSON)")) } else { value.clone() };
        self.bytes += if cut { 0 } else { length };
        self.found.added.push(Addition { path, value, inserted, cut });
    }

    fn moved(&mut self, from: usize) {
        if self.found.moved.len() >= MAX_ENTRIES {
            self.found.omitted = self.found.omitted.saturating_add(1);
            return;
        }
        self.found.moved.push(Movement { path: self.path.to_string(), from });
    }
}
