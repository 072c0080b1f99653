//! The kinds there are: what they are called and how they are kept. A new kind is a row here.

use octoflow_model::taskset;

/// A kind of object.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    pub name: &'static str,
    pub plural: &'static str,
    pub singular: &'static str,
    pub short: &'static [&'static str],
    pub namespaced: bool,
    pub keeping: Keeping,
    /// Another name of the group, which paths and manifests may use as well. Nobody is told of it.
    pub alias: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// It runs: the engine has it, then the archive.
    Run,
    /// As it was given.
    Shelf,
    /// Nobody keeps it; it is another way to look at something else.
    View,
}

const ARGO: &str = "argoproj.io";

const fn argo(
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
) -> Kind {
    let (group, version, keeping) = (ARGO, "v1alpha1", Keeping::Shelf);
    Kind { group, version, name, plural, singular, short, namespaced: true, keeping, alias: None }
}

const fn core(
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    short: &'static [&'static str],
) -> Kind {
    let (group, version, keeping) = ("", "v1", Keeping::Shelf);
    Kind { group, version, name, plural, singular, short, namespaced: true, keeping, alias: None }
}

pub static KINDS: [Kind; 14] = [
    Kind { keeping: Keeping::Run, ..argo("Workflow", "workflows", "workflow", &["wf"]) },
    argo("WorkflowTemplate", "workflowtemplates", "workflowtemplate", &["wftmpl"]),
    Kind {
        namespaced: false,
        ..argo(
            "ClusterWorkflowTemplate",
            "clusterworkflowtemplates",
            "clusterworkflowtemplate",
            &["clusterwftmpl", "cwft"],
        )
    },
    argo("CronWorkflow", "cronworkflows", "cronworkflow", &["cwf", "cronwf"]),
    argo("WorkflowEventBinding", "workfloweventbindings", "workfloweventbinding", &["wfeb"]),
    Kind {
        group: taskset::GROUP,
        keeping: Keeping::Run,
        alias: Some(taskset::GROUP_ALIAS),
        ..argo(taskset::KIND, "tasksets", "taskset", &["ts"])
    },
    Kind { group: "scheduling.incubator.k8s.io", ..argo("PodGroup", "podgroups", "podgroup", &[]) },
    core("ConfigMap", "configmaps", "configmap", &["cm"]),
    core("Secret", "secrets", "secret", &[]),
    core("PersistentVolumeClaim", "persistentvolumeclaims", "persistentvolumeclaim", &["pvc"]),
    Kind { namespaced: false, ..core("Namespace", "namespaces", "namespace", &["ns"]) },
    Kind { keeping: Keeping::View, ..core("Pod", "pods", "pod", &["po"]) },
    Kind { keeping: Keeping::View, ..core("Event", "events", "event", &["ev"]) },
    Kind { namespaced: false, keeping: Keeping::View, ..core("Node", "nodes", "node", &["no"]) },
];

/// By the name of the kind, as manifests write it.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// By group and plural, as paths write it.
pub fn of_plural(group: &str, plural: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| (kind.group == group || kind.alias == Some(group)) && kind.plural == plural)
}

/// Those that run.
pub fn of_runs() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| kind.keeping == Keeping::Run)
}

/// By any of its names, as manifests and command lines write them: `ConfigMap`, `configmaps`, `cm`.
pub fn of_word(word: &str) -> Option<&'static Kind> {
    let bare = word.split('.').next().unwrap_or_default();
    KINDS.iter().find(|kind| {
        let names = [kind.name, kind.plural, kind.singular];
        names.iter().any(|name| name.eq_ignore_ascii_case(bare)) || kind.short.contains(&bare)
    })
}

impl Kind {
    /// `argoproj.io/v1alpha1`, or `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }

    /// What a manifest says in `apiVersion` means this kind's group.
    pub fn speaks(&self, api_version: &str) -> bool {
        let alias =
            |alias: &str| api_version.strip_prefix(alias).and_then(|rest| rest.strip_prefix('/')) == Some(self.version);
        api_version == self.api_version() || self.alias.is_some_and(alias)
    }

    /// What people call one of them in a sentence.
    pub fn word(&self) -> &'static str {
        if self.name == "Workflow" { "workflow" } else { self.name }
    }

    /// `workflows.argoproj.io`, or `configmaps`.
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.to_owned() } else { format!("{}.{}", self.plural, self.group) }
    }
}
