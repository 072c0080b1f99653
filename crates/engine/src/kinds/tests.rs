//! The table has one row for everything it can be asked for, and refuses what other groups call the same.

use std::collections::HashSet;

use octoflow_model::Time;
use serde_json::json;

use super::*;

#[test]
fn no_two_kinds_can_be_mistaken_for_each_other() {
    let (mut names, mut plurals, mut keys) = (HashSet::new(), HashSet::new(), HashSet::new());
    for kind in all() {
        let own = kind.alternate_of.is_none_or(|main| main.key != kind.key);
        assert!(!own || keys.insert(kind.key), "two kinds are kept as {}", kind.key);
        for group in kind.aliases.iter().chain([&kind.group]) {
            assert!(names.insert((group, kind.name)), "two kinds {} in {group}", kind.name);
            assert!(plurals.insert((group, kind.plural)), "two paths {} in {group}", kind.plural);
        }
        for word in [kind.word, kind.prefix()].into_iter().filter(|_| kind.alternate_of.is_none()) {
            assert_eq!(of_word(word), Some(kind), "{word}");
        }
    }
}

#[test]
fn every_row_is_whole() {
    for kind in all() {
        assert!(!kind.plural.is_empty() && !kind.singular.is_empty() && !kind.schema_prefix.is_empty(), "{kind:?}");
        assert_eq!(kind.plural, kind.plural.to_lowercase(), "{kind:?}");
        let cells = (kind.cells)(&json!({"metadata": {"name": "a"}}), Time(0));
        assert_eq!(cells.len(), kind.columns.len(), "{kind:?}");
        if let Some(dialect) = kind.dialect() {
            assert_eq!(dialect.kind, kind.alternate_of.unwrap_or(kind));
            assert!(kind.shape.is_some(), "{kind:?}");
        }
    }
}

#[test]
fn kinds_are_found_by_group_and_name() {
    assert_eq!(find("argoproj.io", "Workflow"), Some(&argo::WORKFLOW));
    assert_eq!(find("batch", "Workflow"), None);
    assert_eq!(find("", "ConfigMap"), Some(&core::CONFIG_MAP));
    assert_eq!(find("scheduling.volcano.sh", "PodGroup"), Some(&scheduling::POD_GROUP));
    assert_eq!(find("scheduling.incubator.k8s.io", "PodGroup"), Some(&scheduling::INCUBATOR_POD_GROUP));
    assert_eq!(of_key("PodGroup"), Some(&scheduling::POD_GROUP));
    assert_eq!(of_word("q"), Some(&scheduling::QUEUE));
    assert_eq!(of_plural("tasksets.octopus.openi.pcl.cn", "tasksets"), Some(&taskset::TASK_SET));
    assert_eq!(of_word("ts"), Some(&taskset::TASK_SET));
    assert_eq!(of_word("vcjob"), Some(&volcano::JOB));
    assert_eq!(of_word("jobs.batch.volcano.sh"), Some(&volcano::JOB));
    assert_eq!(find("batch", "Job"), Some(&kubejob::JOB));
    assert_eq!(of_word("job"), Some(&kubejob::JOB), "what Kubernetes has itself comes first");
    assert_eq!(of_key("VolcanoJob"), Some(&volcano::JOB));
    for word in ["Job.batch.volcano.sh", "JOBS.batch.volcano.sh", "VJ", "batch.volcano.sh/v1alpha1/Job"] {
        assert_eq!(of_word(word), Some(&volcano::JOB), "{word}");
    }
    for word in ["Job.batch", "batch/v1/Job", "batch/v1/jobs"] {
        assert_eq!(of_word(word), Some(&kubejob::JOB), "{word}");
    }
    for word in ["batch/v2/Job", "batch/Job", "v1/Job", "Job.flow.volcano.sh", "/", "."] {
        assert_eq!(of_word(word), None, "{word}");
    }
    assert_eq!(of_word("v1/ConfigMap"), Some(&core::CONFIG_MAP));
    assert_eq!((volcano::JOB.prefix(), kubejob::JOB.prefix(), argo::WORKFLOW.prefix()), ("vcjob", "job", "workflow"));
    assert_eq!(of_word("workflows.argoproj.io"), Some(&argo::WORKFLOW));
    assert_eq!(of_word("workflows.example.com"), None);
    assert!(
        argo::WORKFLOW.accepts_api_version("argoproj.io/v1alpha1")
            && !argo::WORKFLOW.accepts_api_version("argoproj.io/v1")
    );
    assert!(core::POD.accepts_api_version("v1") && !core::POD.accepts_api_version("metrics.k8s.io/v1"));
}

#[test]
fn what_other_groups_call_the_same_is_refused_by_name() {
    let refused = |version: &str, kind: &str| {
        let problem = of_manifest(&json!({"apiVersion": version, "kind": kind})).unwrap_err();
        (problem.path.unwrap().to_string(), problem.message, problem.help.unwrap_or_default())
    };
    let (at, message, help) = refused("batch.example.com/v1", "Job");
    assert_eq!(
        (at.as_str(), message.as_str()),
        ("apiVersion", "apiVersion `batch.example.com/v1` is not known for kind Job")
    );
    assert_eq!(help, "write `apiVersion: batch/v1` or `apiVersion: batch.volcano.sh/v1alpha1`");
    let (at, message, help) = refused("apps/v1", "Deployment");
    assert_eq!((at.as_str(), message.as_str()), ("kind", "kind `Deployment` of group `apps` is not known here"));
    assert!(help.contains("Workflow"), "{help}");
    assert_eq!(refused("batch.volcano.sh/v1alpha1", "CronJob").1, "kind CronJob is not supported yet");
    assert_eq!(refused("topology.volcano.sh/v1alpha1", "HyperNode").1, "kind HyperNode is not supported yet");
    let (at, message, help) = refused("scheduling.x-k8s.io/v1alpha1", "PodGroup");
    assert_eq!(at, "apiVersion");
    assert_eq!(message, "apiVersion `scheduling.x-k8s.io/v1alpha1` is not known for kind PodGroup");
    let (volcano, older) = ("scheduling.volcano.sh/v1beta1", "scheduling.incubator.k8s.io/v1alpha1");
    assert_eq!(help, format!("write `apiVersion: {volcano}` or `apiVersion: {older}`"));
    let (at, _, help) = refused("example.com/v1", "Workflow");
    assert_eq!((at.as_str(), help.as_str()), ("apiVersion", "write `apiVersion: argoproj.io/v1alpha1`"));
    assert_eq!(refused("argoproj.io/v1alpha1", "WorkflowTaskSet").1, "kind WorkflowTaskSet is not supported yet");
}

#[test]
fn only_what_runs_has_a_dialect() {
    let of = |version: &str, kind: &str| dialect_of(&json!({"apiVersion": version, "kind": kind}));
    assert_eq!(of("argoproj.io/v1alpha1", "Workflow").unwrap().kind, &argo::WORKFLOW);
    assert_eq!(of("", "TaskSet").unwrap().kind, &taskset::TASK_SET);
    assert!(of("argoproj.io/v1alpha1", "CronWorkflow").unwrap_err().message.contains("on its schedule"));
    assert!(of("v1", "ConfigMap").unwrap_err().message.contains("does not run"));
    assert!(of("", "").unwrap_err().message.contains("kind is required"));
}
