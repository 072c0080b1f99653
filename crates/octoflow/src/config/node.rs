//! This machine as a node: its capacity, and how steps are isolated.

use std::{fs, thread};

use anyhow::{Context as _, Result};
use octoflow_control::{Capacity, Config, NodeConfig, Place};
use octoflow_engine::schedule::spec::NodeSpec;
use octoflow_runtime::{egress::Policy, process};

use crate::{
    cli::{Execution, Isolation, NodeArgs},
    commands::Context,
    config::{self, system},
};

/// Steps wait more than they compute, so more of them run than there are cores.
const STEPS_PER_CORE: usize = 4;

/// Minimum: even on a small machine, steps that wait for each other must be able to run concurrently.
const MIN_STEPS: usize = 16;

/// Returns the configuration of a controller on this machine. Files of this process are private from here on.
pub(crate) fn config(execution: &Execution, egress: Policy, context: &Context) -> Result<Config> {
    system::keep_files_private();
    let own = std::env::current_exe().context("cannot find the program itself, which starts the steps")?;
    let mut processes = process::Config::new(&context.data_dir, own);
    processes.isolation = match execution.isolation {
        Isolation::Overlay => process::Isolation::Overlay,
        Isolation::None => process::Isolation::None,
    };
    processes.plugin_egress = egress.clone();
    processes.egress = egress;
    let disk = config::disk()?;
    (processes.space_floor, processes.storage_limit) = (disk.keep_free, disk.task_limit);
    Ok(Config {
        data_dir: context.data_dir.clone(),
        capacity: capacity(execution.parallelism),
        node: NodeConfig { capacity: execution.node.capacity()?, labels: execution.node.labels()? },
        place: Place::Processes(Box::new(processes)),
        secrets_key: context.secrets_key()?,
    })
}

/// Returns this machine as the node that tasks will run on.
pub(crate) fn this_node(args: &NodeArgs, parallelism: Option<u32>, context: &Context) -> Result<NodeSpec> {
    let config = NodeConfig { capacity: args.capacity()?, labels: args.labels()? };
    Ok(octoflow_control::this_node(capacity(parallelism), &config, &context.data_dir))
}

/// Returns the capacity of this machine.
fn capacity(parallelism: Option<u32>) -> Capacity {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    Capacity {
        slots: parallelism.map_or((cores * STEPS_PER_CORE).max(MIN_STEPS), |wanted| wanted as usize),
        cpu_milli: cores as u64 * 1000,
        memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|text| memory(&text)).unwrap_or(u64::MAX),
    }
}

fn memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_measured_and_the_user_may_limit_it() {
        assert_eq!(memory("MemFree: 1 kB\nMemTotal:       16384 kB\n"), Some(16384 * 1024));
        assert_eq!(memory("nothing"), None);
        assert_eq!(capacity(Some(3)).slots, 3);
        assert!(capacity(None).slots >= MIN_STEPS);
    }
}
