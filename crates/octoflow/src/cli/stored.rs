//! Arguments of commands about stored objects of a server: templates, cron workflows, finished runs, tokens; and of the
//! settings file.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Subcommand};

use super::{
    After, Labels, Namespace,
    format::{Format, GetFormats, ObjectFormats, RunFormats, StoredFormats, key_value, one_of},
    label_selector,
};
use crate::cli::span;

#[derive(Debug, Subcommand)]
pub(crate) enum StoredCommand {
    /// Create from files
    Create(StoredFiles),
    /// Replace existing ones from files
    Update(StoredFiles),
    /// Print some by name
    Get(StoredNames),
    /// List them
    #[command(visible_alias = "ls")]
    List(StoredList),
    /// Delete some
    #[command(visible_alias = "rm")]
    Delete(StoredDelete),
    /// Check files against what the server has
    Lint(StoredFiles),
}

#[derive(Debug, Args)]
pub(crate) struct StoredFiles {
    /// Manifests; `-` is standard input, a directory means its .yaml, .yml and .json files
    #[arg(value_name = "FILE", required = true)]
    pub manifests: Vec<PathBuf>,
    #[command(flatten)]
    pub namespace: Namespace,
    #[arg(short, long, value_parser = one_of::<StoredFormats>, value_name = "name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct StoredNames {
    /// Names
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    #[arg(short, long, value_parser = one_of::<StoredFormats>, value_name = "name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct StoredList {
    #[command(flatten)]
    pub namespace: Namespace,
    /// Those of every namespace
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Only those with these labels, like app=x,tier!=db
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = label_selector)]
    pub selector: Option<Labels>,
    #[arg(short, long, value_parser = one_of::<StoredFormats>, value_name = "wide|name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
    /// Omit the column headers
    #[arg(long)]
    pub no_headers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoredDelete {
    /// Names
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "selector"])]
    pub names: Vec<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// All of the namespace
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// All with these labels, like app=x,tier!=db
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = label_selector, conflicts_with = "names")]
    pub selector: Option<Labels>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    /// List finished runs with their uids
    #[command(visible_alias = "ls")]
    List(ArchiveList),
    /// Show one and the tree of its nodes
    Get(ArchiveGet),
    /// Delete some
    #[command(visible_alias = "rm")]
    Delete(ArchiveUids),
    /// Rerun what failed in them
    Retry(ArchiveRerun),
    /// Submit them once more as new runs
    Resubmit(ArchiveRerun),
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveList {
    #[command(flatten)]
    pub namespace: Namespace,
    /// Runs of every namespace
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Only runs with these labels, like app=x,tier!=db
    #[arg(short = 'l', long, value_name = "SELECTOR", value_parser = label_selector)]
    pub selector: Option<Labels>,
    /// Only runs whose name has this prefix
    #[arg(long)]
    pub prefix: Option<String>,
    /// At most this many; 0 means all
    #[arg(long, default_value_t = 500)]
    pub limit: usize,
    #[arg(short, long, value_parser = one_of::<StoredFormats>, value_name = "wide|name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
    /// Omit the column headers
    #[arg(long)]
    pub no_headers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveGet {
    /// The uid of the run
    pub uid: String,
    #[arg(short, long, value_parser = one_of::<GetFormats>, value_name = "wide|short|name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveUids {
    /// The uids of runs
    #[arg(value_name = "UID", required = true)]
    pub uids: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ArchiveRerun {
    /// The uids of runs
    #[arg(value_name = "UID", required = true)]
    pub uids: Vec<String>,
    /// Reuse the results of steps that succeeded (of `resubmit`)
    #[arg(long)]
    pub memoized: bool,
    /// Let --node-field-selector choose nodes that succeeded, too (of `retry`)
    #[arg(long, requires = "node_field_selector")]
    pub restart_successful: bool,
    /// Nodes like this, e.g. displayName=build (of `retry`)
    #[arg(long, value_name = "SELECTOR")]
    pub node_field_selector: Option<String>,
    /// Set a parameter to another value
    #[arg(short = 'p', long = "parameter", value_name = "NAME=VALUE", value_parser = key_value)]
    pub parameters: Vec<(String, String)>,
    #[command(flatten)]
    pub after: After,
    /// What to print: the object as json or yaml, its name, or its tree (wide)
    #[arg(short, long, value_parser = one_of::<RunFormats>, value_name = "json|yaml|name|wide")]
    pub output: Option<Format>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// List tokens with what they may do; the tokens themselves are not kept
    #[command(visible_alias = "ls")]
    List {
        #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
        output: Option<Format>,
    },
    /// Create a token and print it, this one time
    Create(TokenCreate),
    /// Give a token other privileges
    Update(TokenUpdate),
    /// Delete tokens
    #[command(visible_alias = "rm")]
    Delete {
        /// Ids of tokens, or names that one token has
        #[arg(value_name = "ID|NAME", required = true)]
        names: Vec<String>,
    },
    /// Choose another password of the administrator; `-` reads it from standard input
    SetAdmin {
        #[arg(value_name = "PASSWORD|-")]
        password: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TokenUpdate {
    /// Id of the token, or a name that one token has
    #[arg(value_name = "ID|NAME")]
    pub name: String,
    /// What it may do from now on: read_job, write_job, read_feature, write_feature, read_token, write_token, admin
    #[arg(long = "privilege", value_name = "PRIVILEGE", value_delimiter = ',', required = true)]
    pub privileges: Vec<String>,
    /// Only in these namespaces [default: those that it is for already]
    #[arg(long = "for-namespace", value_name = "NS", value_delimiter = ',')]
    pub namespaces: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TokenCreate {
    /// What to call it
    pub name: String,
    /// What it may do: read_job, write_job, read_feature, write_feature, read_token, write_token, admin
    #[arg(long = "privilege", value_name = "PRIVILEGE", value_delimiter = ',', required = true)]
    pub privileges: Vec<String>,
    /// The namespaces it is for; all of them when left out
    #[arg(short = 'n', long = "namespace", value_name = "NAMESPACE", value_delimiter = ',')]
    pub namespaces: Vec<String>,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// How long it is valid [default: without end]
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub expires_in: Option<Duration>,
    #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
    pub output: Option<Format>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print what is set; a token is not shown
    View {
        #[arg(short, long, value_parser = one_of::<ObjectFormats>, value_name = "json|yaml")]
        output: Option<Format>,
    },
    /// Set server, token, ca-file or insecure-skip-verify; an empty value removes the setting
    Set { key: String, value: String },
    /// Print where the file is
    Path,
}
