//! Command line definitions: commands, arguments and accepted values. Types only; `commands` implements them.

pub(crate) mod selector;
pub(crate) mod span;

mod about;
mod client;
mod convert;
mod cron;
mod format;
mod hook;
mod kind;
mod kubeconfig;
mod node;
mod overrides;
mod pipeline;
mod queue;
mod server;
mod stored;

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use about::{Completion, Doctor, Version};
pub(crate) use client::*;
pub(crate) use convert::Convert;
pub(crate) use cron::{CronCommand, Preview};
pub(crate) use format::Format;
use format::{GetFormats, ListFormats, LogFormats, ObjectFormats, RunFormats, key_value, node_phase, one_of, phase};
pub(crate) use hook::{HookCommand, HookReplay};
pub(crate) use kind::{KindFilter, SchemaOf};
pub(crate) use node::{NodeArgs, NodeCommand, NodeLabel, NodeNames, NodeSet};
pub(crate) use overrides::{Naming, OverrideArgs};
pub(crate) use pipeline::*;
pub(crate) use queue::{QueueCommand, QueueFields, QueueList, QueueNames};
pub(crate) use stored::*;

pub(crate) use kubeconfig::Kubeconfig;
pub(crate) use server::Server;

use self::selector::Fields;

/// One engine for batch work: runs workflows and TaskSets on this machine, no cluster needed.
#[derive(Debug, Parser)]
#[command(name = "octoflow", version, max_term_width = 100, propagate_version = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where runs, logs and artifacts are kept [default: the user's data home]
    #[arg(long, global = true, value_name = "DIR", env = "OCTOFLOW_DATA_DIR", hide_env_values = true)]
    pub data_dir: Option<PathBuf>,
    /// Encrypt Secrets in the data directory with this key: 32 random bytes that only their owner can read
    #[arg(long, global = true, value_name = "FILE", env = "OCTOFLOW_SECRETS_KEY_FILE", hide_env_values = true)]
    pub secrets_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub server_args: ServerArgs,
    /// Never use colours (NO_COLOR does the same)
    #[arg(long, global = true, alias = "no-colour")]
    pub no_color: bool,
    /// Say more about what is being done
    #[arg(short, long, global = true)]
    pub verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run manifests to their end on this machine
    Run(Box<Run>),
    /// Submit manifests to a server, which runs them
    Submit(Box<Submit>),
    /// Run a server: the control plane with its API, and this machine as its node
    Server(Server),
    /// Check manifests without running anything; reports all problems of all files at once
    Lint(Lint),
    /// Test the logic of workflows in virtual time, without starting anything
    Test(Test),
    /// Show what would run, in which order, without running anything
    Plan(Box<Plan>),
    /// List runs, newest first
    #[command(visible_alias = "ls")]
    List(List),
    /// Show a run and the tree of its nodes
    Get(Get),
    /// Show everything about a run: parameters, conditions, inputs and outputs of every node
    Describe(Describe),
    /// Follow the progress of a run until it is over
    Watch(Watch),
    /// Wait until runs are over; fails if one of them failed
    Wait(Wait),
    /// Print what the steps of a run wrote
    Logs(Logs),
    /// Explain why a node waits or what happened to it, or what an error code means
    Explain(Explain),
    /// Print the custom metrics of all runs in the Prometheus format
    Metrics,
    /// Delete finished runs with their logs
    #[command(visible_alias = "rm")]
    Delete(Delete),
    /// Stop a run that is under way; its exit handlers still run
    Stop(Stop),
    /// Terminate a run that is under way at once, without exit handlers
    Terminate(Target),
    /// Start nothing new in a run until it is resumed
    Suspend(Target),
    /// Resume a suspended run
    Resume(Resume),
    /// Rerun what failed in a run, on a server
    Retry(Retry),
    /// Submit a run once more as a new one, on a server
    Resubmit(Box<Resubmit>),
    /// Machines that run tasks; and waiting nodes of a workflow (`node set --node-field-selector`)
    #[command(subcommand)]
    Node(NodeCommand),
    /// Queues of a server: who gets how much, and who is first
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Features of a server: plugins of the submission pipeline that are switched together
    #[command(subcommand)]
    Feature(FeatureCommand),
    /// Plugins of a server's submission pipeline, and their order
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Jobs of a server's submission pipeline
    #[command(subcommand)]
    Job(JobCommand),
    /// Life hooks of a server: what they have heard, and what was given up
    #[command(subcommand)]
    Hook(HookCommand),
    /// Copy the artifacts of a run from a server to this machine
    Cp(Cp),
    /// Compare two runs; the exit code is 1 if they differ
    Diff(Diff),
    /// Write everything about a run into one file, without secrets
    Export(Export),
    /// Inspect a file that `export` wrote
    Open(Open),
    /// Workflow templates of a server
    #[command(subcommand)]
    Template(StoredCommand),
    /// Cluster workflow templates of a server
    #[command(subcommand)]
    ClusterTemplate(StoredCommand),
    /// Cron workflows of a server
    #[command(subcommand)]
    Cron(CronCommand),
    /// Runs of a server that are over, by uid
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Manage the tokens of a server
    #[command(subcommand)]
    Token(TokenCommand),
    /// Manage the settings file
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Convert Jobs to JobTemplates, and JobTemplates to Jobs
    Convert(Convert),
    /// Print the JSON Schema of a kind, for editors; without a kind, list the kinds
    Schema(Schema),
    /// Print a kubeconfig for a server
    Kubeconfig(Kubeconfig),
    /// Print a completion script for a shell
    Completion(Completion),
    /// Check that this machine has what runs need, or the health of a server
    Doctor(Doctor),
    /// Print the version
    Version(Version),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Manifests to run; `-` is standard input, a directory means its .yaml, .yml and .json files.
    /// ConfigMaps, Secrets and PodGroups in them are there for what runs
    #[arg(value_name = "FILE", required_unless_present_any = ["files", "resume"])]
    pub manifests: Vec<PathBuf>,
    /// More manifests
    #[arg(short = 'f', long = "file", value_name = "FILE|DIR|-")]
    pub files: Vec<PathBuf>,
    /// Resume a run that was interrupted
    #[arg(long, value_name = "NAME", conflicts_with_all = ["manifests", "files", "parameters", "parameter_file", "entrypoint", "name", "generate_name"])]
    pub resume: Option<String>,
    #[command(flatten)]
    pub override_args: OverrideArgs,
    #[command(flatten)]
    pub naming: Naming,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Stop it after this long; the exit code is 124 then
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub execution: Execution,
    /// What to print at the end: the final object as json or yaml, its name, or its tree (wide)
    #[arg(short, long, value_parser = one_of::<RunFormats>, value_name = "json|yaml|name|wide")]
    pub output: Option<Format>,
    /// Check the manifests and print what would be submitted; run and store nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Also print what the steps write, as they write it
    #[arg(long)]
    pub log: bool,
    /// Print control sequences in step output to a terminal unchanged; pipes and files always get every byte
    #[arg(long, requires = "log")]
    pub raw: bool,
    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// What to check; `-` is standard input, a directory means the .yaml, .yml and .json files in it and below
    #[arg(value_name = "FILE|DIR|-", required = true)]
    pub manifests: Vec<PathBuf>,
    /// Let warnings count as errors
    #[arg(long)]
    pub strict: bool,
    /// Check only objects of these kinds, like workflows,configmaps; the others may still be referred to
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = kind::filter)]
    pub kinds: Vec<KindFilter>,
    /// Format of the problems
    #[arg(short, long, value_enum, default_value_t = ProblemFormat::Pretty)]
    pub output: ProblemFormat,
    /// No effect: lint never asks a server
    #[arg(long, hide = true)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Manifests; `-` is standard input, a directory means its .yaml, .yml and .json files
    #[arg(value_name = "FILE", required = true)]
    pub manifests: Vec<PathBuf>,
    #[command(flatten)]
    pub override_args: OverrideArgs,
    #[command(flatten)]
    pub namespace: Namespace,
    /// How long tasks take, by template: a file with one `template: 90s` a line, or an earlier run
    #[arg(long, value_name = "FILE|RUN")]
    pub durations: Option<String>,
    /// Machine that the tasks are judged by, unless there is a server
    #[command(flatten)]
    pub node: NodeArgs,
    /// How many items of a loop are written out
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rounds: usize,
    /// How many lines the whole tree may have
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub lines: usize,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = PlanFormat::Pretty)]
    pub output: PlanFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlanFormat {
    /// A tree for people
    Pretty,
    /// The tree as an object, or several as an array
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Test files; a directory means the .test.yaml and .test.yml files in it and below
    #[arg(value_name = "FILE|DIR", required = true)]
    pub places: Vec<PathBuf>,
    /// Only cases in whose `file: name` this regular expression is found
    #[arg(long, value_name = "RE")]
    pub filter: Option<String>,
    /// Only list the cases
    #[arg(long)]
    pub list: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = TestFormat::Pretty)]
    pub output: TestFormat,
}

