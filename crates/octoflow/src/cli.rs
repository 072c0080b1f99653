//! What can be typed: commands, their arguments, and what each accepts.
//! Types only; what a command does is in `commands`.

mod kubeconfig;
mod server;

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum, builder::PossibleValuesParser};
use octoflow_engine::{
    argo::fields::{KINDS, OTHER_KINDS},
    jsonpath::Template,
};

pub(crate) use kubeconfig::Kubeconfig;
pub(crate) use server::Server;

use crate::{selector::Fields, span};

/// One engine for batch work: runs workflow manifests on this machine, no cluster needed.
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
    /// Keep workflows and run them for others: the control plane with its API, and this machine as its node
    Server(Server),
    /// Check manifests without running anything; all problems of all files are told at once
    Lint(Lint),
    /// Test the logic of workflows in virtual time: nothing is started, an hour passes in a blink
    Test(Test),
    /// Say what would run, in which order, without running anything
    Plan(Box<Plan>),
    /// List runs, newest first
    #[command(visible_alias = "ls")]
    List(List),
    /// Show a run and the tree of its nodes
    Get(Get),
    /// Show everything about a run: parameters, conditions, inputs and outputs of every node
    Describe(Describe),
    /// Print what the steps of a run wrote
    Logs(Logs),
    /// Say why a node waits or what happened to it, or what an error code means
    Explain(Explain),
    /// Print the custom metrics of all runs as Prometheus reads them
    Metrics,
    /// Delete finished runs with their logs
    #[command(visible_alias = "rm")]
    Delete(Delete),
    /// End a run that is under way; its exit handlers still run
    Stop(Target),
    /// End a run that is under way at once, without exit handlers
    Terminate(Target),
    /// Start nothing new in a run until it is resumed
    Suspend(Target),
    /// Let a suspended run go on
    Resume(Resume),
    /// Print the JSON Schema of a kind, for editors; without a kind, list the kinds
    Schema(Schema),
    /// Print a configuration for kubectl that leads to a server
    Kubeconfig(Kubeconfig),
    /// Print a completion script for a shell
    Completion(Completion),
    /// Check that this machine has what runs need
    Doctor(Doctor),
    /// Print the version
    Version(Version),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Manifests to run; `-` is standard input, a directory means its .yaml, .yml and .json files.
    /// ConfigMaps and Secrets in them are there for the workflows
    #[arg(value_name = "FILE", required_unless_present_any = ["files", "resume"])]
    pub manifests: Vec<PathBuf>,
    /// More manifests
    #[arg(short = 'f', long = "file", value_name = "FILE|DIR|-")]
    pub files: Vec<PathBuf>,
    /// Take up a run that was interrupted
    #[arg(long, value_name = "NAME", conflicts_with_all = ["manifests", "files", "parameters", "parameter_file", "entrypoint", "name", "generate_name"])]
    pub resume: Option<String>,
    /// Set a parameter of the workflow
    #[arg(short = 'p', long = "parameter", value_name = "NAME=VALUE", value_parser = key_value)]
    pub parameters: Vec<(String, String)>,
    /// Set parameters from a YAML or JSON file with names and values
    #[arg(long, value_name = "FILE")]
    pub parameter_file: Option<PathBuf>,
    /// Start at this template instead
    #[arg(long, value_name = "TEMPLATE")]
    pub entrypoint: Option<String>,
    /// Call the run this
    #[arg(long)]
    pub name: Option<String>,
    /// Begin the run's name with this and add letters that make it unique
    #[arg(long, value_name = "PREFIX", conflicts_with = "name")]
    pub generate_name: Option<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Stop the workflow after this long; the exit code is 124 then
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub timeout: Option<Duration>,
    /// Where the steps run
    #[arg(long, value_enum, default_value_t = Runtime::Process)]
    pub runtime: Runtime,
    /// How many steps may run at the same time [default: as many as the machine's cores allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub parallelism: Option<u32>,
    /// How steps are kept apart: `overlay` gives each its own view of the file system
    #[arg(long, value_enum, default_value_t = Isolation::Overlay)]
    pub isolation: Isolation,
    /// What to print in the end: the final object as json or yaml, its name, or its tree (wide)
    #[arg(short, long, value_parser = one_of::<RunFormats>, value_name = "json|yaml|name|wide")]
    pub output: Option<Format>,
    /// Check the manifests and print what would be submitted; run and store nothing
    #[arg(long, conflicts_with = "resume")]
    pub dry_run: bool,
    /// Also print what the steps write, as they write it
    #[arg(long)]
    pub log: bool,
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
    /// Judge only objects of these kinds, like workflows,configmaps; the others may still be referred to
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = kind)]
    pub kinds: Vec<&'static str>,
    /// How problems are told
    #[arg(short, long, value_enum, default_value_t = Telling::Pretty)]
    pub output: Telling,
    /// Nothing but the files is looked at in any case
    #[arg(long, hide = true)]
    pub offline: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Manifests; `-` is standard input, a directory means its .yaml, .yml and .json files
    #[arg(value_name = "FILE", required = true)]
    pub manifests: Vec<PathBuf>,
    /// Set a parameter of the workflow
    #[arg(short = 'p', long = "parameter", value_name = "NAME=VALUE", value_parser = key_value)]
    pub parameters: Vec<(String, String)>,
    /// Set parameters from a YAML or JSON file with names and values
    #[arg(long, value_name = "FILE")]
    pub parameter_file: Option<PathBuf>,
    /// Start at this template instead
    #[arg(long, value_name = "TEMPLATE")]
    pub entrypoint: Option<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// How long tasks take, by template: a file with one `template: 90s` a line, or an earlier run
    #[arg(long, value_name = "FILE|RUN")]
    pub durations: Option<String>,
    /// How many items of a loop are written out
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub rounds: usize,
    /// How many lines the whole tree may have
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub lines: usize,
    /// How it is told
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
    /// How the outcome is told
    #[arg(short, long, value_enum, default_value_t = TestFormat::Pretty)]
    pub output: TestFormat,
}

