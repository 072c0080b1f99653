//! Admission of one entry of a flow.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_manifest::Path;
use octoflow_model::jobflow::{DependsOn, EntryProbe, FlowEntry};

use super::{MAX_NAME_LENGTH, entry_name};
use crate::{
    admit::{
        code,
        findings::{At, Findings},
        shape,
    },
    dialects::{
        argo::duration,
        jobflow::program::{job_name, retry_name},
    },
    expr::nearest,
};

/// Quotes of texts for people, which YAML does not know.
const TYPOGRAPHIC: [char; 4] = ['‘', '’', '“', '”'];

/// The number of each entry and its retries, by name.
pub(super) type Entries<'a> = BTreeMap<&'a str, (usize, u32)>;

/// Checks one entry. `flow` is the longest name that the flow may get; `numbers` are the entries by name.
pub(super) fn check(
    report: &mut Findings,
    at: &At<'_>,
    entry: &FlowEntry,
    flow: Option<&str>,
    numbers: &Entries<'_>,
    broken: &[Path],
) {
    entry_name(report, &at.key("name"), &entry.name, broken);
    let retries = entry.retry.as_ref().map_or(0, |retry| retry.max_retries);
    if let Some(flow) = flow {
        let longest = job_name(flow, &entry.name, retries);
        if longest.len() > MAX_NAME_LENGTH && entry.name.len() <= MAX_NAME_LENGTH && flow.len() <= MAX_NAME_LENGTH {
            report.error_with(&at.key("name"), code::NAME, || {
                let message = format!(
                    "its job would be called '{}', which has {} characters, and {MAX_NAME_LENGTH} are the most",
                    shape::short(&longest),
                    longest.len()
                );
                (message, Some("shorten the name of the flow or of the template".to_owned()))
            });
        }
    }
    // Found from the entry whose name looks like that of a retry, so that the time does not grow with the retries.
    if let Some((other, number)) = retry_name(&entry.name)
        && numbers.get(other).is_some_and(|(_, retries)| *retries >= number)
    {
        report.error(&at.key("name"), code::RETRY, || {
            format!("retry {number} of '{}' would have the name of its job", shape::short(other))
        });
    }
    if let Some(text) = entry.retry.as_ref().and_then(|retry| retry.backoff.as_deref())
        && duration::units(text).is_none()
    {
        report.error(&at.key("retry").key("backoff"), code::DURATION, || {
            format!("`{}` is not a time such as 10s, 5m or 1h30m", shape::short(text))
        });
    }
    if let Some(patch) = &entry.patch {
        let place = at.key("patch");
        if patch.job_spec.is_some() && patch.spec.is_some() {
            report.error(&place.key("spec"), code::MISPLACED, || {
                "jobSpec and spec are the same field; write one of them".to_owned()
            });
        }
        for (name, part) in [("jobSpec", &patch.job_spec), ("spec", &patch.spec)] {
            if part.as_ref().is_some_and(|part| !part.is_object()) {
                report.error(&place.key(name), shape::code::WRONG_TYPE, || "expected a mapping".to_owned());
            }
        }
    }
    if let Some(needs) = &entry.depends_on {
        depends_on(report, &at.key("dependsOn"), entry, needs, numbers);
        if let Some(probe) = &needs.probe {
            conditions(report, &at.key("dependsOn").key("probe"), probe, broken);
        }
    }
}

fn depends_on(report: &mut Findings, at: &At<'_>, entry: &FlowEntry, needs: &DependsOn, numbers: &Entries<'_>) {
    let place = at.key("targets");
    let mut seen = BTreeSet::new();
    for (index, target) in needs.targets.iter().enumerate() {
        let place = place.index(index);
        if *target == entry.name {
            report.error(&place, code::CYCLE, || format!("'{}' waits for itself", shape::short(target)));
        } else if !numbers.contains_key(target.as_str()) {
            report.error_with(&place, code::UNKNOWN_TASK, || {
                let message = format!("no entry is called '{}'", shape::short(target));
                let bare = target.trim_matches(TYPOGRAPHIC);
                if bare.len() < target.len() && numbers.contains_key(bare) {
                    return (message, Some(format!("write `{bare}`: typographic quotes belong to the name")));
                }
                let near = nearest(target, numbers.keys().copied());
                (message, near.map(|near| format!("did you mean `{near}`?")))
            });
        } else if !seen.insert(target) {
            report.warn(&place, code::UNUSED, || format!("'{}' is named twice", shape::short(target)));
        }
    }
    if needs.targets.is_empty() && needs.probe.as_ref().is_some_and(|probe| !probe.is_empty()) {
        report.error_with(&at.key("probe"), code::REQUIRED, || {
            let message = "a probe is about the jobs of targets, and there are none".to_owned();
            (message, Some("name them under `dependsOn.targets`".to_owned()))
        });
    }
}

fn conditions(report: &mut Findings, at: &At<'_>, probe: &EntryProbe, broken: &[Path]) {
    let list = at.key("httpGetList");
    for (index, get) in probe.http_get_list.iter().enumerate() {
        let place = list.index(index);
        required(report, &place.key("port"), get.port != 0, "a port is required", broken);
        if !get.path.is_empty() && !get.path.starts_with('/') {
            report.error(&place.key("path"), code::REQUEST, || {
                format!("path '{}' does not begin with `/`", shape::short(&get.path))
            });
        }
        let named = get.http_header.as_ref().is_none_or(|header| !header.name.is_empty());
        required(report, &place.key("httpHeader").key("name"), named, "a header needs a name", broken);
    }
    let list = at.key("tcpSocketList");
    for (index, socket) in probe.tcp_socket_list.iter().enumerate() {
        required(report, &list.index(index).key("port"), socket.port != 0, "a port is required", broken);
    }
    let list = at.key("taskStatusList");
    for (index, status) in probe.task_status_list.iter().enumerate() {
        let given = !status.phase.is_empty();
        required(report, &list.index(index).key("phase"), given, "a phase is required", broken);
    }
}

/// Reports a field that is missing, unless the field check has found it and reported what is wrong with it.
pub(super) fn required(report: &mut Findings, at: &At<'_>, given: bool, message: &str, broken: &[Path]) {
    if !given && !broken.contains(&at.path()) {
        report.error(at, code::REQUIRED, || message.to_owned());
    }
}

/// Returns the entries that an entry waits for, without those that are wrong by themselves.
pub(super) fn needs(at: usize, entry: &FlowEntry, numbers: &Entries<'_>) -> Vec<usize> {
    let targets = entry.depends_on.iter().flat_map(|needs| &needs.targets);
    let known = targets.filter_map(|target| numbers.get(target.as_str()).map(|(number, _)| *number));
    known.filter(|up| *up != at).collect()
}
