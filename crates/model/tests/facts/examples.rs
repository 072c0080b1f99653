//! One example of every fact with every field set to something else than its default.
//! Fields are written out, never taken from a default, so that a new field does not compile until it is here.

use std::collections::BTreeMap;

use octoflow_model::{
    AttemptId, Claim, Fact, Limit, MutableMetadata, NodeIx, RunFact, RunId, RunPhase, Shutdown, Time,
    argo::{
        ArtifactLocation, ArtifactValue, InputArtifactValue, InputValues, Items, NodeAdded, NodeFinished, NodeKind,
        NodeList, NumberRange, OutputArtifactValue, OutputValues, Phase, Role, WorkflowFact, location::S3Location,
    },
    jobflow::{CompletedJob, EntryResult, FlowFact, FormerJob, JobEnd},
    mark::Ownership,
    meter::{Metered, Reading},
    order::Fetched,
    previous::{CacheLookup, NodeResult, PreviousRun},
    submission::{EarlierDurations, GroupDetails, KeyPair, Stored, Submission, SubmitContext},
    task::{Archive, Labels, StoredArtifact, placement::Assignment},
    taskset::{
        SetFact, StopReason,
        fact::{PodEnd, Terminated},
    },
    volcano::{self, Action, DelayedAction, Event, JobFact, JobPhase, PodOutcome, PodStop},
};
use serde_json::json;

pub(crate) const AT: Time = Time(1_790_000_000_000_001);
pub(crate) const LATER: Time = Time(1_790_000_100_000_002);
const NODE: NodeIx = NodeIx(3);

/// One value of every variant of an enum; one that is left out does not compile.
macro_rules! every {
    ($kind:ident: $($variant:ident $(($inner:expr))? $({$($field:ident: $value:expr),*})?),* $(,)?) => {{
        let named = |value: &$kind| match value { $($kind::$variant { .. } => ()),* };
        let all = vec![$($kind::$variant $(($inner))? $({$($field: $value),*})?),*];
        all.iter().for_each(named);
        all
    }};
}
pub(crate) use every;

/// Facts that show every value of the enums inside of facts. Each has a line of its own.
pub(crate) fn variants() -> Vec<Fact> {
    let mut facts = Vec::new();
    let added = |kind, role, phase| {
        Fact::Workflow(WorkflowFact::Added(Box::new(NodeAdded {
            kind,
            role,
            phase,
            parent: None,
            boundary: None,
            after: NodeList::default(),
            template: None,
            message: String::new(),
            inputs: InputValues::default(),
            followed: false,
            wake: None,
            barred: false,
            hooked: false,
            display: None,
            reused: false,
            name: text("run"),
            at: AT,
        })))
    };
    let roles = every!(Role:
        Entry, Exit, Group(1), Step { step: 1, item: None }, Task(1), Item(1), Attempt(1), Hook(text("exit")), Container(1),
        RunHook(text("running")));
    facts.extend(roles.into_iter().map(|role| added(NodeKind::Pod, role, Phase::Pending)));
    let kinds = every!(NodeKind: Pod, Steps, StepGroup, Dag, TaskGroup, Retry, Skipped, Suspend, Container, Http);
    facts.extend(kinds.into_iter().map(|kind| added(kind, Role::Entry, Phase::Running)));
    let phases = every!(Phase: Pending, Running, Succeeded, Skipped, Failed, Error, Omitted);
    facts.extend(phases.into_iter().map(|phase| added(NodeKind::Pod, Role::Entry, phase)));
    let phases = every!(RunPhase: Pending, Running, Succeeded, Failed, Error);
    facts.extend(phases.into_iter().map(|phase| Fact::Run(RunFact::Ended { phase, message: String::new(), at: AT })));
    let ways = every!(Shutdown: Stop, Terminate);
    facts.extend(ways.into_iter().map(|how| Fact::Run(RunFact::ShuttingDown { how, at: AT })));
    let limits = every!(Limit: One, Key { namespace: text("n"), map: text("m"), key: text("k"), otherwise: None });
    let wanted = |limit| {
        Fact::Workflow(WorkflowFact::Wanted {
            node: None,
            locks: vec![Claim { key: text("l"), limit, database: false }],
        })
    };
    facts.extend(limits.into_iter().map(wanted));
    let readings = every!(Reading:
        Count(1.0), Set(-2.5), Shift(3.0), Observe { value: 1.0, buckets: Vec::new() }, Follow);
    let metered = |reading| Metered { node: None, name: text("m"), help: text("h"), labels: Vec::new(), reading };
    facts.extend(readings.into_iter().map(|reading| Fact::Workflow(WorkflowFact::Metered(Box::new(metered(reading))))));
    let archives = every!(Archive: None, Tar { level: Some(9) }, Zip);
    facts.extend(archives.into_iter().map(|archive| {
        let artifact =
            StoredArtifact { archive, digest: text("sha256:00"), size: 7, key: text("k"), noted: None, deleted: false };
        Fact::Workflow(WorkflowFact::Exported {
            parameter: None,
            artifact: Some(OutputArtifactValue { name: text("out"), path: None, artifact }),
        })
    }));
    let reasons = every!(StopReason: Cleaning, Deleted, Evicted, Deadline, Preempted);
    let ending = |why| Fact::TaskSet(SetFact::Ending { replica: 0, at: AT, why, message: String::new() });
    facts.extend(reasons.into_iter().map(ending));
    facts.extend(values_of_jobs());
    facts.extend(super::kubejob::values());
    facts.extend(super::submitted::values());
    for end in every!(JobEnd: Completed, Failed, Terminated, Deleted, Refused, Stopped) {
        let message = String::new();
        facts.push(Fact::JobFlow(FlowFact::Ended { entry: 0, at: AT, end, message, again: None }));
    }
    facts
}

