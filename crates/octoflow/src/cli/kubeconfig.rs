//! Arguments of `octoflow kubeconfig`. The server is chosen as for every command.

use clap::Args;

use super::Namespace;

#[derive(Debug, Args)]
pub(crate) struct Kubeconfig {
    #[command(flatten)]
    pub namespace: Namespace,
}
