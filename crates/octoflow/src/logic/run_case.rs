//! One case from its words to its verdict.

use anyhow::Result;
use octoflow_control::keyed;
use octoflow_engine::{Command, kinds};
use octoflow_model::Time;
use std::time::Duration;

use super::{
    drive::{Scenario, ScenarioResult, ScriptedAction, What, drive},
    expect::{differs, expect},
    notation::{Span, moment},
    stub::Stubs,
    subject::{Finding, Subject, subject},
    suite::Case,
    test_document::Located,
    verdict::Verdict,
};
use crate::cli::span;

/// What the virtual clock shows unless a case says otherwise: 2026-01-01T00:00:00Z.
const DAWN: Time = Time(1_767_225_600_000_000);

pub(crate) fn run_case(case: &Case<'_>) -> Result<Verdict> {
    let mut verdict = Verdict { skipped: case.get("skip").map(|located| located.text()), ..Verdict::default() };
    if verdict.skipped.is_some() {
        return Ok(verdict);
    }
    let subject = subject(case)?;
    let expectations = case.all("expect");
    for expected in &expectations {
        admission(expected, &subject, &mut verdict);
    }
    let rejection = expectations.iter().find_map(|expected| expected.get("rejected"));
    let meant = rejection.as_ref().is_some_and(|rejected| rejected.value.as_bool() != Some(false));
    if !subject.wrong.is_empty() {
        if !meant {
            let told: Vec<String> = subject.wrong.iter().map(|finding| finding.problem.to_string()).collect();
            verdict.fault(case, format!("the manifests are rejected\n{}", told.join("\n").trim_end()));
        }
        return Ok(verdict);
    }
    if let Some(rejected) = rejection.filter(|_| meant) {
        verdict.miss(&rejected, "rejected", "the manifests are rejected", "they are let in");
        return Ok(verdict);
    }
    let scenario = match scenario(case, subject, &expectations) {
        Ok(scenario) => scenario,
        Err((located, why)) => {
            verdict.miss(&located, "commands", "a command that can be given", why);
            return Ok(verdict);
        }
    };
    let answers: Vec<(Located<'_>, Option<Located<'_>>)> =
        scenario.actions.iter().map(|action| (action.located.clone(), action.located.get("refused"))).collect();
    let outcome = drive(scenario)?;
    for (located, text) in &outcome.faults {
        match located {
            Some(located) => verdict.miss(located, "stubs", "a value that can be put in", text.clone()),
            None => verdict.fault(case, text.clone()),
        }
    }
    refusals(&answers, &outcome, &mut verdict);
    for expected in &expectations {
        expect(expected, &outcome, &mut verdict);
    }
    verdict.misses.sort_by_key(|miss| miss.place.offset);
    verdict.ends = ends(&outcome);
    if !verdict.passed() {
        verdict.node_lines = node_lines(&outcome);
    }
    Ok(verdict)
}

fn ends(outcome: &ScenarioResult<'_>) -> Vec<(String, String, String)> {
    let all = outcome.names.iter().zip(&outcome.last).take(outcome.submitted);
    all.map(|(name, seen)| {
        let took = seen.began.and_then(|began| Some(Span(seen.ended?.since(began)).to_string()));
        (name.clone(), seen.phase().to_owned(), took.unwrap_or_default())
    })
    .collect()
}

fn node_lines(outcome: &ScenarioResult<'_>) -> Vec<String> {
    const SHOWN: usize = 200;
    let nodes = outcome.last.iter().flat_map(|seen| &seen.nodes).take(SHOWN);
    nodes
        .map(|node| {
            let word = |key: &str| node.value[key].as_str().unwrap_or_default();
            let from = Span(node.started.since(outcome.start));
            let to = node.finished.map_or_else(String::new, |at| Span(at.since(outcome.start)).to_string());
            format!("{} {} {} {from}..{to} {}", node.name, word("type"), word("phase"), word("message"))
        })
        .collect()
}