/// How the outcome of tests is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// For people
    Pretty,
    /// JUnit XML
    Junit,
    /// An array of cases
    Json,
}

/// How problems of manifests are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Telling {
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
    /// The kind, such as Workflow
    #[arg(ignore_case = true, value_parser = PossibleValuesParser::new(KINDS.iter().map(|kind| kind.name).chain([crate::logic::KIND])))]
    pub kind: Option<String>,
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
    /// Leave out the titles of the columns
    #[arg(long)]
    pub no_headers: bool,
}

/// Tests that `list` and `delete` share.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Only finished runs
    #[arg(long)]
    pub completed: bool,
    /// Only runs created longer ago than this
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub older: Option<Duration>,
    /// Only runs whose name begins so
    #[arg(long)]
    pub prefix: Option<String>,
    /// Only runs with these labels, like app=x,tier!=db
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = label_selector)]
    pub selector: Option<Labels>,
}

/// A parsed label selector.
#[derive(Clone, Debug)]
pub(crate) struct Labels(pub Vec<octoflow_store::LabelTest>);

fn label_selector(text: &str) -> Result<Labels, String> {
    crate::selector::labels(text).map(Labels)
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
    /// The run's name; @latest is the newest
    pub name: String,
    #[command(flatten)]
    pub namespace: Namespace,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// The run's name; @latest is the newest
    pub name: String,
    /// Only this node, by display name, name, id or pod name
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
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub namespace: Namespace,
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

#[derive(Debug, Args)]
pub(crate) struct Completion {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Version {
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

/// How a result is printed.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    Wide,
    Short,
    Name,
    Json,
    Yaml,
    Raw,
    JsonPath(Template),
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("jsonpath=") {
            return Template::parse(path).map(Self::JsonPath).map_err(|wrong| wrong.to_string());
        }
        match text {
            "wide" => Ok(Self::Wide),
            "short" => Ok(Self::Short),
            "name" => Ok(Self::Name),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "raw" => Ok(Self::Raw),
            "jsonpath" => Err("say which path, like jsonpath='{.status.phase}'".to_owned()),
            _ => Err("unknown format".to_owned()),
        }
    }
}

/// The formats a command knows.
trait Formats {
    const WORDS: &'static [&'static str];
}

macro_rules! formats {
    ($($name:ident: $($word:literal)*;)*) => {$(
        struct $name;
        impl Formats for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];
        }
    )*};
}
formats! {
    RunFormats: "json" "yaml" "name" "wide";
    ListFormats: "wide" "name" "json" "yaml" "jsonpath";
    GetFormats: "wide" "short" "name" "json" "yaml" "jsonpath";
    LogFormats: "raw";
    ObjectFormats: "json" "yaml";
}

fn one_of<F: Formats>(text: &str) -> Result<Format, String> {
    let word = text.split('=').next().unwrap_or_default();
    if F::WORDS.contains(&word) {
        return text.parse();
    }
    let words: Vec<String> = F::WORDS
        .iter()
        .map(|word| if *word == "jsonpath" { "jsonpath=…".to_owned() } else { (*word).to_owned() })
        .collect();
    Err(format!("expected {}", words.join(", ")))
}

/// A kind by its name in any case, also in the plural.
fn kind(text: &str) -> Result<&'static str, String> {
    let known = || KINDS.iter().map(|kind| kind.name).chain(OTHER_KINDS.iter().copied());
    let is_meant = |name: &&'static str| {
        text.eq_ignore_ascii_case(name)
            || text.strip_suffix(['s', 'S']).is_some_and(|one| one.eq_ignore_ascii_case(name))
    };
    known().find(is_meant).ok_or_else(|| format!("expected some of {}", known().collect::<Vec<_>>().join(", ")))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write it as name=value".to_owned()),
    }
}

fn phase(text: &str) -> Result<String, String> {
    known_phase(text, &["Pending", "Running", "Succeeded", "Failed", "Error"])
}

fn node_phase(text: &str) -> Result<String, String> {
    known_phase(text, &["Pending", "Running", "Succeeded", "Skipped", "Failed", "Error", "Omitted"])
}

fn known_phase(text: &str, known: &[&str]) -> Result<String, String> {
    match known.iter().find(|phase| phase.eq_ignore_ascii_case(text)) {
        Some(phase) => Ok((*phase).to_owned()),
        None => Err(format!("expected one of {}", known.join(", "))),
    }
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

    #[test]
    fn kinds_are_taken_in_any_case_and_number() {
        assert_eq!(kind("workflows"), Ok("Workflow"));
        assert_eq!(kind("CronWorkflow"), Ok("CronWorkflow"));
        assert!(kind("pods").unwrap_err().contains("Workflow, WorkflowTemplate"));
    }

    #[test]
    fn phases_are_taken_in_any_case() {
        assert_eq!(phase("failed").as_deref(), Ok("Failed"));
        assert!(phase("broken").unwrap_err().contains("Pending, Running"));
    }
}
