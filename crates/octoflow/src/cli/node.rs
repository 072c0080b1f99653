//! Arguments about nodes: what this machine declares about itself, and the nodes of a server.

use anyhow::Result;
use clap::{Args, Subcommand};
use octoflow_engine::{kinds::scheduling::parse_quantities, schedule::spec::Quantities};
use octoflow_model::task::Labels;

use super::{
    Namespace,
    format::{Format, StoredFormats, key_value, node_phase, one_of},
};
use crate::exit::Failure;

/// What somebody declares about this machine.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct NodeArgs {
    /// What this machine has, such as cpu=8,memory=16Gi,nvidia.com/gpu=4. Declared amounts are never exceeded; others are
    /// measured
    #[arg(long, value_name = "NAME=AMOUNT,…", env = "OCTOFLOW_NODE_CAPACITY", hide_env_values = true)]
    pub node_capacity: Option<String>,
    /// Labels of this machine, which selectors of tasks are compared with. May be given several times
    #[arg(
        long = "node-label",
        value_name = "NAME=VALUE",
        env = "OCTOFLOW_NODE_LABELS",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub node_labels: Vec<String>,
}

impl NodeArgs {
    pub(crate) fn capacity(&self) -> Result<Quantities> {
        let text = self.node_capacity.as_deref().unwrap_or_default();
        Ok(parse_quantities(text).map_err(|why| {
            Failure::usage(format!("--node-capacity: {why}"))
                .help("write for example cpu=8,memory=16Gi,nvidia.com/gpu=4")
        })?)
    }

    pub(crate) fn labels(&self) -> Result<Labels> {
        let given = self.node_labels.iter().filter(|pair| !pair.is_empty());
        let pair = |pair: &String| key_value(pair).map_err(|why| Failure::usage(format!("--node-label: {why}")).into());
        given.map(pair).collect()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// List the nodes of a server with what they have and what is in use
    #[command(visible_alias = "ls")]
    List(NodeNames),
    /// Print nodes
    Get(NodeNames),
    /// Declare what a node has (--capacity), or give nodes of a workflow that wait values, a message or an end
    /// (--node-field-selector)
    Set(NodeSet),
    /// Change the labels of a node: NAME=VALUE sets one, NAME- removes it
    Label(NodeLabel),
    /// Start nothing new on nodes
    Cordon(NodeNames),
    /// Let nodes take tasks again
    Uncordon(NodeNames),
    /// Start nothing new on nodes, and end what runs there; it waits again
    Drain(NodeDrain),
}

#[derive(Debug, Args)]
pub(crate) struct NodeNames {
    /// Names of nodes; all of them when left out
    #[arg(value_name = "NODE")]
    pub names: Vec<String>,
    #[arg(short, long, value_parser = one_of::<StoredFormats>, value_name = "wide|name|json|yaml|jsonpath=…")]
    pub output: Option<Format>,
    /// Leave out the titles of the columns
    #[arg(long)]
    pub no_headers: bool,
}

#[derive(Debug, Args)]
pub(crate) struct NodeDrain {
    /// Names of nodes
    #[arg(value_name = "NODE", required = true)]
    pub names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeLabel {
    /// The name of the node
    #[arg(value_name = "NODE")]
    pub name: String,
    /// NAME=VALUE to set a label, NAME- to remove it
    #[arg(value_name = "NAME=VALUE|NAME-", required = true)]
    pub changes: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct NodeSet {
    /// The node; with --node-field-selector the run's name, where @latest is the newest
    pub name: String,
    /// Declare what the node has, such as cpu=8,memory=16Gi; an amount of `-` goes back to what was measured
    #[arg(long, value_name = "NAME=AMOUNT,…", conflicts_with_all = ["node_field_selector", "phase", "message", "output_parameters", "namespace"])]
    pub capacity: Option<String>,
    #[command(flatten)]
    pub namespace: Namespace,
    /// Which of the waiting nodes, e.g. displayName=approve
    #[arg(long, value_name = "SELECTOR", required_unless_present = "capacity")]
    pub node_field_selector: Option<String>,
    /// End them in this phase
    #[arg(long, value_name = "PHASE", value_parser = node_phase)]
    pub phase: Option<String>,
    /// What to say about it
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
    /// A value for an output the node expects
    #[arg(short = 'p', long = "output-parameter", value_name = "NAME=VALUE", value_parser = key_value)]
    pub output_parameters: Vec<(String, String)>,
}
