//! Walks over every text of every template and reports variables that can have no value.

use std::collections::HashSet;

use octoflow_manifest::Path;
use octoflow_model::argo::{Call, Hook};
use serde_json::Value;

use super::{
    Subject, ancestry, code, expression,
    findings::{At, Findings},
    index::{CallPosition, Callee, TemplateEntry, TemplateType},
    scope::{Found, Frame, Globals, LoopItem, StaticScope, VisibleCalls},
    tag::{self, Tag},
};
use crate::admit::shape::short;

pub(super) fn check(subject: &Subject<'_>, report: &mut Findings) {
    let globals = Globals::of(subject);
    let walker = Walker { subject, globals: &globals };
    for index in 0..subject.templates.listed {
        walker.template(report, index, None);
    }
    walker.handlers(report);
}

struct Walker<'a> {
    subject: &'a Subject<'a>,
    globals: &'a Globals<'a>,
}

/// Callback for a reference to a task of the DAG.
type Tasks<'t> = dyn FnMut(&mut Findings, &At<'_>, usize) + 't;

impl Walker<'_> {
    /// Checks a template and the inline templates in its calls. Nesting is bounded by the depth limit of manifests.
    fn template(&self, report: &mut Findings, index: usize, outer: Option<&StaticScope<'_>>) {
        let entry = &self.subject.templates.entries[index];
        if entry.broken {
            return;
        }
        let at = At::base(&entry.path);
        let calls = matches!(entry.kind, TemplateType::Steps | TemplateType::Dag);
        let own = StaticScope {
            globals: self.globals,
            entry: Some(entry),
            outer,
            view: VisibleCalls::None,
            item: &LoopItem::No,
        };
        let skipped: &[&str] = if calls { &["steps", "dag", "outputs"] } else { &[] };
        self.fields(report, &at, &own, entry.raw, skipped, &mut ignore);
        let retry = entry.template.retry_strategy.as_ref().and_then(|strategy| strategy.expression.as_deref());
        if let Some(text) = retry {
            let place = at.key("retryStrategy");
            expression::field(report, &place.key("expression"), &own, text, &mut ignore);
        }
        if !calls {
            self.outputs(report, &at, &own);
            return;
        }
        let frame = Frame::of(self.subject.templates, entry);
        let all = StaticScope { view: VisibleCalls::All(&frame), ..own };
        if let Some(outputs) = entry.raw.get("outputs") {
            self.value(report, &at.key("outputs"), &all, outputs, &mut ignore);
        }
        self.outputs(report, &at, &all);
        if let Some(target) = entry.template.dag.as_ref().and_then(|dag| dag.target.as_deref()) {
            let place = at.key("dag");
            self.text(report, &place.key("target"), &own, target, &mut ignore);
        }
        self.calls(report, &at, &frame, index, outer);
    }

    fn outputs(&self, report: &mut Findings, at: &At<'_>, scope: &StaticScope<'_>) {
        let Some(outputs) = scope.entry.map(|entry| &entry.template.outputs) else { return };
        let at = at.key("outputs");
        let list = at.key("parameters");
        for (index, output) in outputs.parameters.iter().enumerate() {
            if let Some(text) = output.value_from.as_ref().and_then(|from| from.expression.as_deref()) {
                let (place, field) = (list.index(index), "expression");
                let source = place.key("valueFrom");
                expression::field(report, &source.key(field), scope, text, &mut ignore);
            }
        }
        let list = at.key("artifacts");
        for (index, output) in outputs.artifacts.iter().enumerate() {
            if let Some(text) = output.from_expression.as_deref() {
                let place = list.index(index);
                expression::field(report, &place.key("fromExpression"), scope, text, &mut ignore);
            }
        }
    }

    fn calls(
        &self,
        report: &mut Findings,
        at: &At<'_>,
        frame: &Frame<'_>,
        index: usize,
        outer: Option<&StaticScope<'_>>,
    ) {
        let entry = frame.entry;
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        let mut looped = false;
        let mut group_seen = usize::MAX;
        for ((site, call), callee) in entry.calls().zip(&entry.callees) {
            if let CallPosition::Step { group, .. } = site
                && group != group_seen
            {
                group_seen = group;
                let steps = entry.template.steps.as_deref().and_then(|groups| groups.get(group));
                looped |= steps.is_some_and(|steps| steps.iter().any(Call::looped));
            }
            let item = Self::item(call, looped);
            let scope = self.call_scope(frame, outer, site, &item);
            let place = at.call(site);
            self.call(report, &place, &scope, site, call, &mut |_, _, task| {
                if let CallPosition::Task(own) = site
                    && self.subject.graphs[index].as_ref().is_some_and(|graph| graph.readable(own))
                {
                    pairs.push((own, task));
                }
            });
            if let (Callee::Entry(inline), true) = (callee, call.inline.is_some()) {
                self.template(report, *inline, Some(&scope));
            }
        }
        let Some(graph) = &self.subject.graphs[index] else { return };
        let unordered: HashSet<(usize, usize)> = ancestry::unordered(&graph.needs, pairs).into_iter().collect();
        if !unordered.is_empty() {
            self.report_unordered(report, at, frame, outer, &unordered);
        }
    }

    /// Walks a second time over the tasks that refer to others they do not depend on, to report the places.
    fn report_unordered(
        &self,
        report: &mut Findings,
        at: &At<'_>,
        frame: &Frame<'_>,
        outer: Option<&StaticScope<'_>>,
        unordered: &HashSet<(usize, usize)>,
    ) {
        let entry = frame.entry;
        let Some(dag) = &entry.template.dag else { return };
        let mut tasks: Vec<usize> = unordered.iter().map(|(task, _)| *task).collect();
        tasks.sort_unstable();
        tasks.dedup();
        // All other problems of these tasks were reported by the first walk.
        let mut again = Findings::default();
        for task in tasks {
            let call = &dag.tasks[task];
            let site = CallPosition::Task(task);
            let item = Self::item(call, false);
            let scope = self.call_scope(frame, outer, site, &item);
            let place = at.call(site);
            self.call(&mut again, &place, &scope, site, call, &mut |_, at, needed| {
                if unordered.contains(&(task, needed)) {
                    missing(report, at, entry, call, &dag.tasks[needed].name);
                }
            });
        }
    }

    /// The scope of the arguments of a call.
    fn call_scope<'s>(
        &'s self,
        frame: &'s Frame<'s>,
        outer: Option<&'s StaticScope<'s>>,
        site: CallPosition,
        item: &'s LoopItem<'s>,
    ) -> StaticScope<'s> {
        let view = VisibleCalls::From { frame, site, ended: false };
        StaticScope { globals: self.globals, entry: Some(frame.entry), outer, view, item }
    }

    fn item(call: &Call, looped_before: bool) -> LoopItem<'_> {
        let item = LoopItem::of(call);
        // A loop in this or an earlier group makes Argo accept the item's name here too.
        if looped_before && matches!(item, LoopItem::No) { LoopItem::Any } else { item }
    }

    fn call(
        &self,
        report: &mut Findings,
        at: &At<'_>,
        scope: &StaticScope<'_>,
        site: CallPosition,
        call: &Call,
        tasks: &mut Tasks<'_>,
    ) {
        let Some(raw) = scope.entry.and_then(|entry| site.find(entry.raw)) else { return };
        self.fields(report, at, scope, raw, &["inline", "hooks", "withItems"], tasks);
        if let Some(items) = raw.get("withItems") {
            self.value(report, &at.key("withItems"), &StaticScope { item: &LoopItem::No, ..*scope }, items, tasks);
        }
        let arguments = at.key("arguments");
        let list = arguments.key("artifacts");
        for (index, artifact) in call.arguments.artifacts.iter().enumerate() {
            if let Some(text) = artifact.from_expression.as_deref() {
                let place = list.index(index);
                expression::field(report, &place.key("fromExpression"), scope, text, tasks);
            }
        }
        let VisibleCalls::From { frame, .. } = scope.view else { return };
        let ended = StaticScope { view: VisibleCalls::From { frame, site, ended: true }, ..*scope };
        if let Some(hooks) = raw.get("hooks") {
            let place = at.key("hooks");
            self.value(report, &place, &ended, hooks, tasks);
            for (moment, hook) in &call.hooks {
                self.hook(report, &place.key(moment), &ended, hook, tasks);
            }
        }
    }

    fn hook(&self, report: &mut Findings, at: &At<'_>, scope: &StaticScope<'_>, hook: &Hook, tasks: &mut Tasks<'_>) {
        if let Some(text) = hook.expression.as_deref() {
            expression::field(report, &at.key("expression"), scope, text, tasks);
        }
    }

    /// Checks the workflow's own hooks, metrics and retry strategy, which see only `workflow.*`.
    fn handlers(&self, report: &mut Findings) {
        let scope = StaticScope {
            globals: self.globals,
            entry: None,
            outer: None,
            view: VisibleCalls::None,
            item: &LoopItem::No,
        };
        let place = Path::root().join("spec");
        let at = At::base(&place);
        let spec = &self.subject.workflow.spec;
        if let Some(text) = spec.retry_strategy.as_ref().and_then(|strategy| strategy.expression.as_deref()) {
            let place = at.key("retryStrategy");
            expression::field(report, &place.key("expression"), &scope, text, &mut ignore);
        }
        if let Some(metadata) = &spec.workflow_metadata {
            let place = at.key("workflowMetadata");
            let labels = place.key("labelsFrom");
            for (label, from) in &metadata.labels_from {
                let place = labels.key(label);
                expression::field(report, &place.key("expression"), &scope, &from.expression, &mut ignore);
            }
        }
        let raw = &self.subject.manifest["spec"];
        for field in ["metrics", "hooks"] {
            if let Some(value) = raw.get(field) {
                self.value(report, &at.key(field), &scope, value, &mut ignore);
            }
        }
        // Argo does not check these at admission; mistakes surface when they are used, so they are warnings here.
        let mut aside = Findings::default();
        for field in ["volumes", "volumeClaimTemplates", "synchronization", "podMetadata", "workflowMetadata"] {
            if let Some(value) = raw.get(field) {
                self.value(&mut aside, &at.key(field), &scope, value, &mut ignore);
            }
        }
        report.absorb(Vec::new(), aside.softened());
        let hooks = at.key("hooks");
        for (moment, hook) in &spec.hooks {
            self.hook(report, &hooks.key(moment), &scope, hook, &mut ignore);
        }
    }

    fn fields(
        &self,
        report: &mut Findings,
        at: &At<'_>,
        scope: &StaticScope<'_>,
        raw: &Value,
        skipped: &[&str],
        tasks: &mut Tasks<'_>,
    ) {
        for (key, value) in raw.as_object().into_iter().flatten() {
            if !skipped.contains(&key.as_str()) {
                self.value(report, &at.key(key), scope, value, tasks);
            }
        }
    }

    fn value(&self, report: &mut Findings, at: &At<'_>, scope: &StaticScope<'_>, value: &Value, tasks: &mut Tasks<'_>) {
        match value {
            Value::String(text) => self.text(report, at, scope, text, tasks),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.value(report, &at.index(index), scope, item, tasks);
                }
            }
            Value::Object(fields) => {
                for (key, field) in fields {
                    self.value(report, &at.key(key), scope, field, tasks);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&self, report: &mut Findings, at: &At<'_>, scope: &StaticScope<'_>, text: &str, tasks: &mut Tasks<'_>) {
        tag::each(text, &mut |tag| {
            match tag {
                Tag::Expression { text, parsed } => {
                    expression::check(report, &at.part(text), scope, text, &parsed, tasks);
                }
                Tag::Name(body) => self.name(report, &at.part(tag::whole(text, body)), scope, body, tasks),
            }
            // Stop looking once the report takes no more problems.
            !report.is_full()
        });
    }

    fn name(&self, report: &mut Findings, at: &At<'_>, scope: &StaticScope<'_>, body: &str, tasks: &mut Tasks<'_>) {
        let name = body.trim();
        match scope.find(name) {
            Found::Known | Found::Foreign => {}
            Found::Task(task) => tasks(report, at, task),
            // With a space before the name it may belong to another template language.
            Found::Unknown if name.len() == body.trim_end().len() => report.error_with(at, code::UNRESOLVED, || {
                (format!("failed to resolve {{{{{}}}}}", short(name)), scope.help(name))
            }),
            Found::Unknown => report
                .warn(at, code::UNRESOLVED, || format!("{{{{{}}}}} has no value and is left as it is", short(body))),
            Found::Unfilled(why) => {
                report.warn(at, code::UNRESOLVED, || format!("{{{{{}}}}} has no value: {why}", short(body)))
            }
        }
    }
}