pub(crate) fn all() -> Vec<Fact> {
    let mut facts = of_runs();
    facts.extend(of_nodes());
    facts.extend(of_task_sets().into_iter().map(Fact::TaskSet));
    facts.extend(of_jobs().into_iter().map(Fact::VolcanoJob));
    facts.extend(super::kubejob::all());
    facts.extend(super::submitted::all());
    facts.extend(of_flows().into_iter().map(Fact::JobFlow));
    facts
}

pub(crate) fn text(text: &str) -> String {
    text.to_owned()
}

fn labels(key: &str, value: &str) -> Labels {
    [(text(key), text(value))].into()
}

fn pairs(name: &str, value: &str) -> Vec<(String, String)> {
    vec![(text(name), text(value))]
}

fn of_runs() -> Vec<Fact> {
    vec![
        Fact::Run(RunFact::Submitted(Box::new(submission()))),
        Fact::Workflow(WorkflowFact::Began {
            at: AT,
            parameters: pairs("word", "hello"),
            labels: labels("team", "data"),
            annotations: labels("note", "why"),
        }),
        Fact::Workflow(WorkflowFact::Exported {
            parameter: Some((text("answer"), text("42"))),
            artifact: Some(OutputArtifactValue {
                name: text("out"),
                path: Some(text("/tmp/out")),
                artifact: artifact(),
            }),
        }),
        Fact::Workflow(WorkflowFact::Metered(Box::new(Metered {
            node: Some(NODE),
            name: text("seconds"),
            help: text("how long"),
            labels: pairs("step", "a"),
            reading: Reading::Observe { value: 1.5, buckets: vec![1.0, 2.5] },
        }))),
        Fact::Workflow(WorkflowFact::Unmetered { message: text("no number") }),
        Fact::Run(RunFact::Suspended { at: AT }),
        Fact::Run(RunFact::Resumed { at: AT }),
        Fact::Run(RunFact::ShuttingDown { how: Shutdown::Terminate, at: AT }),
        Fact::Run(RunFact::DeadlinePassed { at: AT }),
        Fact::Run(RunFact::Marked { at: AT, marks: Box::new(marks()) }),
        Fact::Run(RunFact::Ended { phase: RunPhase::Failed, message: text("child failed"), at: AT }),
        Fact::Run(RunFact::Deadlock { at: AT, message: Some(text("a waits for b")) }),
    ]
}

