//! Dialects are named only in their own folders, in their rows and in tests. All other code asks the row of a kind, or
//! the run's trait: code that checks for one dialect forgets the next one. Each exception has a reason, and the list
//! may only become shorter: an unneeded exception is a problem too.

use super::Problem;
use super::source::{File, has_word};

const WHY: &str = "a question to the row of a kind (engine::kinds) or to the run's trait is answered by every dialect";

/// Module paths, types and kinds that belong to one dialect.
const NAMES: &[&str] = &[
    "argo::",
    "kubejob::",
    "taskset::",
    "volcano::",
    "jobflow::",
    "WorkflowFact",
    "SetFact",
    "JobFact",
    "KubeJobFact",
    "FlowFact",
    "WalkFact",
    "Fact::Workflow",
    "Fact::TaskSet",
    "Fact::VolcanoJob",
    "Fact::KubeJob",
    "Fact::JobFlow",
    "Fact::SubmittedJob",
    "\"Workflow\"",
    "\"WorkflowTemplate\"",
    "\"ClusterWorkflowTemplate\"",
    "\"CronWorkflow\"",
    "\"WorkflowEventBinding\"",
    "\"TaskSet\"",
    "\"PodGroup\"",
    "\"Job\"",
    "\"CronJob\"",
    "\"JobFlow\"",
    "\"JobTemplate\"",
    "\"SubmittedJob\"",
    "argoproj.io",
    "batch.volcano.sh",
    "flow.volcano.sh",
    "octopus.openi.pcl.cn",
];

/// Folders of the dialects, and where their rows and facts are gathered.
const HOMES: &[&str] = &[
    "crates/engine/src/dialects/argo",
    "crates/engine/src/dialects/kubejob",
    "crates/engine/src/dialects/taskset",
    "crates/engine/src/dialects/volcano",
    "crates/engine/src/dialects/jobflow",
    "crates/engine/src/dialects/submission",
    "crates/engine/src/kinds",
    "crates/engine/src/dialects/dialect.rs",
    "crates/engine/src/lib.rs",
    "crates/model/src/argo",
    "crates/model/src/kubejob",
    "crates/model/src/taskset",
    "crates/model/src/volcano",
    "crates/model/src/jobflow",
    "crates/model/src/plugin",
    "crates/model/src/fact",
    "crates/model/src/lib.rs",
    // Argo's API belongs to one dialect by definition.
    "crates/server/src/faces/argo",
    // The testkit simulates, checks and measures each dialect, and is not shipped.
    "crates/testkit/",
    "xtask/",
];

