//! Detects processes that the tests started and left running: servers, spawners and tasks. Each is recognised by an
//! environment variable with a value unique to one run of the tests. Never kills them: they are evidence.

use std::{
    fs, process, thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, bail};

/// Environment variable of everything that a run of the tests starts.
pub const VARIABLE: &str = "OCTOFLOW_TEST_RUN";

/// Environment variable of every task.
const TASK: &str = "OCTOFLOW_ATTEMPT=";

/// Time that the last ones may take to exit: a spawner whose data directory was deleted notices within seconds, and its
/// tasks have a grace period of 30 seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// One run of the tests.
pub struct TestRun {
    id: String,
}

impl TestRun {
    /// Creates a run with an id that no other run on this machine has.
    pub fn new() -> TestRun {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        TestRun { id: format!("{}-{}", process::id(), since.as_nanos()) }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Fails if a process of this run is still there, and names each.
    pub fn check(&self) -> Result<()> {
        let give_up = Instant::now() + PATIENCE;
        loop {
            let left = self.left();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > give_up {
                let list: String = left.iter().map(|one| format!("\n    {one}")).collect();
                bail!(
                    "the tests left {} processes running, each is a bug of a test or of the program:{list}",
                    left.len()
                );
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Returns pid and command line of every process of this run that this user may inspect.
    pub fn left(&self) -> Vec<String> {
        let mark = format!("{VARIABLE}={}", self.id);
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().into_string().ok()?.parse::<u32>().ok());
        let ours = numbers.filter(|number| *number != process::id()).filter_map(|number| {
            let environment = fs::read(format!("/proc/{number}/environ")).ok()?;
            let words = || environment.split(|byte| *byte == 0);
            let command = fs::read(format!("/proc/{number}/cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ").trim_end().to_owned();
            // A server or compiler that a tool keeps running for its own purposes does not count.
            let program = fs::read_link(format!("/proc/{number}/exe")).unwrap_or_default();
            let own = program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("octoflow"));
            let task = words().any(|word| word.starts_with(TASK.as_bytes()));
            let own = own || command.contains("__spawner") || task;
            let of_this_run = words().any(|word| word == mark.as_bytes());
            (own && of_this_run && !command.is_empty()).then(|| format!("{number}: {command}"))
        });
        ours.collect()
    }
}

impl Default for TestRun {
    fn default() -> TestRun {
        TestRun::new()
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn sleep(run: &TestRun, task: bool) -> Child {
        let mut command = Command::new("sleep");
        command.arg("600").env_remove("OCTOFLOW_ATTEMPT").env(VARIABLE, run.id());
        if task {
            command.env("OCTOFLOW_ATTEMPT", "x:1.2.0");
        }
        command.spawn().unwrap()
    }

    #[test]
    fn a_task_of_this_run_is_found_by_its_number_and_others_are_not() {
        let (own, other) = (TestRun { id: "own-1".to_owned() }, TestRun { id: "own-10".to_owned() });
        let mut children = [sleep(&own, true), sleep(&own, false), sleep(&other, true)];
        // A child has its environment once it has become the program.
        let give_up = Instant::now() + Duration::from_secs(30);
        while own.left().is_empty() && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(10));
        }
        let left = own.left();
        children.iter_mut().for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        assert_eq!(left, [format!("{}: sleep 600", children[0].id())]);
        assert!(own.check().is_ok(), "they are gone");
    }
}
