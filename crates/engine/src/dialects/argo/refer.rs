//! Resolves references to templates of other objects: their keys, and the copies that a workflow stores when it is
//! submitted. Reads the manifest alone; where a name is only known at run time, everything it may mean is copied.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use octoflow_manifest::{Path, Problem};
use octoflow_model::{argo::TemplateRef, meta::DEFAULT_NAMESPACE, submission::Stored};
use serde_json::Value;

use super::{
    admit::{Catalog, admit_template, code},
    fields::WORKFLOW_TEMPLATE,
    merge,
};
use crate::{admit::shape, expr::nearest, kinds::Kind};

/// Scope of a WorkflowTemplate: workflows of its namespace may refer to it, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reach {
    Namespace,
    Cluster,
}

impl Reach {
    pub fn of(cluster: bool) -> Self {
        if cluster { Self::Cluster } else { Self::Namespace }
    }

    pub fn of_kind(kind: &str) -> Option<Self> {
        match kind {
            "WorkflowTemplate" => Some(Self::Namespace),
            "ClusterWorkflowTemplate" => Some(Self::Cluster),
            _ => None,
        }
    }

    pub fn kind(self) -> &'static str {
        self.row().name
    }

    /// Returns the row of its templates in the table of kinds.
    pub fn row(self) -> &'static Kind {
        match self {
            Self::Namespace => &super::WORKFLOW_TEMPLATE,
            Self::Cluster => &super::CLUSTER_TEMPLATE,
        }
    }

    /// Returns the label of runs that took their spec from such a template.
    pub fn label(self) -> &'static str {
        match self {
            Self::Namespace => "workflows.argoproj.io/workflow-template",
            Self::Cluster => "workflows.argoproj.io/cluster-workflow-template",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Namespace => "namespaced",
            Self::Cluster => "cluster",
        }
    }
}

/// Returns the key of a referenced template inside the run.
pub fn key(reference: &TemplateRef) -> String {
    let reach = Reach::of(reference.cluster_scope).word();
    format!("{reach}/{}/{}", reference.name, reference.template)
}

/// Returns the WorkflowTemplate part of a key: `namespaced/<name>` or `cluster/<name>`; `None` for the run's own
/// templates.
pub fn scope_of(key: &str) -> Option<&str> {
    key.split('#').next()?.rsplit_once('/').map(|(scope, _)| scope)
}

