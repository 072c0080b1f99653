//! Test results for people and for programs. Formatting only.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::colour::{Colour, Paint};
use crate::{
    commands::TestResult,
    logic::{Case, Mismatch},
};

/// Returns `file: name`, as cases are listed and filtered.
pub(crate) fn title(case: &Case<'_>) -> String {
    format!("{}: {}", case.file(), case.name)
}

/// Formats a case: one line if it passed, else every difference.
pub(crate) fn pretty(tried: &TestResult<'_>, paint: Paint) -> String {
    let title = title(&tried.case);
    if let Some(why) = &tried.verdict.skipped {
        return format!("{} {title}: {why}\n", paint.paint("skip", Colour::Yellow));
    }
    if tried.verdict.passed() {
        return format!("{}   {title}{}\n", paint.paint("ok", Colour::Green), paint.paint(&ends(tried), Colour::Dim));
    }
    let mut text = format!("{} {title}{}\n", paint.paint("FAIL", Colour::Red), paint.paint(&ends(tried), Colour::Dim));
    for miss in &tried.verdict.misses {
        let _ = writeln!(text, "     {} {}", place(miss), paint.paint(&miss.what, Colour::Bold));
        let _ = writeln!(text, "       expected  {}", indented(&miss.expected));
        let _ = writeln!(text, "       actual    {}", indented(&miss.actual));
    }
    text
}

fn ends(tried: &TestResult<'_>) -> String {
    let all = tried
        .verdict
        .ends
        .iter()
        .map(|(_, phase, took)| if took.is_empty() { phase.clone() } else { format!("{phase} after {took}") });
    let all: Vec<String> = all.collect();
    if all.is_empty() || all.len() > 3 { String::new() } else { format!(" ({})", all.join(", ")) }
}

fn place(miss: &Mismatch) -> String {
    format!("{}:{}:{}", miss.file, miss.place.line, miss.place.column)
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n                 ")
}

pub(crate) fn summary(tried: &[TestResult<'_>], paint: Paint) -> String {
    let failed = tried.iter().filter(|one| !one.verdict.passed()).count();
    let skipped = tried.iter().filter(|one| one.verdict.skipped.is_some()).count();
    let passed = tried.len() - failed - skipped;
    let took: std::time::Duration = tried.iter().map(|one| one.took).sum();
    let mut text = format!("{passed} passed");
    if failed > 0 {
        let _ = write!(text, ", {}", paint.paint(&format!("{failed} failed"), Colour::Red));
    }
    if skipped > 0 {
        let _ = write!(text, ", {skipped} skipped");
    }
    format!("{text} in {} ms", took.as_millis())
}

pub(crate) fn json(tried: &[TestResult<'_>]) -> Value {
    let cases = tried.iter().map(|one| {
        let misses = one.verdict.misses.iter().map(|miss| {
            json!({
                "file": miss.file, "line": miss.place.line, "column": miss.place.column,
                "what": miss.what, "expected": miss.expected, "actual": miss.actual,
            })
        });
        let runs =
            one.verdict.ends.iter().map(|(name, phase, took)| json!({"name": name, "phase": phase, "duration": took}));
        let mut value = json!({
            "file": one.case.file(),
            "name": one.case.name,
            "outcome": outcome(one),
            "milliseconds": one.took.as_millis() as u64,
            "misses": misses.collect::<Vec<_>>(),
            "runs": runs.collect::<Vec<_>>(),
        });
        let covers = one.case.covers();
        if !covers.is_empty() {
            value["covers"] = json!(covers);
        }
        if let Some(why) = &one.verdict.skipped {
            value["skipped"] = json!(why);
        }
        value
    });
    cases.collect()
}

fn outcome(one: &TestResult<'_>) -> &'static str {
    match (&one.verdict.skipped, one.verdict.passed()) {
        (Some(_), _) => "skipped",
        (None, true) => "passed",
        (None, false) => "failed",
    }
}

/// Formats JUnit XML: a suite for each file.
pub(crate) fn junit(tried: &[TestResult<'_>]) -> String {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(text, "<testsuites name=\"octoflow\"{}>", counts(&tried.iter().collect::<Vec<_>>()));
    let mut files: Vec<&str> = tried.iter().map(|one| one.case.file()).collect();
    files.dedup();
    for file in files {
        let own: Vec<&TestResult<'_>> = tried.iter().filter(|one| one.case.file() == file).collect();
        let _ = writeln!(text, "  <testsuite name=\"{}\"{}>", escaped(file), counts(&own));
        for one in own {
            let name = escaped(&one.case.name);
            let head = format!(
                "    <testcase classname=\"{}\" name=\"{name}\" time=\"{:.3}\"",
                escaped(file),
                one.took.as_secs_f64()
            );
            if let Some(why) = &one.verdict.skipped {
                let _ = writeln!(text, "{head}><skipped message=\"{}\"/></testcase>", escaped(why));
            } else if one.verdict.passed() {
                let _ = writeln!(text, "{head}/>");
            } else {
                let _ = writeln!(text, "{head}>");
                for miss in &one.verdict.misses {
                    let message =
                        escaped(&format!("{}: expected {}, actual {}", miss.what, miss.expected, miss.actual));
                    let _ = writeln!(text, "      <failure message=\"{message}\">{}</failure>", escaped(&place(miss)));
                }
                let _ = writeln!(text, "    </testcase>");
            }
        }
        let _ = writeln!(text, "  </testsuite>");
    }
    text.push_str("</testsuites>\n");
    text
}

fn counts(tried: &[&TestResult<'_>]) -> String {
    let failed = tried.iter().filter(|one| !one.verdict.passed()).count();
    let skipped = tried.iter().filter(|one| one.verdict.skipped.is_some()).count();
    let took: f64 = tried.iter().map(|one| one.took.as_secs_f64()).sum();
    format!(" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{took:.3}\"", tried.len())
}

/// Drops most control characters, which XML does not allow even escaped.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push_str("&#10;"),
            '\r' => safe.push_str("&#13;"),
            '\t' => safe.push_str("&#9;"),
            control if control.is_control() || matches!(control, '\u{FFFE}' | '\u{FFFF}') => safe.push('\u{FFFD}'),
            other => safe.push(other),
        }
    }
    safe
}
