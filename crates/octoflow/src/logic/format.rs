//! What a test file may say: the closed tables behind its checks, its schema and its documentation.
//! They describe; what the words do is in the files beside this one.

use octoflow_engine::shape::{ANY, BOOL, COUNT, Field, POSITIVE, SCALAR, Shape, TEXT, TEXTS};

use super::notation;

/// The name of the kind for `octoflow schema`.
pub(crate) const KIND: &str = "WorkflowTest";

pub(crate) static SUITE: Shape = Shape::Object(&[
    CASE_FIELDS,
    &[
        Field::yes("kind", &KIND_WORD, "What kind of file this is; it may be left out"),
        Field::yes("cases", &CASES, "What is tried, each with what it shares with the whole file put in"),
    ],
]);

static KIND_WORD: Shape = Shape::Word(&[KIND]);
static CASES: Shape = Shape::List(&CASE);
static CASE: Shape = Shape::Object(&[CASE_FIELDS]);

const CASE_FIELDS: &[Field] = &[
    Field::yes("name", &TEXT, "What the case shows, as a sentence"),
    Field::yes("covers", &TEXTS, "Numbers or names of what is shown, for reports"),
    Field::yes("skip", &TEXT, "Why the case is not tried for now"),
    Field::yes("file", &TEXT, "A manifest under test, relative to this file"),
    Field::yes("files", &TEXTS, "Manifests under test, relative to this file: workflows and what stands beside them"),
    Field::yes(
        "workflow",
        &ANY,
        "A Workflow under test; kind, apiVersion and the name `w` may be left out. Other kinds are in files and manifests",
    ),
    Field::yes(
        "manifests",
        &OBJECTS,
        "Objects under test exactly as they are: workflows, Jobs, JobFlows, templates, ConfigMaps …",
    ),
    Field::yes("runs", &RUNS, "Which workflows are run, when and with what; all of them at once unless it is said"),
    Field::yes("parameters", &VALUES, "Parameters of the workflow, as given with -p"),
    Field::yes("entrypoint", &TEXT, "The template to start at, as given with --entrypoint"),
    Field::yes("unchecked", &BOOL, "Submit even what admission refuses, to see what a run makes of it"),
    Field::yes("parallelism", &POSITIVE, "How many tasks may run at the same time; no limit unless it is said"),
    Field::yes("start", &MOMENT, "What the virtual clock shows at the beginning"),
    Field::yes("until", &SPAN, "When the case is over at the latest, in virtual time"),
    Field::yes("unstubbed", &UNSTUBBED, "What a task does that no stub is for: succeed at once, or fail the case"),
    Field::yes("stubs", &STUBS, "How tasks end and what they leave; the first that fits is used"),
    Field::yes("commands", &COMMANDS, "What people do while the workflow runs"),
    Field::yes("expect", &EXPECT, "What must come of it"),
];

static OBJECTS: Shape = Shape::List(&ANY);
static VALUES: Shape = Shape::Map(&ANY);
static SPAN: Shape = Shape::Like { noun: "a duration such as 90s or 1h30m", fits: notation::is_span };
static SPAN_BOUND: Shape =
    Shape::Like { noun: "a duration such as 90s, or a bound such as '<=1h'", fits: notation::is_span_bound };
static COUNT_BOUND: Shape =
    Shape::Like { noun: "a whole number, or a bound such as '<=3'", fits: notation::is_count_bound };
static MOMENT: Shape = Shape::Like { noun: "a time such as 2026-01-31T12:00:00Z", fits: notation::is_moment };
static PATTERN: Shape = Shape::Like { noun: "a regular expression", fits: notation::is_pattern };
static UNSTUBBED: Shape = Shape::Word(&["succeed", "error"]);

static RUNS: Shape = Shape::List(&RUN);
static RUN: Shape = Shape::Object(&[&[
    Field::yes("workflow", &TEXT, "The name of the workflow, or how it begins; needed where there are several"),
    Field::yes("as", &TEXT, "The name of the run"),
    Field::yes("at", &SPAN, "When it is submitted"),
    Field::yes("parameters", &VALUES, "Its parameters"),
    Field::yes("entrypoint", &TEXT, "The template to start at"),
]]);