fn scenario<'a>(
    case: &Case<'a>,
    subject: Subject,
    expectations: &[Located<'a>],
) -> Result<Scenario<'a>, (Located<'a>, String)> {
    let time = |located: Located<'_>| span::parse(&located.text()).ok();
    let mut moments: Vec<Duration> = Vec::new();
    for expected in expectations {
        let of_runs = expected.entries_of("runs").flat_map(|(_, run)| run.items_of("moments").collect::<Vec<_>>());
        moments.extend(expected.items_of("moments").chain(of_runs).filter_map(|moment| time(moment.get("at")?)));
    }
    moments.sort_unstable();
    moments.dedup();
    let commands: Vec<Located<'a>> = case.all("commands").iter().rev().flat_map(Located::items).collect();
    let actions = commands.into_iter().map(action).collect::<Result<_, _>>()?;
    let strict = case.get("unstubbed").is_some_and(|located| located.text() == "error");
    let stubs: Vec<Located<'a>> = case.all("stubs").iter().flat_map(Located::items).collect();
    Ok(Scenario {
        start: case.get("start").and_then(|located| moment(&located.text()).ok()).unwrap_or(DAWN),
        until: case.get("until").and_then(time),
        slots: case.get("parallelism").and_then(|located| usize::try_from(located.value.as_u64()?).ok()),
        keyed: subject.keyed,
        templates: subject.templates,
        entries: subject.entries,
        stubs: Stubs::new(stubs.into_iter(), strict),
        actions,
        moments,
    })
}

fn action(located: Located<'_>) -> Result<ScriptedAction<'_>, (Located<'_>, String)> {
    let what = match located.text_of("do").unwrap_or_default().as_str() {
        "stop" => What::Command(Command::Stop),
        "terminate" => What::Command(Command::Terminate),
        "suspend" => What::Command(Command::Suspend),
        "resume" => What::Command(Command::Resume {
            selector: located.text_of("nodes"),
            supplied: located.entries_of("outputs").map(|(name, value)| (name.to_owned(), value.text())).collect(),
        }),
        "put" => {
            let manifest = located.get("manifest").map(|located| located.value.clone()).unwrap_or_default();
            if kinds::of_manifest(&manifest).is_ok_and(|kind| kind.make.is_some()) {
                let at = located.text_of("at").and_then(|text| span::parse(&text).ok()).unwrap_or_default();
                let what = What::PutTemplate(Box::new(manifest));
                return Ok(ScriptedAction { at, run: None, what, located });
            }
            match keyed::parse(&manifest) {
                Ok(object) => What::Put(Box::new(object)),
                Err(error) => return Err((located, error.to_string())),
            }
        }
        _ => What::Restart,
    };
    let at = located.text_of("at").and_then(|text| span::parse(&text).ok()).unwrap_or_default();
    Ok(ScriptedAction { at, run: located.text_of("run"), what, located })
}

fn refusals(answers: &[(Located<'_>, Option<Located<'_>>)], outcome: &ScenarioResult<'_>, verdict: &mut Verdict) {
    for ((located, expected), refusal) in answers.iter().zip(&outcome.refusals) {
        match (expected, refusal) {
            (Some(expected), Some(actual)) => {
                if let Some(wanted) = differs(expected, actual) {
                    verdict.miss(expected, "commands.refused", wanted, actual.clone());
                }
            }
            (Some(expected), None) => verdict.miss(expected, "commands.refused", "it is refused", "it is carried out"),
            (None, Some(actual)) => {
                verdict.miss(located, "commands", "it is carried out", format!("refused: {actual}"))
            }
            (None, None) => {}
        }
    }
}

fn admission(expected: &Located<'_>, subject: &Subject, verdict: &mut Verdict) {
    for (key, found) in [("rejected", &subject.wrong), ("warnings", &subject.warnings)] {
        let Some(list) = expected.get(key) else { continue };
        if key == "rejected" && found.is_empty() {
            continue;
        }
        if key == "warnings" && list.items().next().is_none() && !found.is_empty() {
            verdict.miss(&list, key, "no warnings", told(found));
        }
        for wanted in list.items() {
            if !found.iter().any(|finding| fits(&wanted, finding)) {
                verdict.miss(&wanted, key, wanted.value.to_string(), told(found));
            }
        }
    }
}

fn fits(wanted: &Located<'_>, finding: &Finding) -> bool {
    wanted.entries().all(|(key, located)| match key {
        "code" => located.text() == finding.problem.code,
        "at" => located.text() == finding.path.to_string(),
        "message" => differs(&located, &finding.problem.message).is_none(),
        _ => finding.problem.span.is_some_and(|span| located.value.as_u64() == Some(span.line as u64)),
    })
}

fn told(found: &[Finding]) -> String {
    if found.is_empty() {
        return "none".to_owned();
    }
    let line = |finding: &Finding| {
        let line = finding.problem.span.map_or(String::new(), |span| format!(" (line {})", span.line));
        format!("{} at {}{line}: {}", finding.problem.code, finding.path, finding.problem.message)
    };
    found.iter().map(line).collect::<Vec<_>>().join("\n")
}
