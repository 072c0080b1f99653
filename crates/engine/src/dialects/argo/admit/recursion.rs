//! Finds templates that call themselves unconditionally. Recursion is allowed where a condition can end it; without
//! one, a run could only end at the recursion limit.

use octoflow_model::{argo::Call, scalar::IntOrText};

use super::{
    Subject, code,
    findings::{At, Findings},
    index::{CallPosition, Callee, TemplateEntry, TemplateType},
};
use crate::graph;

pub(super) fn check(subject: &Subject<'_>, report: &mut Findings) {
    let entries = &subject.templates.entries;
    let certain: Vec<Vec<usize>> = entries
        .iter()
        .map(|entry| {
            let mut called: Vec<usize> = entry
                .calls()
                .zip(&entry.callees)
                .filter_map(|((site, call), callee)| {
                    let unconditional = call.when.is_none()
                        && (!call.looped() || has_items(call))
                        && first(entry, site, call.depends.is_some() || !call.dependencies.is_empty());
                    match callee {
                        Callee::Entry(index) if unconditional => Some(*index),
                        Callee::Entry(_) | Callee::Open => None,
                    }
                })
                .collect();
            called.sort_unstable();
            called.dedup();
            called
        })
        .collect();
    if let Some(circle) = graph::find_cycle(&certain) {
        let names: Vec<&str> = circle.iter().map(|index| entries[*index].label.as_str()).collect();
        report.error(&At::base(&entries[circle[0]].path), code::ENDLESS, || {
            format!(
                "these templates call each other unconditionally and would never end: {}",
                graph::show_cycle(&names)
            )
        });
    }
}

/// Whether a literal loop has at least one item, and so calls at least once.
fn has_items(call: &Call) -> bool {
    let listed = call.with_items.as_ref().is_some_and(|items| !items.is_empty());
    let counted = call.with_sequence.as_ref().is_some_and(|sequence| {
        let number = |text: &Option<IntOrText>| text.as_ref().and_then(|text| text.0.trim().parse::<i64>().ok());
        match (number(&sequence.count), &sequence.end) {
            (Some(count), None) => count > 0,
            (None, Some(_)) => sequence.count.is_none(),
            _ => false,
        }
    });
    listed || counted
}

/// Whether a call waits for nothing to succeed first.
fn first(entry: &TemplateEntry<'_>, site: CallPosition, waits: bool) -> bool {
    match site {
        CallPosition::Step { group, .. } if entry.kind == TemplateType::Steps => group == 0,
        CallPosition::Step { .. } | CallPosition::Task(_) => !waits,
    }
}
