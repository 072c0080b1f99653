//! `octoflow lint FILE|DIR|-…`: reports every problem of manifests at once, without running or storing anything.
//! Problems are data and go to standard output; the summary goes to standard error unless it is all there is.

use std::collections::HashSet;

use anyhow::Result;
use octoflow_engine::{argo::admit::unused, kinds};
use octoflow_manifest::{Problem, Problems, Severity};
use serde_json::Value;

use crate::{
    cli::{Lint, ProblemFormat},
    exit::{Exit, Failure},
    load::{
        self, Loaded,
        names::nearest,
        validate::{FileCatalog, validate},
    },
    output::{Output, findings, json::pretty},
    source::workflow::text,
};

pub(crate) fn lint(args: &Lint, output: &Output) -> Result<Exit> {
    let gathered = load::load_trees(&args.manifests)?;
    let (ours, others): (Vec<Loaded>, Vec<Loaded>) = gathered.objects.into_iter().partition(|one| is_ours(&one.value));
    for other in &others {
        output.detail(&format!("{}: not a manifest of ours, left alone", other.place()));
    }
    let wanted: Vec<&Loaded> = ours
        .iter()
        .filter(|one| args.kinds.is_empty() || args.kinds.iter().any(|wanted| wanted.selects(&one.value)))
        .collect();
    let mut problems = gathered.problems;
    if wanted.is_empty() && problems.is_empty() {
        let text = "found nothing to lint in the specified paths, failing...";
        let help = match foreign(&others) {
            Some(kinds) => format!("there is only what is not run here: {kinds}"),
            None => "workflows and what stands beside them are looked for in files ending in .yaml, .yml or .json"
                .to_owned(),
        };
        return Err(Failure::new(Exit::InvalidManifest, text).help(help).into());
    }
    let catalog = FileCatalog::new(ours.iter().map(|one| &one.value), None);
    problems.extend(wanted.iter().flat_map(|one| validate(one, &catalog)));
    without_echoes(&mut problems);
    if args.strict {
        problems.extend(wanted.iter().flat_map(|one| unused(&one.value).into_iter().map(|found| one.locate(found))));
        problems.0.iter_mut().for_each(|problem| problem.severity = Severity::Error);
    }
    // The result does not depend on the order of the arguments.
    problems.0.sort_by(|one, other| place(one).cmp(&place(other)));
    tell(&problems, args.output, output)
}

/// Names the first kinds that are not ours, with their places; `None` if there are none.
fn foreign(others: &[Loaded]) -> Option<String> {
    const NAMED: usize = 3;
    let version = |one: &Loaded| text(&one.value, "apiVersion").to_owned();
    let known: Vec<&Loaded> = others.iter().filter(|one| !one.kind().is_empty() && !version(one).is_empty()).collect();
    let named = known.iter().take(NAMED).map(|one| format!("a {} of {} ({})", one.kind(), version(one), one.place()));
    let more = known.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("{more} more"));
    let all: Vec<String> = named.chain(more).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Removes problems of a template that are already reported for the template itself, so that callers do not repeat
/// them.
fn without_echoes(problems: &mut Problems) {
    let key = |problem: &Problem, message: &str| (problem.code, message.to_owned());
    let told: HashSet<(&str, String)> = problems.iter().map(|problem| key(problem, &problem.message)).collect();
    // What a run refers to by way of a template is told at its `spec`, and at its place if the template is there.
    let placed = |problem: &&Problem| {
        problem.path.as_ref().is_some_and(|path| path.to_string().rsplit('.').next() != Some("spec"))
    };
    let precise: HashSet<(&str, String)> =
        problems.iter().filter(placed).map(|problem| key(problem, &problem.message)).collect();
    problems.0.retain(|problem| placed(&problem) || !precise.contains(&key(problem, &problem.message)));
    problems.0.retain(|problem| {
        let echo = ["in WorkflowTemplate '", "in ClusterWorkflowTemplate '"].iter().find_map(|kind| {
            let (name, message) = problem.message.strip_prefix(kind)?.split_once("': ")?;
            // A caller refers to a template by the name of its object too.
            Some(message.replace(&format!("templates.{name}/"), "templates."))
        });
        echo.is_none_or(|message| !told.contains(&key(problem, &message)))
    });
}

fn tell(problems: &Problems, format: ProblemFormat, output: &Output) -> Result<Exit> {
    match format {
        ProblemFormat::Pretty if problems.is_empty() => {}
        ProblemFormat::Pretty => output.line(&problems.render(output.paint().is_on()))?,
        ProblemFormat::Json => output.data(&pretty(&problems.to_json()))?,
        ProblemFormat::Github => output.data(&findings::github(problems))?,
        ProblemFormat::Sarif => output.data(&pretty(&findings::sarif(problems)))?,
    }
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    if errors > 0 {
        output.talk(&format!("{errors} linting errors found!"));
        return Ok(Exit::InvalidManifest);
    }
    let verdict = "no linting errors found!";
    match format {
        ProblemFormat::Pretty => output.line(verdict)?,
        ProblemFormat::Json | ProblemFormat::Github | ProblemFormat::Sarif => output.talk(verdict),
    }
    Ok(Exit::Succeeded)
}

/// Returns whether an object is ours to check: files of other tools lie beside manifests, so only objects of a known
/// dialect, or with a similar kind, are.
fn is_ours(object: &Value) -> bool {
    let (version, kind) = (text(object, "apiVersion"), text(object, "kind"));
    if version.is_empty() && kind.is_empty() {
        return object.get("spec").is_some();
    }
    let known = kinds::loadable().map(|kind| kind.name).chain(kinds::refused());
    kinds::of_runs().any(|kind| kind.is_of(kinds::group_of(version))) || nearest(kind, known).is_some()
}

fn place(problem: &Problem) -> (Option<&str>, Option<(usize, usize)>) {
    (problem.source.as_ref().map(|source| source.name()), problem.span.map(|span| (span.line, span.column)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_of_other_tools_is_told_from_what_is_misspelt() {
        for ours in [
            json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Anything"}),
            json!({"apiVersion": "argoproj.io/v1alpha1"}),
            json!({"kind": "Worfklow"}),
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            json!({"apiVersion": "argoproj.oi/v1alpha1", "kind": "Workflow"}),
            json!({"metadata": {}, "spec": {}}),
        ] {
            assert!(is_ours(&ours), "{ours}");
        }
        for other in [
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}),
            json!({"apiVersion": "v2", "name": "chart"}),
            json!({"services": {}}),
            json!(["a"]),
            json!("text"),
        ] {
            assert!(!is_ours(&other), "{other}");
        }
    }
}
