//! Arguments of commands that submit to a server, rerun, compare and export runs.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::{
    Labels, Namespace, Naming, OverrideArgs, Target,
    format::{Format, ObjectFormats, RunFormats, key_value, one_of},
    label_selector,
};
use crate::cli::span;

#[derive(Debug, Args)]
pub(crate) struct Submit {
    /// Manifests; `-` is standard input, a directory means its .yaml, .yml and .json files. Templates, ConfigMaps and
    /// other objects in them are created or updated first
    #[arg(value_name = "FILE", required_unless_present_any = ["files", "from"])]
    pub manifests: Vec<PathBuf>,
    /// More manifests
    #[arg(short = 'f', long = "file", value_name = "FILE|DIR|-")]
    pub files: Vec<PathBuf>,
    /// Make a workflow from what the server keeps: workflowtemplate/NAME, clusterworkflowtemplate/NAME or cronwf/NAME
    #[arg(long, value_name = "KIND/NAME", conflicts_with_all = ["manifests", "files"])]
    pub from: Option<String>,
    #[command(flatten)]
    pub override_args: OverrideArgs,
    #[command(flatten)]
    pub naming: Naming,
    /// Add labels to the workflow
    #[arg(short = 'l', long = "labels", value_name = "NAME=VALUE", value_delimiter = ',', value_parser = key_value)]
    pub labels: Vec<(String, String)>,
    #[command(flatten)]
    pub namespace: Namespace,
    #[command(flatten)]
    pub after: After,
    /// Check here and print what would be submitted; send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Let the server check it and print what it would store; nothing is run
    #[arg(long, conflicts_with = "dry_run")]
    pub server_dry_run: bool,
    /// What to print: the object as json or yaml, its name, or its tree (wide)
    #[arg(short, long, value_parser = one_of::<RunFormats>, value_name = "json|yaml|name|wide")]
    pub output: Option<Format>,
}

/// Actions after a submission.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct After {
    /// Follow its progress until it is over; fails if it failed
    #[arg(short, long)]
    pub watch: bool,
    /// Wait until it is over; fails if it failed
    #[arg(long)]
    pub wait: bool,
    /// Print what its steps write until it is over; fails if it failed
    #[arg(long)]
    pub log: bool,
    /// Print control sequences in step output to a terminal unchanged; pipes and files always get every byte
    #[arg(long, requires = "log")]
    pub raw: bool,
    /// Wait no longer than this; the exit code is 124 then and the run goes on
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub timeout: Option<Duration>,
}

impl After {
    pub(crate) fn stays(&self) -> bool {
        self.watch || self.wait || self.log
    }
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The run's name; @latest is the newest
    pub name: String,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Watch no longer than this; the exit code is 124 then
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Names of runs; @latest is the newest
    #[arg(value_name = "NAME", required_unless_present = "selector")]
    pub names: Vec<String>,
    /// All runs with these labels, like app=x,tier!=db
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = label_selector, conflicts_with = "names")]
    pub selector: Option<Labels>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Wait no longer than this; the exit code is 124 then
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub timeout: Option<Duration>,
    /// Treat a run that does not exist as succeeded
    #[arg(long)]
    pub ignore_not_found: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Retry {
    #[command(flatten)]
    pub target: Target,
    /// Also rerun these nodes, by display name, name or id, but not the nodes after them
    #[arg(long = "node", value_name = "NODE")]
    pub nodes: Vec<String>,
    /// Also rerun these nodes and everything after them
    #[arg(long, value_name = "NODE")]
    pub from: Vec<String>,
    /// Also rerun failed nodes that did not fail the run
    #[arg(long)]
    pub failed: bool,
    /// Let --node-field-selector choose nodes that succeeded, too
    #[arg(long, requires = "node_field_selector")]
    pub restart_successful: bool,
    /// Nodes like this, e.g. displayName=build
    #[arg(long, value_name = "SELECTOR")]
    pub node_field_selector: Option<String>,
    /// Set a parameter to another value
    #[arg(short = 'p', long = "parameter", value_name = "NAME=VALUE", value_parser = key_value)]
    pub parameters: Vec<(String, String)>,
    /// Only say what would run again, and why
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub after: After,
    /// What to print: the object as json or yaml, its name, or its tree (wide)
    #[arg(short, long, value_parser = one_of::<RunFormats>, value_name = "json|yaml|name|wide")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Resubmit {
    #[command(flatten)]
    pub target: Target,
    /// Reuse the results of steps that succeeded
    #[arg(long)]
    pub memoized: bool,
    /// Set a parameter to another value
    #[arg(short = 'p', long = "parameter", value_name = "NAME=VALUE", value_parser = key_value)]
    pub parameters: Vec<(String, String)>,
    #[command(flatten)]
    pub after: After,
    /// What to print: the object as json or yaml, its name, or its tree (wide)
    #[arg(short, long, value_parser = one_of::<RunFormats>, value_name = "json|yaml|name|wide")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Cp {
    /// The run's name; @latest is the newest
    pub name: String,
    /// Directory to copy them to
    #[arg(value_name = "DIR", default_value = ".")]
    pub folder: PathBuf,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Only of this node, by display name, name or id
    #[arg(long, value_name = "NODE")]
    pub node: Option<String>,
    /// Only artifacts of this name
    #[arg(long, value_name = "NAME")]
    pub artifact_name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// A run, or a file that `export` wrote
    #[arg(value_name = "RUN1")]
    pub one: String,
    /// The run it is compared with
    #[arg(value_name = "RUN2")]
    pub other: String,
    #[command(flatten)]
    pub namespace: Namespace,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The run's name; @latest is the newest
    pub name: String,
    /// The file to write; `-` is standard output [default: NAME.octoflow]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Only the last lines of each node's log; 0 leaves logs out
    #[arg(long, value_name = "N")]
    pub tail: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct Open {
    /// The file
    pub file: PathBuf,
    #[command(subcommand)]
    pub view: Option<OpenView>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OpenView {
    /// The run and the tree of its nodes
    Get {
        #[arg(short, long, value_parser = one_of::<super::format::GetFormats>, value_name = "wide|short|name|json|yaml|jsonpath=…")]
        output: Option<Format>,
    },
    /// Everything about the run
    Describe,
    /// What its steps wrote
    Logs {
        /// Only this node, by display name, name, id or pod name
        node: Option<String>,
        /// Begin each line with the time it was written
        #[arg(long)]
        timestamps: bool,
        /// Print control sequences in step output to a terminal unchanged; pipes and files always get every byte
        #[arg(long)]
        raw: bool,
    },
    /// Why its nodes ended as they did
    Explain,
}