/// Output formats of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// For people
    Pretty,
    /// JUnit XML
    Junit,
    /// An array of cases
    Json,
}

/// Output formats of problems in manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProblemFormat {
    /// For people, with the lines
    Pretty,
    /// An array
    Json,
    /// Annotations of GitHub Actions
    Github,
    /// SARIF 2.1.0
    Sarif,
}

#[derive(Debug, Args)]
pub(crate) struct Schema {
    /// The kind, such as Workflow, vcjob or batch/v1/Job
    #[arg(value_parser = kind::with_schema())]
    pub kind: Option<SchemaOf>,
}

/// Where and how steps run.
#[derive(Debug, Args)]
pub(crate) struct Execution {
    /// Where the steps run
    #[arg(long, value_enum, default_value_t = Runtime::Process)]
    pub runtime: Runtime,
    /// How many steps may run at the same time [default: as many as the machine's cores allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub parallelism: Option<u32>,
    #[command(flatten)]
    pub node: NodeArgs,
    /// How steps are kept apart: `overlay` gives each its own view of the file system
    #[arg(long, value_enum, default_value_t = Isolation::Overlay)]
    pub isolation: Isolation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Runtime {
    Process,
    Docker,
    Kubernetes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Isolation {
    Overlay,
    None,
}

#[derive(Debug, Args)]
pub(crate) struct Namespace {
    /// The namespace of the run [default: the manifest's, else "default"]
    #[arg(short, long, value_name = "NS")]
    pub namespace: Option<String>,
}

/// Which server to use, and its credentials.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerArgs {
    /// The server to ask [default: the one that holds the data directory, else none or http://127.0.0.1:2746]
    #[arg(long, global = true, value_name = "URL", env = "OCTOFLOW_SERVER", hide_env_values = true)]
    pub server: Option<String>,
    /// Token for the server
    #[arg(long, global = true, env = "OCTOFLOW_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// Check the server's certificate against this one
    #[arg(long, global = true, value_name = "FILE", env = "OCTOFLOW_CA_FILE", hide_env_values = true)]
    pub ca_file: Option<PathBuf>,
    /// Trust any certificate of the server
    #[arg(long, global = true)]
    pub insecure_skip_verify: bool,
}

impl Namespace {
    pub(crate) fn or_default(&self) -> &str {
        self.namespace.as_deref().unwrap_or(octoflow_model::meta::DEFAULT_NAMESPACE)
    }
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub which: Which,
    /// Runs of every namespace
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Only runs that are not finished
    #[arg(long)]
    pub running: bool,
    /// Only runs of this kind
    #[arg(long, value_name = "KIND", value_parser = kind::of_runs())]
    pub kind: Option<&'static str>,
    /// Only runs in these phases
    #[arg(long, value_delimiter = ',', value_name = "PHASE", value_parser = phase)]
    pub status: Vec<String>,
    /// Only runs younger than this
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub since: Option<Duration>,
    /// At most this many; 0 means all
    #[arg(long, default_value_t = 500)]
    pub limit: usize,
    #[arg(short, long, value_parser = one_of::<ListFormats>, value_name = "wide|name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
    /// Omit the column headers
    #[arg(long)]
    pub no_headers: bool,
}

/// Selection options shared by `list` and `delete`.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Only finished runs
    #[arg(long)]
    pub completed: bool,
    /// Only runs created longer ago than this
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub older: Option<Duration>,
    /// Only runs whose name has this prefix
    #[arg(long)]
    pub prefix: Option<String>,
    /// Only runs with these labels, like app=x,tier!=db
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = label_selector)]
    pub selector: Option<Labels>,
}

