//! What `octoflow kubeconfig` accepts.

use std::path::PathBuf;

use clap::Args;

use super::Namespace;

#[derive(Debug, Args)]
pub(crate) struct Kubeconfig {
    /// The server it leads to
    #[arg(
        long,
        value_name = "URL",
        env = "OCTOFLOW_SERVER",
        hide_env_values = true,
        default_value = "http://127.0.0.1:2746"
    )]
    pub server: String,
    /// Who you are to the server
    #[arg(long, env = "OCTOFLOW_TOKEN", hide_env_values = true, default_value = "admin")]
    pub token: String,
    /// Check the server's certificate against this one
    #[arg(long, value_name = "FILE", env = "OCTOFLOW_CA_FILE", hide_env_values = true)]
    pub ca_file: Option<PathBuf>,
    /// Trust any certificate of the server
    #[arg(long, conflicts_with = "ca_file")]
    pub insecure_skip_verify: bool,
    #[command(flatten)]
    pub namespace: Namespace,
}