static STUBS: Shape = Shape::List(&STUB);
static STUB: Shape = Shape::Object(&[
    &[
        Field::yes("template", &TEXT, "For tasks of this template, or task of a Job; `*` stands for anything"),
        Field::yes("node", &TEXT, "For tasks of this node, by full or display name; `*` stands for anything"),
        Field::yes("image", &TEXT, "For tasks with this image; `*` stands for anything"),
        Field::yes("run", &TEXT, "For tasks of this run only"),
        Field::yes("attempts", &ANSWERS, "What each attempt of a retried call does; the last one is repeated"),
        Field::yes(
            "calls",
            &ANSWERS,
            "What the first, second … task this stub is used for does; the last one is repeated",
        ),
    ],
    ANSWER_FIELDS,
]);
static ANSWERS: Shape = Shape::List(&ANSWER);
static ANSWER: Shape = Shape::Object(&[ANSWER_FIELDS]);
const ANSWER_FIELDS: &[Field] = &[
    Field::yes("exit", &EXIT_CODE, "It ends with this exit code; 0 unless it is said"),
    Field::yes("signal", &SIGNAL, "It is ended by this signal"),
    Field::yes("lost", &TEXT, "Nobody knows what became of it, for this reason"),
    Field::yes("notStarted", &TEXT, "It could not be started, for this reason"),
    Field::yes("broken", &TEXT, "Its surroundings failed, for this reason"),
    Field::yes("never", &BOOL, "It runs until it is told to end"),
    Field::yes("after", &SPAN, "How long it takes; no time unless it is said"),
    Field::yes("ready", &SPAN, "How long it runs until its readiness probes hold; they do at once unless it is said"),
    Field::yes("pending", &SPAN, "How long it takes until it runs"),
    Field::yes("result", &SCALAR, "What it writes as its result; may hold references such as {{inputs.parameters.x}}"),
    Field::yes("log", &LOG, "Lines it writes; they are its result unless that is said"),
    Field::yes("parameters", &VALUES, "Its output parameters; those it does not name are empty"),
    Field::yes("artifacts", &VALUES, "The text of its output artifacts; those it does not name are empty"),
    Field::yes("missing", &TEXTS, "Outputs it does not leave"),
    Field::yes(
        "containers",
        &CONTAINERS,
        "What its containers do, by name, when it has several; the others do as it does",
    ),
    Field::yes("http", &HTTP, "What is answered to an HTTP request; 200 and its result unless it is said"),
    Field::yes("object", &ANY, "The object as it is after what a resource template asked for"),
    Field::yes("keys", &TEXTS, "The keys a data template finds"),
    Field::yes("failed", &TEXT, "What was asked for is done, and a condition of the manifest finds it bad"),
    Field::yes("refused", &TEXT, "What was asked for cannot be done, for this reason"),
    Field::yes("progress", &PROGRESSES, "What it tells of its progress while it runs"),
    Field::yes(
        "stopped",
        &STOPPED,
        "What it does when it is told to end; it ends at once by signal 15 unless it is said",
    ),
];
static HTTP: Shape = Shape::Object(&[&[
    Field::yes("status", &HTTP_STATUS, "The status; 200 unless it is said"),
    Field::yes("headers", &SCALARS, "Headers by name"),
    Field::yes("body", &SCALAR, "The body"),
]]);
static HTTP_STATUS: Shape = Shape::Int { least: 100, most: 599 };
static SCALARS: Shape = Shape::Map(&SCALAR);
static CONTAINERS: Shape = Shape::Map(&STOPPED);
static PROGRESSES: Shape = Shape::List(&PROGRESS);
static PROGRESS: Shape = Shape::Object(&[&[
    Field::yes("after", &SPAN, "How long after the task began to run"),
    Field::yes("is", &PROGRESS_TEXT, "How far it is then, such as 50/100"),
]]);
static PROGRESS_TEXT: Shape = Shape::Like { noun: "a progress such as 3/4", fits: notation::is_progress };
static EXIT_CODE: Shape = Shape::Int { least: 0, most: 255 };
static SIGNAL: Shape = Shape::Int { least: 1, most: 64 };
static LOG: Shape = Shape::Either(&SCALAR, &LOG_LINES);
static LOG_LINES: Shape = Shape::List(&SCALAR);
static STOPPED: Shape = Shape::Object(&[&[
    Field::yes("after", &SPAN, "How long it goes on"),
    Field::yes("exit", &EXIT_CODE, "It ends with this exit code"),
    Field::yes("signal", &SIGNAL, "It is ended by this signal"),
]]);

static COMMANDS: Shape = Shape::List(&COMMAND);
static COMMAND: Shape = Shape::Object(&[&[
    Field::yes("at", &SPAN, "When, in virtual time; whatever else happens then happens before"),
    Field::yes("do", &DEED, "What is done"),
    Field::yes("run", &TEXT, "To which run; to all unless it is said"),
    Field::yes("nodes", &TEXT, "Only waiting nodes like this, e.g. displayName=approve; for resume"),
    Field::yes("outputs", &VALUES, "Values for outputs the waiting nodes expect; for resume"),
    Field::yes("manifest", &ANY, "The ConfigMap, Secret or JobTemplate that is there from now on; for put"),
    Field::yes("refused", &MATCH, "It must be refused with these words"),
]]);
static DEED: Shape = Shape::Word(&["stop", "terminate", "suspend", "resume", "restart", "put"]);