/// Files below these paths may name a dialect, for this reason.
struct Exception {
    why: &'static str,
    places: &'static [&'static str],
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        why: "what a translator of the submission pipeline makes is a TaskSet, by the contract of the pipeline",
        places: &[
            "crates/engine/src/plugins/builtin/kubeflow.rs",
            "crates/octoflow/src/commands/pipeline/trial.rs",
            "crates/server/src/faces/submission/job",
        ],
    },
    Exception {
        why: "the controllers of schedules, events and memoization caches are Argo's own",
        places: &[
            "crates/control/src/event_loop/cache.rs",
            "crates/control/src/registry/events.rs",
            "crates/engine/src/cron",
            "crates/octoflow/src/commands.rs",
            "crates/octoflow/src/commands/cron.rs",
            "crates/octoflow/src/commands/stored/columns.rs",
        ],
    },
    Exception {
        why: "resource templates, which are Argo's, act on objects, and their words are read here",
        places: &["crates/control/src/objects", "crates/control/src/registry.rs"],
    },
    Exception {
        why: "artifacts, their garbage and estimates by earlier runs are only known of workflows so far",
        places: &[
            "crates/control/src/maintenance/expire/retention.rs",
            "crates/control/src/objects/known.rs",
            "crates/control/src/registry/artifact.rs",
            "crates/control/src/maintenance/sweep.rs",
        ],
    },
    Exception {
        why: "labels and finalizers that Argo's tools select and set on runs of every kind",
        places: &[
            "crates/control/src/registry/fault.rs",
            "crates/control/src/registry/meta.rs",
            "crates/control/src/registry/view/wait.rs",
            "crates/model/src/run/mark.rs",
        ],
    },
    Exception {
        why: "kubectl sends these kinds as protobuf, whose fields have numbers",
        places: &["crates/server/src/faces/kube/wire/batch.rs"],
    },
    Exception {
        why: "limits, caches and the scope of templates still live in Argo's folder, and the results of a flow are part of a rerun",
        places: &["crates/engine/src/admit.rs", "crates/engine/src/engine.rs", "crates/model/src/run/previous.rs"],
    },
    Exception {
        why: "unused parts are only looked for in workflows",
        places: &["crates/octoflow/src/commands/lint.rs"],
    },
    Exception {
        why: "tests of logic are written about workflows, in their words",
        places: &["crates/octoflow/src/logic"],
    },
    Exception {
        why: "the server's other parts lead to Argo's API, and metrics have Argo's names",
        places: &[
            "crates/server/src/answer.rs",
            "crates/server/src/gate/area.rs",
            "crates/server/src/listen/expose.rs",
            "crates/server/src/gate.rs",
            "crates/server/src/faces/own/retry.rs",
            "crates/server/src/route.rs",
        ],
    },
];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut needed = vec![];
    for file in files.iter().filter(|file| file.is_rust() && !HOMES.iter().any(|home| file.is_under(home))) {
        let found: Vec<(usize, &str)> = named(file).collect();
        if found.is_empty() {
            continue;
        }
        let places: Vec<&str> = places().filter(|place| file.is_under(place)).collect();
        if places.is_empty() {
            let told = |(line, name): (usize, &str)| {
                Problem::new(&file.path, line, format!("`{}` names a dialect", name.trim_matches('"')), WHY)
            };
            problems.extend(found.into_iter().map(told));
        }
        needed.extend(places);
    }
    for exception in EXCEPTIONS {
        let there = |place: &&str| files.iter().any(|file| file.is_under(place));
        for place in exception.places.iter().copied().filter(there).filter(|place| !needed.contains(place)) {
            let what = format!("{place} names no dialect any more; it was excepted because {}", exception.why);
            let why = "take it off the list, so that the list only becomes shorter";
            problems.push(Problem::new("xtask/src/tidy/dialects.rs", 0, what, why));
        }
    }
    problems
}

fn places() -> impl Iterator<Item = &'static str> {
    EXCEPTIONS.iter().flat_map(|exception| exception.places).copied()
}

/// Returns the lines of production code that name a dialect.
fn named(file: &File) -> impl Iterator<Item = (usize, &str)> {
    file.production().into_iter().filter_map(|(number, line)| {
        let name = NAMES.iter().find(|name| has_word(line, name))?;
        Some((number, *name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &str, text: &str) -> usize {
        check(&[File::new(path, text)]).iter().filter(|problem| problem.path == path).count()
    }

    #[test]
    fn every_name_of_a_dialect_is_found_outside_its_folders() {
        for name in NAMES {
            let text = format!("fn a() {{\n    b({name}Run);\n    c({name});\n}}\n");
            assert!(count("crates/control/src/some.rs", &text) > 0, "{name}");
            assert_eq!(count("crates/engine/src/dialects/argo/some.rs", &text), 0, "{name}");
            assert_eq!(count("crates/control/tests/it/some.rs", &text), 0, "{name}");
        }
        assert_eq!(count("crates/control/src/some.rs", "use octoflow_engine::{\n    argo::again,\n};\n"), 1);
    }

    #[test]
    fn every_exception_says_why() {
        for exception in EXCEPTIONS {
            assert!(exception.why.len() > 20 && !exception.places.is_empty(), "{:?}", exception.places);
        }
    }

    #[test]
    fn an_exception_that_is_not_needed_is_told() {
        let place = EXCEPTIONS[0].places[0];
        let file = File::new(&format!("{}/x.rs", place.trim_end_matches(".rs").trim_end_matches('/')), "fn a() {}\n");
        let file = if place.ends_with(".rs") { File::new(place, "fn a() {}\n") } else { file };
        assert!(check(&[file]).iter().any(|problem| problem.what.contains("any more")));
    }
}