/// Parsed label selector.
#[derive(Clone, Debug)]
pub(crate) struct Labels(pub Vec<octoflow_store::LabelTest>);

pub(crate) fn label_selector(text: &str) -> Result<Labels, String> {
    selector::labels(text).map(Labels)
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// Names of runs; @latest is the newest
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    #[arg(short, long, value_parser = one_of::<GetFormats>, value_name = "wide|short|name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
    /// Show only nodes like this, e.g. displayName=approve,phase!=Succeeded
    #[arg(long, value_name = "SELECTOR", value_parser = Fields::parse)]
    pub node_field_selector: Option<Fields>,
    /// Show only nodes in this phase
    #[arg(long, value_name = "PHASE", value_parser = node_phase, conflicts_with = "node_field_selector")]
    pub status: Option<String>,
    #[arg(long)]
    pub no_headers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Names of runs; @latest is the newest
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub namespace: Namespace,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The run's name; @latest is the newest
    #[arg(required_unless_present = "selector")]
    pub name: Option<String>,
    /// All runs with these labels instead of one by name
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = label_selector, conflicts_with_all = ["name", "output"])]
    pub selector: Option<Labels>,
    /// Only this node, by display name, name, id or pod name; of a TaskSet a role, a replica or a pod
    pub node: Option<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Go on until the run ends
    #[arg(short, long)]
    pub follow: bool,
    /// Only the last lines of each node
    #[arg(long, value_name = "N")]
    pub tail: Option<usize>,
    /// Only lines younger than this
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub since: Option<Duration>,
    /// Begin each line with the time it was written
    #[arg(long)]
    pub timestamps: bool,
    /// Only lines this regular expression is found in
    #[arg(long, value_name = "RE")]
    pub grep: Option<String>,
    /// Only what this container wrote, of steps that have several; `main` is a step's own
    #[arg(short, long)]
    pub container: Option<String>,
    /// Leave out the name of the node before each line
    #[arg(long)]
    pub no_prefix: bool,
    /// `raw`: every byte of one node as it was written, standard error to standard error
    #[arg(short, long, value_parser = one_of::<LogFormats>, value_name = "raw")]
    pub output: Option<Format>,
    /// Print control sequences in step output to a terminal unchanged; pipes and files always get every byte
    #[arg(long)]
    pub raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A run's name, or an error code such as OF1002
    pub what: String,
    /// Only this node
    pub node: Option<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Names of runs; @latest is the newest
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "completed", "older", "prefix", "selector"])]
    pub names: Vec<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// All runs of the namespace
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub which: Which,
    /// Only say what would be deleted
    #[arg(long)]
    pub dry_run: bool,
    /// Also runs that are not finished, unless a live process is running them
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Target {
    /// Names of runs; @latest is the newest
    #[arg(value_name = "NAME", required_unless_present = "selector")]
    pub names: Vec<String>,
    /// All runs with these labels that are not over, like app=x,tier!=db
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = label_selector, conflicts_with = "names")]
    pub selector: Option<Labels>,
    #[command(flatten)]
    pub namespace: Namespace,
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub target: Target,
    /// Reason, shown with the run
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// End only waiting nodes like this, as failed, e.g. displayName=approve
    #[arg(long, value_name = "SELECTOR")]
    pub node_field_selector: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    pub target: Target,
    /// Only waiting nodes like this, e.g. displayName=approve
    #[arg(long, value_name = "SELECTOR")]
    pub node_field_selector: Option<String>,
    /// A value for an output the waiting node expects
    #[arg(long = "output-parameter", value_name = "NAME=VALUE", value_parser = key_value)]
    pub output_parameters: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn each_command_takes_only_its_own_formats() {
        assert!(Cli::try_parse_from(["octoflow", "get", "w", "-o", "short"]).is_ok());
        assert!(Cli::try_parse_from(["octoflow", "get", "w", "-o", "jsonpath={.status.phase}"]).is_ok());
        let refused = Cli::try_parse_from(["octoflow", "run", "w.yaml", "-o", "short"]).unwrap_err().to_string();
        assert!(refused.contains("expected json, yaml, name, wide"), "{refused}");
        let refused = Cli::try_parse_from(["octoflow", "get", "w", "-o", "jsonpath={.a"]).unwrap_err().to_string();
        assert!(refused.contains("the `{` is not closed at column 1"), "{refused}");
    }

    #[test]
    fn run_needs_something_to_run() {
        assert!(Cli::try_parse_from(["octoflow", "run"]).is_err());
        assert!(Cli::try_parse_from(["octoflow", "run", "--resume", "w"]).is_ok());
        assert!(Cli::try_parse_from(["octoflow", "run", "-f", "w.yaml", "-p", "a=b=c"]).is_ok());
        assert!(Cli::try_parse_from(["octoflow", "run", "w.yaml", "-p", "=c"]).is_err());
        assert!(Cli::try_parse_from(["octoflow", "run", "w.yaml", "--parallelism", "0"]).is_err());
    }
}
