//! Problems of manifests in formats of other tools: annotations of GitHub Actions, and SARIF.

use std::fmt::Write as _;

use octoflow_manifest::{Problem, Problems, Severity};
use serde_json::{Value, json};

use crate::output::pages;

/// Formats each problem as a workflow command.
pub(crate) fn github(problems: &Problems) -> String {
    let mut lines = String::new();
    for problem in problems {
        let mut properties = Vec::new();
        if let Some(source) = &problem.source {
            properties.push(format!("file={}", property(source.name())));
        }
        if let Some(region) = Region::of(problem) {
            properties.push(format!("line={},col={},endColumn={}", region.line, region.column, region.line_end));
        }
        properties.push(format!("title={}", property(problem.code)));
        let _ =
            writeln!(lines, "::{} {}::{}", problem.severity.name(), properties.join(","), escaped(&with_help(problem)));
    }
    lines
}

/// Makes a SARIF 2.1.0 log with one rule for each code that occurs.
pub(crate) fn sarif(problems: &Problems) -> Value {
    let mut codes: Vec<&str> = problems.iter().map(|problem| problem.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let results: Vec<Value> = problems
        .iter()
        .map(|problem| {
            let mut result = json!({
                "ruleId": problem.code,
                "ruleIndex": codes.binary_search(&problem.code).expect("every code was collected"),
                "level": match problem.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                },
                "message": {"text": with_help(problem)},
            });
            if let Some(location) = location(problem) {
                result["locations"] = json!([location]);
            }
            result
        })
        .collect();
    json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "octoflow",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": codes.into_iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule(code: &str) -> Value {
    let mut rule = json!({"id": code});
    if let Some(page) = pages::page(code) {
        let title = page.lines().next().unwrap_or_default().trim_start_matches(['#', ' ']);
        let title = title.strip_prefix(code).map_or(title, |rest| rest.trim_start_matches([':', ' ']));
        rule["shortDescription"] = json!({"text": title});
        rule["help"] = json!({"text": page, "markdown": page});
    }
    rule
}

fn location(problem: &Problem) -> Option<Value> {
    let source = problem.source.as_ref()?;
    let mut physical = json!({"artifactLocation": {"uri": uri(source.name())}});
    if let Some(region) = Region::of(problem) {
        physical["region"] = json!({
            "startLine": region.line,
            "startColumn": region.column,
            "endLine": region.last_line,
            "endColumn": region.last_column,
        });
    }
    let mut location = json!({"physicalLocation": physical});
    if let Some(path) = problem.path.as_ref().filter(|path| !path.is_root()) {
        location["logicalLocations"] = json!([{"fullyQualifiedName": path.to_string()}]);
    }
    Some(location)
}

/// Position of a problem, in lines and columns from 1. Ends are exclusive.
struct Region {
    line: usize,
    column: usize,
    /// End on its first line.
    line_end: usize,
    last_line: usize,
    last_column: usize,
}

impl Region {
    fn of(problem: &Problem) -> Option<Self> {
        let (source, span) = problem.source.as_ref().zip(problem.span)?;
        let first = source.slice(span).split(['\n', '\r']).next().unwrap_or_default();
        let end = source.span(span.offset + span.length, 0);
        Some(Self {
            line: span.line,
            column: span.column,
            line_end: span.column + first.chars().count().max(1),
            last_line: end.line,
            last_column: end.column,
        })
    }
}

fn with_help(problem: &Problem) -> String {
    match &problem.help {
        Some(help) => format!("{}\nhelp: {help}", problem.message),
        None => problem.message.clone(),
    }
}

/// Escapes line breaks, which would let the rest of a message pass for another command.
fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

/// Makes a URI from a path: relative ones stay relative, so that a viewer finds them in its checkout.
fn uri(path: &str) -> String {
    let mut uri = String::from(if path.starts_with('/') { "file://" } else { "" });
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            other => {
                let _ = write!(uri, "%{other:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use octoflow_manifest::Source;

    use super::*;

    fn problem(name: &str, text: &str, mark: &str) -> Problem {
        let source = Arc::new(Source::new(name, text));
        let span = source.span(text.find(mark).unwrap(), mark.len());
        Problem::error("OF1003", "unknown field").at(&source, span)
    }

    #[test]
    fn annotations_cannot_be_broken_out_of() {
        let mut bad = problem("a,b:c.yaml", "ä: x\n", "x").help("100% sure");
        bad.message = "bad\n::error::fake\r".to_owned();
        assert_eq!(
            github(&bad.into()),
            "::error file=a%2Cb%3Ac.yaml,line=1,col=4,endColumn=5,title=OF1003::bad%0A::error::fake%0D%0Ahelp: 100%25 sure\n"
        );
        let nowhere = Problem::warning("OF1013", "odd");
        assert_eq!(github(&nowhere.into()), "::warning title=OF1013::odd\n");
    }

    #[test]
    fn a_log_has_a_rule_for_each_code_and_a_region_for_each_place() {
        let mut problems = Problems::default();
        problems.push(problem("my dir/a.yaml", "k: {a: 1,\n b: 2}\n", "{a: 1,\n b: 2}").path("k".parse().unwrap()));
        problems.push(Problem::warning("OF1001", "odd"));
        problems.push(problem("/a.yaml", "x", "x"));
        let log = sarif(&problems);
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        assert_eq!(rules.iter().map(|rule| &rule["id"]).collect::<Vec<_>>(), ["OF1001", "OF1003"]);
        assert_eq!(rules[1]["shortDescription"]["text"], "Unknown field");
        assert!(rules[1]["help"]["text"].as_str().unwrap().contains("## Fix"));
        assert_eq!(rules[1].get("helpUri"), None);
        let results = run["results"].as_array().unwrap();
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "my%20dir/a.yaml");
        assert_eq!(place["region"], json!({"startLine": 1, "startColumn": 4, "endLine": 2, "endColumn": 7}));
        assert_eq!(results[0]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "k");
        assert_eq!((&results[1]["level"], &results[1]["ruleIndex"]), (&json!("warning"), &json!(0)));
        assert_eq!(results[1].get("locations"), None);
        assert_eq!(results[2]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "file:///a.yaml");
    }
}
