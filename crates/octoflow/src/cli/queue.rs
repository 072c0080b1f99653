//! Arguments of `octoflow queue`.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{
    format::{Format, StoredFormats, one_of},
    span,
};

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// List the queues as a tree, with what each uses, deserves and may use
    #[command(visible_alias = "ls")]
    List(QueueList),
    /// Print queues
    Get(QueueNames),
    /// Create a queue
    Create(QueueCreate),
    /// Change a queue; it acts at once
    Set(QueueSet),
    /// Let queues take work again
    Open(QueueNames),
    /// Take nothing new into queues; what is there goes on
    Close(QueueNames),
    /// Delete queues that have neither queues below them nor work
    #[command(visible_alias = "rm")]
    Delete(QueueNames),
}

#[derive(Debug, Args)]
pub(crate) struct QueueList {
    #[arg(short, long, value_parser = one_of::<StoredFormats>, value_name = "wide|name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
    /// Leave out the titles of the columns
    #[arg(long)]
    pub no_headers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QueueNames {
    /// Names of queues
    #[arg(value_name = "QUEUE", required = true)]
    pub names: Vec<String>,
    #[arg(short, long, value_parser = one_of::<StoredFormats>, value_name = "name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
}

#[derive(Debug, Args)]
pub(crate) struct QueueCreate {
    /// The name of the queue
    pub name: String,
    #[command(flatten)]
    pub fields: QueueFields,
}

#[derive(Debug, Args)]
pub(crate) struct QueueSet {
    /// The name of the queue
    pub name: String,
    #[command(flatten)]
    pub fields: QueueFields,
}

/// What can be said about a queue. Amounts are written as cpu=4,memory=8Gi.
#[derive(Debug, Args)]
pub(crate) struct QueueFields {
    /// The queue above it [default: root]
    #[arg(long, value_name = "QUEUE")]
    pub parent: Option<String>,
    /// Its part of what the parent has, among its siblings [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub weight: Option<u32>,
    /// Siblings of a higher priority are served first [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i32>,
    /// What is kept for it, also while it has no work
    #[arg(long, value_name = "NAME=AMOUNT,…")]
    pub guarantee: Option<String>,
    /// What it gets back from others when it has work
    #[arg(long, value_name = "NAME=AMOUNT,…")]
    pub deserved: Option<String>,
    /// The most it uses, with what it borrows
    #[arg(long, value_name = "NAME=AMOUNT,…")]
    pub capability: Option<String>,
    /// Whether others may take back what it borrowed [default: true]
    #[arg(long, value_name = "true|false")]
    pub reclaimable: Option<bool>,
    /// strict: nothing passes the first task that does not fit [default: traverse]
    #[arg(long, value_enum)]
    pub dequeue_strategy: Option<DequeueStrategy>,
    /// spread: tasks go to the emptiest node [default: pack]
    #[arg(long, value_enum)]
    pub placement: Option<Placement>,
    /// After this wait a task is first in the queue [default: 1h]
    #[arg(long, value_parser = span::parse, value_name = "SPAN")]
    pub longest_wait: Option<Duration>,
    #[arg(short, long, value_parser = one_of::<StoredFormats>, value_name = "name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DequeueStrategy {
    Strict,
    Traverse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Placement {
    Pack,
    Spread,
}