fn of_nodes() -> Vec<Fact> {
    let node = NODE;
    vec![
        Fact::Workflow(WorkflowFact::Added(Box::new(NodeAdded {
            name: text("run.a(0)"),
            kind: NodeKind::Pod,
            role: Role::Step { step: 1, item: Some(0) },
            parent: Some(NodeIx(1)),
            boundary: Some(NodeIx(0)),
            after: [2].into_iter().chain(5..105).map(NodeIx).collect(),
            template: Some(text("main")),
            phase: Phase::Pending,
            message: text("waits"),
            at: AT,
            inputs: inputs(),
            followed: true,
            wake: Some(LATER),
            barred: true,
            hooked: true,
            display: Some(text("a")),
            reused: true,
        }))),
        Fact::Workflow(WorkflowFact::Wanted { node: Some(node), locks: vec![claim()] }),
        Fact::Workflow(WorkflowFact::Waiting {
            node: Some(node),
            at: AT,
            lock: text("default/ConfigMap/limits/places"),
            holders: vec![text("default/other")],
            message: text("Waiting for it"),
        }),
        Fact::Workflow(WorkflowFact::Locked { node: Some(node), at: AT, wake: Some(LATER) }),
        Fact::Workflow(WorkflowFact::Expanded { node, call: 1, items: range() }),
        Fact::Workflow(WorkflowFact::Launched {
            node,
            at: AT,
            deadline: Some(LATER),
            on: Some(Box::new(assignment())),
        }),
        Fact::Workflow(WorkflowFact::Preempted { node, at: AT, message: text("makes room") }),
        Fact::Workflow(WorkflowFact::Requeued { node, at: AT, attempt: 1, wake: Some(LATER), log_bytes: 99 }),
        Fact::Workflow(WorkflowFact::Started { node, at: AT }),
        Fact::Workflow(WorkflowFact::ChildCreated {
            node,
            at: AT,
            run: RunId(7),
            name: text("child"),
            uid: text("u-7"),
        }),
        Fact::Workflow(WorkflowFact::Progressed { node, done: 1, total: 2 }),
        Fact::Workflow(WorkflowFact::Daemoned { node }),
        Fact::Workflow(WorkflowFact::Dismissed { node }),
        Fact::Workflow(WorkflowFact::Stopping { node, message: text("terminated") }),
        Fact::Workflow(WorkflowFact::Backoff { node, at: AT, until: LATER, message: text("Backoff for 1m") }),
        Fact::Workflow(WorkflowFact::Supplied { node, parameters: pairs("answer", "yes"), message: text("by hand") }),
        Fact::Workflow(WorkflowFact::Finished(Box::new(NodeFinished {
            node,
            phase: Phase::Error,
            message: text("it was lost"),
            at: AT,
            outputs: outputs(),
            outbound: (4..94).step_by(3).map(NodeIx).collect(),
            log_bytes: 99,
        }))),
        Fact::Workflow(WorkflowFact::Settled { node }),
        Fact::Workflow(WorkflowFact::Due { node: Some(node), hook: text("running") }),
        Fact::Workflow(WorkflowFact::Recalled { node, cache: text("results"), key: text("first"), hit: true }),
        Fact::Workflow(WorkflowFact::Memoized {
            node,
            at: AT,
            cache: text("results"),
            key: text("first"),
            outputs: outputs(),
        }),
        Fact::Workflow(WorkflowFact::Expired { node, at: AT }),
    ]
}

fn of_task_sets() -> Vec<SetFact> {
    let replica = 2;
    vec![
        SetFact::Began { attempt: 1, at: AT, unit: text("unit-1") },
        SetFact::Queued { first: 0, count: 3, at: AT },
        SetFact::Launched { replica, at: AT, deadline: Some(LATER), on: Some(Box::new(assignment())) },
        SetFact::Started { replica, at: AT },
        SetFact::Ending { replica, at: AT, why: StopReason::Evicted, message: text("makes room") },
        SetFact::Ended(Box::new(PodEnd {
            replica,
            at: LATER,
            started: Some(AT),
            terminated: Some(Terminated { exit_code: 137, message: text("killed"), signal: 9, reason: text("Error") }),
            reason: text("Evicted"),
            outcome: Some(false),
            again: Some(LATER),
            log_bytes: 99,
            message: text("once more"),
            requeued: true,
        })),
        SetFact::Again { replica, at: AT },
        SetFact::Dropped { replica, at: AT },
        SetFact::RoleJudged { role: 1, at: AT, succeeded: true, message: text("2 succeeded") },
        SetFact::RoleOver { role: 1, at: AT },
        SetFact::Judged { at: AT, succeeded: false, message: text("worker failed"), last: true },
        SetFact::Over { attempt: 1, at: AT, next: Some(LATER), message: text("later") },
    ]
}