pub(crate) static EXPECT: Shape = Shape::Object(&[
    STATE_FIELDS,
    END_FIELDS,
    &[
        Field::yes("rejected", &REJECTED, "Nothing runs: the manifests are refused, with these problems among others"),
        Field::yes("warnings", &WARNINGS, "The manifests are warned of with these among others; none at all for []"),
        Field::yes("metrics", &MATCH, "The custom metrics in the end, as the text that Prometheus reads"),
        Field::yes("runs", &RUN_EXPECTS, "What must come of each run, by its name"),
    ],
]);
static RUN_EXPECTS: Shape = Shape::Map(&RUN_EXPECT);
static RUN_EXPECT: Shape = Shape::Object(&[STATE_FIELDS, END_FIELDS]);

const END_FIELDS: &[Field] = &[
    Field::yes("duration", &SPAN_BOUND, "From the run's beginning to its end, in virtual time"),
    Field::yes("order", &ORDERS, "Which nodes come before, beside and apart from each other"),
    Field::yes("atOnce", &COUNT_BOUND, "The most tasks that run at the same time"),
    Field::yes("tasks", &COUNT_BOUND, "How many tasks are started, attempts counted"),
    Field::yes("moments", &MOMENTS, "How things stand at moments before the end"),
];
/// What can be said of a run at any moment.
const STATE_FIELDS: &[Field] = &[
    Field::yes("phase", &RUN_PHASE, "The phase of the run"),
    Field::yes("message", &MATCH, "Its message; empty for none"),
    Field::yes("progress", &TEXT, "Its progress, such as 3/4"),
    Field::yes("outputs", &OUTPUTS, "Its outputs"),
    Field::yes("labels", &MATCHES, "Its labels, those that are named"),
    Field::yes("annotations", &MATCHES, "Its annotations, those that are named"),
    Field::yes("nodes", &NODES, "Nodes by full or display name; `*` stands for anything"),
    Field::yes("all", &NODES, "As `nodes`, and there are no others"),
    Field::yes("absent", &TEXTS, "Nodes that are not there, by full or display name; `*` stands for anything"),
    Field::yes("only", &TEXTS, "All nodes there are, by full or display name, in any order"),
    Field::yes("nodeCount", &COUNT_BOUND, "How many nodes there are"),
    Field::yes("explain", &MATCHES, "Why nodes wait, by name, as `octoflow explain` says it"),
    Field::yes("json", &ANY_MAP, "Any part of the object by its path, such as status.conditions[0].type"),
];
static RUN_PHASE: Shape = Shape::Word(&[
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Error",
    // Of Jobs and JobFlows.
    "Completed",
    "Complete",
    "Succeed",
    "Restarting",
    "Aborting",
    "Aborted",
    "Completing",
    "Terminating",
    "Terminated",
    "Suspended",
    // Of TaskSets.
    "Waiting",
]);
static NODE_PHASE: Shape = Shape::Word(&notation::NODE_PHASES);
static ANY_MAP: Shape = Shape::Map(&ANY);
static MATCHES: Shape = Shape::Map(&MATCH);
pub(crate) static MATCH: Shape = Shape::Either(&SCALAR, &MATCH_FULL);
static MATCH_FULL: Shape = Shape::Object(&[&[
    Field::yes("equals", &SCALAR, "It is exactly this"),
    Field::yes("contains", &ONE_OR_MORE, "These texts are in it"),
    Field::yes("lacks", &ONE_OR_MORE, "These texts are not in it"),
    Field::yes("matches", &PATTERN, "This regular expression is found in it"),
    Field::yes("oneOf", &TEXTS, "It is one of these"),
]]);
static ONE_OR_MORE: Shape = Shape::Either(&SCALAR, &LOG_LINES);

static OUTPUTS: Shape = Shape::Object(&[&[
    Field::yes("parameters", &MATCHES, "Parameters by name"),
    Field::yes("artifacts", &MATCHES, "The text of artifacts by name"),
    Field::yes("result", &MATCH, "The result"),
    Field::yes("exitCode", &MATCH, "The exit code"),
    Field::yes("none", &TEXTS, "Parameters and artifacts that are not there"),
]]);
static INPUTS: Shape = Shape::Object(&[&[
    Field::yes("parameters", &MATCHES, "Parameters by name"),
    Field::yes("artifacts", &MATCHES, "The text of artifacts by name"),
    Field::yes("none", &TEXTS, "Parameters and artifacts that are not there"),
]]);

