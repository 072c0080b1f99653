//! What `octoflow kubeconfig` accepts. Which server it leads to is said as for every command.

use clap::Args;

use super::Namespace;

#[derive(Debug, Args)]
pub(crate) struct Kubeconfig {
    #[command(flatten)]
    pub namespace: Namespace,
}