fn ignore(_: &mut Findings, _: &At<'_>, _: usize) {}

/// Reports a reference without dependency. `at` is the text with the reference, somewhere below the call.
fn missing(report: &mut Findings, at: &At<'_>, entry: &TemplateEntry<'_>, call: &Call, needed: &str) {
    report.error_with(at, code::MISSING_DEPENDENCY, || {
        let message = format!(
            "templates.{}.tasks.{} missing dependency '{needed}' for {}",
            entry.label,
            call.name,
            user(at, call)
        );
        (message, Some(format!("add `{needed}` to the task's `depends` or `dependencies`")))
    });
}

/// Names the referring field: `parameter 'p'`, `artifact 'a'`, or the field itself.
fn user(at: &At<'_>, call: &Call) -> String {
    let path = at.path().to_string();
    let index_behind = |list: &str| {
        let (_, rest) = path.split_once(list)?;
        rest.split(']').next()?.parse::<usize>().ok()
    };
    if let Some(parameter) =
        index_behind(".arguments.parameters[").and_then(|index| call.arguments.parameters.get(index))
    {
        return format!("parameter '{}'", parameter.name);
    }
    if let Some(artifact) = index_behind(".arguments.artifacts[").and_then(|index| call.arguments.artifacts.get(index))
    {
        return format!("artifact '{}'", artifact.name);
    }
    let field = path.rsplit(['.', ']']).next().unwrap_or_default();
    format!("'{field}'")
}
