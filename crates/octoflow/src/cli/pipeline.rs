//! Arguments of the commands of the submission pipeline: `octoflow feature|plugin|job`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use octoflow_model::plugin::{LifeState, PluginType};

use super::{
    Namespace,
    format::{Format, ObjectFormats, key_value, one_of},
};

#[derive(Debug, Subcommand)]
pub(crate) enum FeatureCommand {
    /// Register features, or new versions of them; a new one is not enabled unless its file says so
    Register(FeatureFiles),
    /// List features
    #[command(visible_alias = "ls")]
    List(FeatureList),
    /// Print features with their plugins
    Get(FeatureNames),
    /// Enable features: from its next stage on every job meets their plugins
    Enable(FeatureNames),
    /// Disable features
    Disable(FeatureNames),
    /// Delete features with their plugins
    #[command(visible_alias = "rm")]
    Delete(FeatureNames),
    /// Tell which plugins a job would meet and why; nothing is stored
    Test(FeatureTest),
}

#[derive(Debug, Args)]
pub(crate) struct FeatureFiles {
    /// Features, as the pipeline's clients post them or as objects of kind Feature; `-` is standard input
    #[arg(value_name = "FILE|DIR|-", required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct FeatureList {
    /// Only those of this author
    #[arg(long, default_value = "all")]
    pub author: String,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct FeatureNames {
    /// Names of features
    #[arg(value_name = "FEATURE", required = true)]
    pub names: Vec<String>,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct FeatureTest {
    /// Features to try beside or instead of those of the server, as if they were enabled
    #[arg(value_name = "FILE|DIR|-")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub job: JobFile,
    /// Also have the server call the plugins as it would for the job, and show what would come out
    #[arg(long)]
    pub call: bool,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List plugins in the order in which they run
    #[command(visible_alias = "ls")]
    List(PluginList),
    /// Have one plugin run before another of its type
    Order(PluginOrder),
    /// Show what each plugin made of a job; the same as `octoflow job trace`
    Trace(JobTrace),
}

#[derive(Debug, Args)]
pub(crate) struct PluginList {
    /// Only plugins of this type
    #[arg(value_name = "TYPE", value_parser = plugin_type)]
    pub plugin_type: Option<PluginType>,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct PluginOrder {
    /// The key of the plugin that is to run first: TYPE.FEATURE.AUTHOR
    pub before: String,
    /// The key of the plugin that is to run after it
    pub after: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobCommand {
    /// Submit a job; prints its id
    Submit(JobSubmit),
    /// List jobs by page
    #[command(visible_alias = "ls")]
    List(JobList),
    /// Print the detail document of a job
    Detail(JobDetail),
    /// Stop a job
    Stop(JobStop),
    /// Resume a job that a gate has suspended
    Resume(JobResume),
    /// Show what each plugin made of a job, and when; also after its end
    Trace(JobTrace),
}

/// A job, and what is said about it.
#[derive(Debug, Args)]
pub(crate) struct JobFile {
    /// The job: a whole submission (with userID, jobName, jobKind and job), or the job alone; `-` is standard input
    #[arg(long = "job", short = 'f', value_name = "FILE|-", required = true)]
    pub file: PathBuf,
    /// Whose job it is [default: the submission's, else the name of whoever calls]
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// What people call it [default: the submission's, else the name in the job]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// What else selectors can be about
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = key_value)]
    pub header: Vec<(String, String)>,
    /// The cluster
    #[arg(long)]
    pub cluster: Option<String>,
    #[command(flatten)]
    pub namespace: Namespace,
}

#[derive(Debug, Args)]
pub(crate) struct JobSubmit {
    #[command(flatten)]
    pub job: JobFile,
    /// Only tell which plugins it would meet
    #[arg(long)]
    pub dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobList {
    /// Only jobs of these users
    #[arg(long, value_delimiter = ',', value_name = "USER")]
    pub user: Vec<String>,
    /// Only jobs in these states
    #[arg(long, value_delimiter = ',', value_name = "STATE", value_parser = state)]
    pub state: Vec<LifeState>,
    /// Only jobs of this kind
    #[arg(long)]
    pub kind: Option<String>,
    /// Only jobs whose name begins so
    #[arg(long, value_name = "PREFIX")]
    pub name: Option<String>,
    /// Only jobs for this cluster
    #[arg(long)]
    pub cluster: Option<String>,
    /// The page, counted from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub page: u64,
    /// How many are on a page
    #[arg(long, default_value = "50", value_parser = ["10", "20", "50"])]
    pub page_size: String,
    /// By the time of submission
    #[arg(long, value_enum, default_value_t = JobOrder::Desc)]
    pub order: JobOrder,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobOrder {
    /// Oldest first
    Asc,
    /// Newest first
    Desc,
}

#[derive(Debug, Args)]
pub(crate) struct JobDetail {
    /// The id of the job
    pub id: String,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct JobStop {
    /// The id of the job
    pub id: String,
    /// Why; kept with the job
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct JobResume {
    /// The id of the job
    pub id: String,
    /// Why; kept with the job
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Ask the same gate again instead of going on with the next
    #[arg(long)]
    pub recheck: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobTrace {
    /// The id of the job
    pub id: String,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

fn plugin_type(word: &str) -> Result<PluginType, String> {
    let known = PluginType::ALL.into_iter().find(|known| known.word().eq_ignore_ascii_case(word));
    known.ok_or_else(|| format!("the types are {}", PluginType::ALL.map(PluginType::word).join(", ")))
}

fn state(word: &str) -> Result<LifeState, String> {
    let known = LifeState::of_word(&word.to_ascii_lowercase());
    known.ok_or_else(|| format!("the states are {}", LifeState::ALL.map(LifeState::word).join(", ")))
}