fn of_jobs() -> Vec<JobFact> {
    let pod = 2;
    vec![
        JobFact::Entered {
            phase: JobPhase::Restarting,
            at: AT,
            retries: 1,
            version: 2,
            reason: text("PodFailed"),
            message: text("RestartJob: PodFailed of worker-1"),
        },
        JobFact::Created { first: 0, count: 3, at: AT },
        JobFact::Launched { pod, at: AT, deadline: Some(LATER), on: Some(Box::new(assignment())) },
        JobFact::Started { pod, at: AT },
        JobFact::Ending { pod, at: AT, why: PodStop::Preempted, message: text("makes room") },
        JobFact::Ended(Box::new(volcano::PodEnd {
            pod,
            at: LATER,
            outcome: PodOutcome::Restarted,
            started: Some(AT),
            terminated: Some(Terminated { exit_code: 137, message: text("killed"), signal: 9, reason: text("Error") }),
            reason: text("Evicted"),
            again: Some(LATER),
            log_bytes: 99,
        })),
        JobFact::Removed { first: 0, count: 3, at: AT },
        JobFact::Delayed(Box::new(DelayedAction {
            pod,
            at: AT,
            due: LATER,
            event: Event::PodEvicted,
            action: Action::RestartJob,
        })),
        JobFact::DelayEnded { pod, at: AT, called_off: true },
        JobFact::Ready { pod, at: AT, ready: true },
        JobFact::Resized(Box::new(volcano::Sizes {
            at: AT,
            min_available: 3,
            class: Some(text("high")),
            tasks: vec![volcano::TaskSize { replicas: 4, min_available: 2 }],
        })),
        JobFact::Awaits { at: AT, claims: vec![text("data")] },
        JobFact::Left {
            at: AT,
            work: vec![
                volcano::LeftWork::Kill(volcano::KillWork {
                    pods: vec![(4, 2)],
                    keep_finished: true,
                    why: text("TerminateJob"),
                    calls_off: Some(Action::TerminateJob),
                }),
                volcano::LeftWork::Pending { pods: vec![(0, 9)] },
            ],
        },
    ]
}

fn of_flows() -> Vec<FlowFact> {
    let entry = 2;
    vec![
        FlowFact::Wanted { entry, at: AT },
        FlowFact::Held { entry, at: AT, why: text("JobTemplate 'c' is missing") },
        FlowFact::Made { entry, at: AT, run: RunId(9), name: text("test-c"), uid: text("8f3c") },
        FlowFact::Observed {
            entry,
            at: AT,
            phase: JobPhase::Running,
            restarts: 1,
            tasks: [(text("server"), [(text("Running"), 2)].into())].into(),
            changes: 3,
        },
        FlowFact::Probing { entry, condition: 1, at: AT, addresses: vec![text("127.1.2.3:80")] },
        FlowFact::ConditionMet { entry, condition: 1, at: AT },
        FlowFact::Ended { entry, at: AT, end: JobEnd::Failed, message: text("exit code 3"), again: Some(LATER) },
        FlowFact::Removing { at: AT },
        FlowFact::Removed { at: AT, message: text("'test-a' runs again") },
    ]
}

/// Every value of the small enums in facts of jobs.
fn values_of_jobs() -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut add = |fact: JobFact| facts.push(Fact::VolcanoJob(fact));
    let phases = every!(JobPhase:
        Pending, Running, Restarting, Aborting, Aborted, Completing, Terminating, Completed, Failed, Terminated);
    for phase in phases {
        let (reason, message) = (String::new(), String::new());
        add(JobFact::Entered { phase, at: AT, retries: 0, version: 0, reason, message });
    }
    for why in every!(PodStop: Killed, Deleted, Evicted, Deadline, Preempted) {
        add(JobFact::Ending { pod: 0, at: AT, why, message: String::new() });
    }
    for outcome in every!(PodOutcome: Succeeded, Failed, Gone, Restarted) {
        add(JobFact::Ended(Box::new(volcano::PodEnd {
            pod: 0,
            at: AT,
            outcome,
            started: None,
            terminated: None,
            reason: String::new(),
            again: None,
            log_bytes: 0,
        })));
    }
    let events = every!(Event: PodFailed, PodEvicted, PodPending, Unknown, TaskCompleted, TaskFailed, JobUpdated, Any);
    let actions = every!(Action:
        AbortJob, RestartJob, RestartTask, RestartPod, RestartPartition, TerminateJob, CompleteJob, ResumeJob);
    for (event, action) in events.into_iter().zip(actions) {
        add(JobFact::Delayed(Box::new(DelayedAction { pod: 0, at: AT, due: LATER, event, action })));
    }
    facts
}

