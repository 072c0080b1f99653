//! How facts lie in the journal: one line of JSON each. Turns facts into bytes, and bytes into facts and the state they
//! describe. What cannot be read is refused with a reason, and never overlooked: a run that goes on without a fact it did not
//! understand would do something else than was decided.

use std::{
    io::Write,
    panic::{AssertUnwindSafe, catch_unwind},
};

use octoflow_engine::{Engine, Input, Run, engine};
use octoflow_model::{Fact, RunId};
use serde_json::Value;

use crate::{event_loop::driver::ANY_TIME, supervisor::panic_message};

/// What to do about a run that a newer version has written.
const NEWER: &str =
    "a newer version of octoflow has written it; start that version, or a newer one, to go on with this run";

/// Facts of one run as bytes for the journal, with their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub first: u64,
    pub count: u32,
    pub lines: Vec<u8>,
}

impl Record {
    pub(crate) fn starting_at(first: u64) -> Self {
        Self { first, ..Self::default() }
    }

    pub(crate) fn push(&mut self, fact: &Fact) {
        serde_json::to_writer(&mut self.lines, fact).expect("a fact has only keys that are text");
        self.lines.write_all(b"\n").expect("writing to memory does not fail");
        self.count += 1;
    }
}

/// The facts of some lines, in order. They are numbered from `first`.
pub(crate) fn read(first: u64, lines: &[u8]) -> Result<Vec<Fact>, String> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let numbered = (first..).zip(lines);
    numbered
        .map(|(number, line)| serde_json::from_slice(line).map_err(|error| refusal(number, line, &error.to_string())))
        .collect()
}

/// The state that a journal describes.
pub(crate) fn fold(run: RunId, facts: Vec<Fact>) -> Result<Run, String> {
    guarded(|| engine::fold(run, facts).map_err(|error| error.to_string()))
}

/// Keeps the locks that an unfinished run holds which is not restored here.
pub(crate) fn reserve_locks(engine: &mut Engine, run: RunId, facts: Vec<Fact>) -> Result<(), String> {
    if facts.iter().any(Fact::takes_lock) {
        let run = fold(run, facts)?;
        engine.handle(Input::ReserveLocks(Box::new(run)), ANY_TIME);
    }
    Ok(())
}

/// A journal whose facts contradict each other is refused as one that cannot be read: other runs have nothing to do with it.
/// The fold builds a value of its own, so a panic in it has harmed nothing else.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(format!("its facts contradict each other: {}", panic_message(&*panic))))
}

/// Why a line is no fact: which one, what is wrong with it, and what to do when it is only too new.
fn refusal(number: u64, line: &[u8], error: &str) -> String {
    let value: Value = serde_json::from_slice(line).unwrap_or_default();
    let key = value.as_object().and_then(|fields| fields.keys().next()).map(String::as_str);
    let name = key.or(value.as_str()).unwrap_or_default();
    let unknown = ["unknown variant", "unknown field"]
        .into_iter()
        .find_map(|what| Some((what, error.strip_prefix(what)?.split('`').nth(1)?)));
    match unknown {
        Some(("unknown variant", unknown)) if unknown == name => {
            format!("fact {number} is `{name}`, which this version does not know: {NEWER}")
        }
        Some(("unknown field", field)) => {
            format!("fact {number}, `{name}`, has the field `{field}`, which this version does not know: {NEWER}")
        }
        Some((_, value)) => {
            format!("fact {number}, `{name}`, says `{value}`, which this version does not know: {NEWER}")
        }
        None => format!("fact {number} is damaged: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_version_wrote_is_refused_by_its_name_and_number() {
        for (line, told) in [
            (r#"{"Tomorrow":{"at":1}}"#, "fact 8 is `Tomorrow`, which"),
            (r#""Tomorrow""#, "fact 8 is `Tomorrow`, which"),
            (r#"{"TaskSet":{"Tomorrow":{"at":1}}}"#, "fact 8, `TaskSet`, says `Tomorrow`, which"),
            (r#"{"Suspended":{"at":1,"by":"me"}}"#, "fact 8, `Suspended`, has the field `by`, which"),
            (r#"{"ShuttingDown":{"how":"Gently","at":1}}"#, "fact 8, `ShuttingDown`, says `Gently`, which"),
        ] {
            let lines = format!("{}\n{line}\n", r#"{"Resumed":{"at":1}}"#);
            let refused = read(7, lines.as_bytes()).unwrap_err();
            assert!(refused.starts_with(told) && refused.contains(NEWER), "{line}: {refused}");
        }
    }

    #[test]
    fn a_damaged_line_is_not_called_newer() {
        for line in ["{\"Resumed\":{", "{\"Resumed\":{}}", "7", "\u{0}", r#"{"Resumed":{"at":"unknown field `x`"}}"#] {
            let refused = read(0, line.as_bytes()).unwrap_err();
            assert!(refused.starts_with("fact 0 is damaged: "), "{line}: {refused}");
        }
    }

    #[test]
    fn facts_that_contradict_each_other_are_refused() {
        let submitted = r#"{"Submitted":{"name":"w","namespace":"default","uid":"u","at":1,"manifest":{"kind":"Workflow",
            "spec":{"entrypoint":"main","templates":[{"name":"main","suspend":{}}]}}}}"#;
        let lines = format!("{}\n{}\n", submitted.replace('\n', ""), r#"{"Started":{"node":9,"at":1}}"#);
        let refused = fold(RunId(1), read(0, lines.as_bytes()).unwrap()).err().unwrap();
        assert!(refused.starts_with("its facts contradict each other"), "{refused}");
    }

    #[test]
    fn a_kind_of_run_that_nobody_knows_is_refused_by_its_name() {
        let line = r#"{"Submitted":{"name":"j","namespace":"default","uid":"u","at":1,"manifest":{"kind":"JobStream","spec":{}}}}"#;
        let refused = fold(RunId(1), read(0, line.as_bytes()).unwrap()).err().unwrap();
        assert!(refused.contains("`JobStream`") && refused.contains("newer version"), "{refused}");
    }
}