/// Returns the template's name within its WorkflowTemplate.
pub fn bare(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

/// Returns the key of a template that another one of the same WorkflowTemplate calls by name.
pub fn sibling_key(template_scope: Option<&str>, name: &str) -> String {
    template_scope.map_or_else(|| name.to_owned(), |template_scope| format!("{template_scope}/{name}"))
}

/// Parses a key back into the reference it stands for.
pub fn reference(key: &str) -> Option<TemplateRef> {
    let (scope, rest) = key.split_once('/')?;
    let (name, template) = rest.split_once('/')?;
    let (name, template) = (name.to_owned(), template.to_owned());
    Some(TemplateRef { name, template, cluster_scope: scope == Reach::Cluster.word() })
}

/// Result of resolving all references of a manifest.
pub(super) struct ResolvedReferences {
    pub(super) stored: Stored,
    /// Path of the field that asked for each template, by key.
    pub(super) places: BTreeMap<String, Path>,
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
    /// True if the WorkflowTemplate that provides the spec is missing or unreadable, so that a missing field proves
    /// nothing.
    pub(super) open: bool,
    /// True if a template that it calls is missing or unreadable, so that its exports are unknown.
    pub(super) partial: bool,
}

/// Resolves everything the manifest refers to. The manifest must have the shape of a Workflow.
pub(super) fn resolve_references(manifest: &Value, others: &dyn Catalog) -> ResolvedReferences {
    let namespace = manifest["metadata"]["namespace"].as_str().filter(|name| !name.is_empty());
    let mut search = Search {
        others,
        namespace: namespace.unwrap_or(DEFAULT_NAMESPACE),
        loaded: BTreeMap::new(),
        reported: BTreeSet::new(),
        queue: VecDeque::new(),
        found: ResolvedReferences {
            stored: Stored::default(),
            places: BTreeMap::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
            open: false,
            partial: false,
        },
    };
    search.run(manifest);
    search.found
}

/// Problems with which a template is still readable. With any other problem it is malformed.
const READABLE: [&str; 3] = [shape::code::UNSUPPORTED, shape::code::UNKNOWN_FIELD, shape::code::OUT_OF_RANGE];

/// A WorkflowTemplate as loaded from the catalog.
struct LoadedTemplate {
    value: Value,
    problems: Vec<Problem>,
    /// Why it cannot be read as the kind it claims to be.
    flaw: Option<String>,
}

impl LoadedTemplate {
    fn templates(&self) -> &[Value] {
        self.value["spec"]["templates"].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}

struct Search<'a> {
    others: &'a dyn Catalog,
    namespace: &'a str,
    loaded: BTreeMap<(Reach, String), Option<LoadedTemplate>>,
    /// References that were reported as missing already, by path and name.
    reported: BTreeSet<(Path, String)>,
    /// Templates still to be scanned: their WorkflowTemplate, their content, and the field that asked for them.
    queue: VecDeque<(String, Value, Path)>,
    found: ResolvedReferences,
}

/// A template that a call or a hook refers to.
enum Want<'v> {
    Sibling(&'v str),
    Reference(&'v Value),
}

impl Search<'_> {
    fn run(&mut self, manifest: &Value) {
        let place = Path::root().join("spec");
        let own = &manifest["spec"];
        let merged = own.get("workflowTemplateRef").and_then(|reference| self.merged(own, reference, &place));
        let spec = merged.as_ref().unwrap_or(own);
        let list = place.join("templates");
        for (index, template) in spec["templates"].as_array().into_iter().flatten().enumerate() {
            // Templates of a merged spec were all asked for by the one `workflowTemplateRef`.
            let at = if merged.is_some() { place.join("workflowTemplateRef") } else { list.join(index) };
            self.template(None, template, &at, merged.is_some());
        }
        for (moment, hook) in spec["hooks"].as_object().into_iter().flatten() {
            if let Some(reference) = hook.get("templateRef") {
                let at = place.join("hooks").join(moment.as_str()).join("templateRef");
                self.want(None, &Want::Reference(reference), &at);
            }
        }
        while let Some((template_scope, template, at)) = self.queue.pop_front() {
            self.template(Some(&template_scope), &template, &at, true);
        }
        if merged.is_some() {
            self.found.stored.spec = merged;
        }
    }

    /// Merges the manifest's spec over that of the WorkflowTemplate it names.
    fn merged(&mut self, own: &Value, reference: &Value, spec: &Path) -> Option<Value> {
        let place = spec.join("workflowTemplateRef");
        let reach = Reach::of(reference["clusterScope"] == true);
        let name = reference["name"].as_str().unwrap_or_default();
        if own["templates"].as_array().is_some_and(|templates| !templates.is_empty()) {
            let message = "spec.templates must not stand beside spec.workflowTemplateRef, which gives the templates";
            let help = "remove one of the two; `templateRef` at a step or task calls a single template";
            let problem = Problem::error(code::MISPLACED, message).path(spec.join("templates")).help(help);
            self.found.problems.push(problem);
        }
        if self.load(reach, name, &place).is_none() {
            self.found.open = true;
            return None;
        }
        let loaded = self.loaded.get(&(reach, name.to_owned())).and_then(Option::as_ref)?;
        for problem in &loaded.problems {
            self.found.problems.push(relocated(problem, reach, name, &place));
        }
        if loaded.value["spec"].get("workflowTemplateRef").is_some() {
            let message = format!("{} '{name}' refers to another one, which a template cannot do", reach.kind());
            self.found.problems.push(Problem::error(code::MISPLACED, message).path(place));
        }
        let mut merged = merge::specs(own, &loaded.value["spec"]);
        merged["workflowTemplateRef"] = reference.clone();
        Some(merged)
    }

    /// Loads an object, and reports one that is missing or unreadable.
    fn load(&mut self, reach: Reach, name: &str, place: &Path) -> Option<()> {
        if name.is_empty() {
            self.found.partial = true;
            let message = format!("{place}.name is required");
            self.found.problems.push(Problem::error(code::REQUIRED, message).path(place.clone()));
            return None;
        }
        let (others, namespace) = (self.others, self.namespace);
        let loaded = self.loaded.entry((reach, name.to_owned())).or_insert_with(|| {
            let object = others.template(reach, namespace, name)?;
            let checked = shape::check(&object, &WORKFLOW_TEMPLATE);
            let (problems, _) = admit_template(&object);
            let wrong = problems.iter().find(|problem| !READABLE.contains(&problem.code));
            let flaw = wrong.map(|problem| {
                let at = problem.path.as_ref().map(|path| format!(" at {path}")).unwrap_or_default();
                format!("{} '{name}' is malformed{at}: {}", reach.kind(), problem.message)
            });
            Some(LoadedTemplate { value: checked.value, problems, flaw })
        });
        match loaded {
            Some(LoadedTemplate { flaw: None, .. }) => Some(()),
            Some(LoadedTemplate { flaw: Some(flaw), .. }) => {
                self.found.partial = true;
                if self.found.stored.flaw.is_none() {
                    let message = format!("{flaw}; the run will end in error");
                    self.found.warnings.push(Problem::warning(code::NOT_LOADED, message).path(place.clone()));
                    self.found.stored.flaw = Some(flaw.clone());
                }
                None
            }
            None => {
                self.found.partial = true;
                if self.reported.insert((place.clone(), name.to_owned())) {
                    self.missing(reach, name, place);
                }
                None
            }
        }
    }

    fn missing(&mut self, reach: Reach, name: &str, place: &Path) {
        let shown = shape::short(name);
        let scope = match reach {
            Reach::Namespace => format!(" in namespace '{}'", self.namespace),
            Reach::Cluster => String::new(),
        };
        let known = self.others.template_names(reach, self.namespace);
        let help = match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("give its file too: octoflow run {shown}.yaml WORKFLOW.yaml"),
        };
        let message = format!("{} '{shown}' is not loaded{scope}", reach.kind());
        self.found.problems.push(Problem::error(code::UNKNOWN_TEMPLATE, message).path(place.join("name")).help(help));
    }

    /// Resolves everything that a template's calls refer to. `fixed` is true if the template is not in the manifest;
    /// `at` is then the field that asked for it.
    fn template(&mut self, template_scope: Option<&str>, template: &Value, at: &Path, fixed: bool) {
        let below = |path: &Path, steps: &[octoflow_manifest::Segment]| {
            if fixed { path.clone() } else { path.concat(&Path(steps.to_vec())) }
        };
        // Almost every call of a large graph only names a template of its own workflow; no path is built for those.
        let asks = |call: &Value| {
            template_scope.is_some() || ["templateRef", "hooks", "inline"].iter().any(|field| call.get(field).is_some())
        };
        let mut calls: Vec<(&Value, Path)> = Vec::new();
        for (group, steps) in template["steps"].as_array().into_iter().flatten().enumerate() {
            let steps = steps.as_array().into_iter().flatten().enumerate();
            for (step, call) in steps.filter(|(_, call)| asks(call)) {
                calls.push((call, below(at, &["steps".into(), group.into(), step.into()])));
            }
        }
        let tasks = template["dag"]["tasks"].as_array().into_iter().flatten().enumerate();
        for (task, call) in tasks.filter(|(_, call)| asks(call)) {
            calls.push((call, below(at, &["dag".into(), "tasks".into(), task.into()])));
        }
        for (call, at) in calls {
            for field in ["template", "onExit"] {
                if let Some(name) = call[field].as_str().filter(|name| !name.is_empty()) {
                    self.want(template_scope, &Want::Sibling(name), &below(&at, &[field.into()]));
                }
            }
            if let Some(reference) = call.get("templateRef") {
                self.want(template_scope, &Want::Reference(reference), &below(&at, &["templateRef".into()]));
            }
            for (moment, hook) in call["hooks"].as_object().into_iter().flatten() {
                let at = below(&at, &["hooks".into(), moment.as_str().into()]);
                if let Some(name) = hook["template"].as_str().filter(|name| !name.is_empty()) {
                    self.want(template_scope, &Want::Sibling(name), &at);
                }
                if let Some(reference) = hook.get("templateRef") {
                    self.want(template_scope, &Want::Reference(reference), &below(&at, &["templateRef".into()]));
                }
            }
            if let Some(inline) = call.get("inline") {
                self.template(template_scope, inline, &below(&at, &["inline".into()]), fixed);
            }
        }
    }

    fn want(&mut self, template_scope: Option<&str>, want: &Want<'_>, at: &Path) {
        match want {
            // The manifest's own templates are scanned anyway.
            Want::Sibling(name) => {
                if let Some(reference) =
                    template_scope.and_then(|template_scope| reference(&format!("{template_scope}/{name}")))
                {
                    self.take(&reference, at);
                }
            }
            Want::Reference(value) => {
                let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
                let cluster_scope = value["clusterScope"] == true;
                let reference = TemplateRef { name: text("name"), template: text("template"), cluster_scope };
                if reference.template.is_empty() {
                    self.found.partial = true;
                    let message = format!("{at}.template is required");
                    self.found.problems.push(Problem::error(code::REQUIRED, message).path(at.clone()));
                    return;
                }
                self.take(&reference, at);
            }
        }
    }

    fn take(&mut self, wanted: &TemplateRef, at: &Path) {
        let reach = Reach::of(wanted.cluster_scope);
        if wanted.name.contains("{{") {
            // Any of them may be meant. An unreadable one is reported only if it turns out to be the one.
            let (others, namespace) = (self.others, self.namespace);
            let readable = |name: &String| {
                let object = others.template(reach, namespace, name)?;
                admit_template(&object).0.is_empty().then_some(())
            };
            for name in others.template_names(reach, namespace) {
                if readable(&name).is_some() {
                    self.take(&TemplateRef { name, template: "{{any}}".to_owned(), ..wanted.clone() }, at);
                }
            }
            return;
        }
        if self.found.stored.templates.contains_key(&key(wanted)) || self.load(reach, &wanted.name, at).is_none() {
            return;
        }
        let Some(loaded) = self.loaded.get(&(reach, wanted.name.clone())).and_then(Option::as_ref) else { return };
        let any = wanted.template.contains("{{");
        let named = |template: &Value| template["name"].as_str().unwrap_or_default().to_owned();
        let mut met = any;
        for (index, template) in loaded.templates().iter().enumerate() {
            let name = named(template);
            let key = key(&TemplateRef { template: name.clone(), ..wanted.clone() });
            if name.is_empty() || !any && name != wanted.template || self.found.stored.templates.contains_key(&key) {
                continue;
            }
            met = true;
            let path = Path::root().join("spec").join("templates").join(index);
            let wrong = loaded
                .problems
                .iter()
                .filter(|problem| problem.path.as_ref().is_some_and(|place| place.starts_with(&path)));
            self.found.problems.extend(wrong.map(|problem| relocated(problem, reach, &wanted.name, at)));
            let template_scope = scope_of(&key).unwrap_or_default().to_owned();
            self.found.places.insert(key.clone(), at.clone());
            self.found.stored.templates.insert(key, template.clone());
            self.queue.push_back((template_scope, template.clone(), at.clone()));
        }
        if !met && self.reported.insert((at.clone(), wanted.template.clone())) {
            let names: Vec<String> = loaded.templates().iter().map(named).collect();
            let shown = shape::short(&wanted.template);
            let message = format!("template name '{shown}' undefined in {} '{}'", reach.kind(), wanted.name);
            let mut problem = Problem::error(code::UNKNOWN_TEMPLATE, message).path(at.join("template"));
            problem.help = nearest(&wanted.template, names.iter().map(String::as_str))
                .map(|near| format!("did you mean `{near}`?"));
            self.found.partial = true;
            self.found.problems.push(problem);
        }
    }
}

/// Moves a problem of another object to the field that refers to it.
fn relocated(problem: &Problem, reach: Reach, name: &str, place: &Path) -> Problem {
    let at = problem.path.as_ref().map(|path| format!(" at {path}")).unwrap_or_default();
    let mut relocated = Problem::error(problem.code, format!("{} '{name}'{at}: {}", reach.kind(), problem.message));
    relocated.help.clone_from(&problem.help);
    relocated.path(place.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_says_where_a_template_stands() {
        let reference_of = TemplateRef { name: "x".into(), template: "t".into(), cluster_scope: true };
        assert_eq!(key(&reference_of), "cluster/x/t");
        assert_eq!(reference("cluster/x/t"), Some(reference_of));
        assert_eq!((scope_of("namespaced/x/t#0.1"), scope_of("t")), (Some("namespaced/x"), None));
        assert_eq!((bare("namespaced/x/t"), bare("t")), ("t", "t"));
        assert_eq!(sibling_key(Some("namespaced/x"), "u"), "namespaced/x/u");
        assert_eq!(sibling_key(None, "u"), "u");
    }
}
