//! Which plugin last set a value: follows its path back through the increments of a chain, past elements that were
//! inserted and moved.

use octoflow_manifest::{Path, Segment};
use octoflow_model::plugin::increment::Increment;
use serde_json::Value;

/// Returns the key of the plugin that last set the value at this path, of the earlier increments of a chain in order.
/// The path is that of the document after the last of them, as a `Conflict` has it. `None` if no plugin did: then it is
/// as the job or its translator had it. Also `None` if an increment was too large to be recorded whole.
pub fn blame<'a>(path: &str, earlier: &[(&'a str, &Increment)]) -> Option<&'a str> {
    let mut path: Path = path.parse().ok()?;
    for (key, increment) in earlier.iter().rev() {
        if sets(increment, &path) {
            return Some(key);
        }
        if increment.omitted > 0 {
            return None;
        }
        path = before(increment, &path)?;
    }
    None
}

/// Reports whether the value at a path of the new document is part of what was added.
fn sets(increment: &Increment, path: &Path) -> bool {
    increment.added.iter().any(|addition| {
        let Ok(added) = addition.path.parse::<Path>() else { return false };
        path.starts_with(&added) && (addition.cut || has(&addition.value, &path.segments()[added.segments().len()..]))
    })
}

fn has(value: &Value, rest: &[Segment]) -> bool {
    let Some((first, rest)) = rest.split_first() else { return true };
    let below = match first {
        Segment::Key(key) => value.get(key),
        Segment::Index(at) => value.get(at),
    };
    below.is_some_and(|below| has(below, rest))
}

/// Returns the path that the value had before the increment; `None` if it was not there.
fn before(increment: &Increment, path: &Path) -> Option<Path> {
    let inserted = |array: &Path, at: usize| {
        let path = array.join(at).to_string();
        increment.added.iter().any(|addition| addition.inserted && addition.path == path)
    };
    let (mut new, mut old) = (Path::root(), Path::root());
    for segment in path.segments() {
        match segment {
            Segment::Key(_) => old.push(segment.clone()),
            Segment::Index(at) => {
                if inserted(&new, *at) {
                    return None;
                }
                let here = new.join(*at).to_string();
                let moved = increment.moved.iter().find(|moved| moved.path == here);
                let behind = || at - (0..*at).filter(|earlier| inserted(&new, *earlier)).count();
                old.push(moved.map_or_else(behind, |moved| moved.from));
            }
        }
        new.push(segment.clone());
    }
    Some(old)
}