static NODES: Shape = Shape::Map(&NODE);
/// A phase, or a type and a phase, are the most common things to say of a node.
static NODE: Shape = Shape::Either(&NODE_SHORT, &NODE_FULL);
static NODE_SHORT: Shape = Shape::Like { noun: "a phase, or a type and a phase", fits: notation::is_node };
static NODE_FULL: Shape = Shape::Object(&[&[
    Field::yes("phase", &NODE_PHASE, "Its phase"),
    Field::yes("message", &MATCH, "Its message; empty for none"),
    Field::yes("type", &TEXT, "Its type, such as Pod, Steps, DAG or Retry"),
    Field::yes("name", &TEXT, "Its full name"),
    Field::yes("displayName", &TEXT, "The name people see"),
    Field::yes("id", &TEXT, "Its id"),
    Field::yes("template", &TEXT, "The template it is made from"),
    Field::yes("started", &SPAN_BOUND, "When it came into being, from the beginning of the case"),
    Field::yes("launched", &SPAN_BOUND, "When its task was started, from the beginning of the case"),
    Field::yes("finished", &SPAN_BOUND, "When it was over, from the beginning of the case"),
    Field::yes("duration", &SPAN_BOUND, "From when it came into being to its end"),
    Field::yes("progress", &TEXT, "Its progress, such as 1/1"),
    Field::yes("inputs", &INPUTS, "Its inputs"),
    Field::yes("outputs", &OUTPUTS, "Its outputs"),
    Field::yes("children", &TEXTS, "Its children by full or display name, in any order"),
    Field::yes("outbound", &TEXTS, "The nodes what follows it hangs off, by full or display name, in any order"),
    Field::yes("boundary", &TEXT, "The node it belongs to, by full or display name; empty for none"),
    Field::yes("flags", &TEXTS, "Its flags, such as retried or hooked, in any order"),
    Field::yes("attempts", &COUNT_BOUND, "How many attempts it has"),
    Field::yes("given", &GIVEN, "What its task was given"),
    Field::yes("count", &COUNT_BOUND, "How many nodes have this name; the rest is expected of each of them"),
    Field::yes("json", &ANY_MAP, "Any part of the node by its path, such as nodeFlag.retried"),
]]);
static GIVEN: Shape = Shape::Object(&[&[
    Field::yes("image", &MATCH, "The image"),
    Field::yes("command", &MATCH_LIST, "The command, whole"),
    Field::yes("args", &MATCH_LIST, "The arguments, whole"),
    Field::yes("env", &MATCHES, "Variables of the environment, those that are named"),
    Field::yes("source", &MATCH, "The script"),
    Field::yes("workingDir", &MATCH, "The directory it works in"),
    Field::yes("files", &MATCHES, "The text of files it finds, by path"),
    Field::yes("http", &ASKED, "The HTTP request it makes"),
    Field::yes("json", &ANY_MAP, "Any part of the task by its path"),
]]);
static ASKED: Shape = Shape::Object(&[&[
    Field::yes("method", &MATCH, "The method"),
    Field::yes("url", &MATCH, "The address"),
    Field::yes("headers", &MATCHES, "Headers, those that are named"),
    Field::yes("body", &MATCH, "The body"),
]]);
static MATCH_LIST: Shape = Shape::List(&MATCH);

static ORDERS: Shape = Shape::List(&ORDER);
static ORDER: Shape = Shape::Object(&[&[
    Field::yes("before", &TEXTS, "Each is over when the next one starts"),
    Field::yes("starts", &TEXTS, "Each starts before the next one does"),
    Field::yes("together", &TEXTS, "There is a moment when all of them run"),
    Field::yes("apart", &TEXTS, "No two of them ever run at the same time"),
]]);

static MOMENTS: Shape = Shape::List(&AT_MOMENT);
static AT_MOMENT: Shape = Shape::Object(&[
    &[Field::yes("at", &SPAN, "When, from the beginning of the case; after all that happens then")],
    STATE_FIELDS,
]);

static REJECTED: Shape = Shape::Either(&BOOL, &FINDINGS);
static WARNINGS: Shape = Shape::List(&FINDING);
static FINDINGS: Shape = Shape::List(&FINDING);
static FINDING: Shape = Shape::Object(&[&[
    Field::yes("code", &TEXT, "Its code, such as OF1003"),
    Field::yes("at", &TEXT, "Where in the object, such as spec.templates[0].name"),
    Field::yes("message", &MATCH, "What it says"),
    Field::yes("line", &COUNT, "The line of the manifest it points at"),
]]);