fn submission() -> Submission {
    Submission {
        name: text("run"),
        namespace: text("default"),
        uid: text("4f6e8a52-0000-4000-8000-000000000001"),
        at: AT,
        manifest: json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "spec": {"entrypoint": "main"}}),
        stored: Stored {
            templates: BTreeMap::from([(text("namespaced/shared/main"), json!({"name": "main"}))]),
            spec: Some(json!({"entrypoint": "main"})),
            groups: BTreeMap::from([(text("gang"), 2)]),
            group_details: BTreeMap::from([(text("gang"), group_details())]),
            flaw: Some(text("a template is missing")),
        },
        parent: Some(RunId(6)),
        ordered_by: Some(AttemptId { run: RunId(6), task: NodeIx(3), attempt: 0 }),
        context: SubmitContext {
            host: Some(text("worker")),
            earlier: Some(Box::new(EarlierDurations { run: 5, nodes: BTreeMap::from([(text(".a"), 3)]) })),
            skew: -250_000,
            queue: Some(text("research")),
            submitted_by: Some(text("ada")),
            written_by: Some(text("admin")),
            quiet: true,
            keys: Some(Box::new(KeyPair { private: text("secret"), public: text("shown") })),
        },
        previous: Some(Box::new(PreviousRun {
            runs: vec![RunId(4)],
            results: BTreeMap::from([(
                text(".a"),
                NodeResult {
                    kind: NodeKind::Pod,
                    phase: Phase::Succeeded,
                    message: text("fine"),
                    started: AT,
                    finished: LATER,
                    ran: true,
                    skipped: true,
                    host: Some(text("worker")),
                    attempt: Some(AttemptId { run: RunId(4), task: NODE, attempt: 1 }),
                    outputs: outputs(),
                    progress: Some((1, 2)),
                    memo: Some(CacheLookup { cache: text("results"), key: text("first"), hit: true }),
                },
            )]),
            entries: BTreeMap::from([(
                text("a"),
                EntryResult {
                    tries: 2,
                    restarts: 1,
                    job: Some(CompletedJob {
                        name: text("test-a"),
                        uid: text("8f3c"),
                        tasks: [(text("server"), [(text("Succeeded"), 2)].into())].into(),
                    }),
                    history: vec![(JobPhase::Pending, AT), (JobPhase::Completed, LATER)],
                    started: Some(AT),
                    ended: Some(LATER),
                    met: [1].into(),
                    former: vec![FormerJob {
                        name: text("test-a"),
                        uid: text("8f3b"),
                        made: Some(AT),
                        ended: Some(LATER),
                        message: text("it failed"),
                    }],
                },
            )]),
        })),
    }
}

fn group_details() -> GroupDetails {
    GroupDetails {
        queue: Some(text("research")),
        class: Some(text("urgent")),
        least_of: BTreeMap::from([(text("worker"), 2)]),
        resources: BTreeMap::from([(text("cpu"), text("500m"))]),
    }
}

pub(crate) fn assignment() -> Assignment {
    Assignment { node: text("worker"), devices: BTreeMap::from([(text("nvidia.com/gpu"), vec![0, 2])]) }
}

fn marks() -> MutableMetadata {
    MutableMetadata {
        labels: labels("team", "data"),
        annotations: labels("note", "why"),
        ownership: Ownership {
            finalizers: vec![text("example.org/keep")],
            owners: vec![json!({"uid": "u"})],
            managers: vec![json!({"manager": "kubectl"})],
            deleted: Some(AT),
        },
    }
}

fn claim() -> Claim {
    let limit = Limit::Key { namespace: text("default"), map: text("limits"), key: text("places"), otherwise: Some(1) };
    Claim { key: text("default/ConfigMap/limits/places"), limit, database: true }
}

fn artifact() -> StoredArtifact {
    StoredArtifact {
        digest: text("sha256:00"),
        size: 7,
        archive: Archive::None,
        key: text("run/run-a/out"),
        noted: Some(json!({"s3": {"key": "run/run-a/out"}})),
        deleted: true,
    }
}

fn inputs() -> InputValues {
    let input = |source| InputArtifactValue { name: text("in"), path: Some(text("/tmp/in")), source };
    let at = ArtifactLocation {
        s3: Some(S3Location { key: Some(text("k")), ..S3Location::default() }),
        ..ArtifactLocation::default()
    };
    let sources = every!(ArtifactValue:
        Raw(text("text")),
        Stored { artifact: artifact(), sub_path: Some(text("part")) },
        Located { at: Box::new(at), sub_path: Some(text("part")), optional: true },
        Absent);
    InputValues { parameters: pairs("n", "1"), artifacts: sources.into_iter().map(input).collect() }
}

fn outputs() -> OutputValues {
    OutputValues {
        parameters: pairs("size", "7"),
        artifacts: vec![OutputArtifactValue { name: text("out"), path: Some(text("/tmp/out")), artifact: artifact() }],
        result: Some(text("hello")),
        exit_code: Some(text("0")),
        fetched: vec![(text("in"), Fetched { digest: text("git:00"), size: 7 })],
    }
}

fn range() -> Items {
    Items::Range(NumberRange { start: 9, count: 4, down: true, format: Some(text("%02d")) })
}
