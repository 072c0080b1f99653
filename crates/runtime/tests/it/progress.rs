//! Progress reported by tasks.

use octoflow_model::{order::Report, task::Task};

use crate::rig::{Rig, sh};

fn telling(script: &str) -> Task {
    Task { progress: Some("HOW_FAR".to_owned()), ..sh(script) }
}

fn told(rig: &Rig, attempt: octoflow_model::ids::AttemptId) -> Vec<(u32, u32)> {
    let reports = rig.reports(attempt).iter();
    reports
        .filter_map(|report| match report {
            Report::Progress { done, total, .. } => Some((*done, *total)),
            _ => None,
        })
        .collect()
}

pub(crate) fn j22_progress_is_told_while_a_task_runs() {
    for mut rig in [Rig::new(), Rig::plain()] {
        let gate = crate::rig::fresh_dir();
        let path = gate.path().join("gate");
        let script = format!("echo 0/100 > \"$HOW_FAR\"; until [ -e '{}' ]; do sleep 0.05; done", path.display());
        let mut task = telling(&script);
        if rig.isolated {
            let source = octoflow_model::task::MountSource::Host { path: gate.path().display().to_string() };
            let path = gate.path().display().to_string();
            task.mounts = vec![octoflow_model::task::Mount { path, source, sub_path: None, read_only: true }];
        }
        let attempt = rig.start(task);
        rig.progress(attempt);
        assert_eq!(told(&rig, attempt), [(0, 100)]);
        std::fs::write(&path, "").unwrap();
        rig.end(attempt);
        assert_eq!(told(&rig, attempt), [(0, 100)], "what was told once is not told again");
    }
}

pub(crate) fn what_was_said_last_is_told_at_the_end() {
    for mut rig in [Rig::new(), Rig::plain()] {
        let (attempt, _) = rig.run(telling("echo 1/4 > \"$HOW_FAR\"; echo 3/4 >> \"$HOW_FAR\"; exit 1"));
        assert_eq!(told(&rig, attempt), [(3, 4)]);
        let (other, _) = rig.run(telling("test ! -e $HOW_FAR"));
        assert_eq!(told(&rig, other), [], "nothing of the last task is left");
    }
}

pub(crate) fn nonsense_is_no_progress() {
    let mut rig = Rig::new();
    for script in ["echo soon > \"$HOW_FAR\"", "mkdir $HOW_FAR", "ln -s /dev/zero $HOW_FAR", "mkfifo $HOW_FAR", "true"]
    {
        let (attempt, end) = rig.run(telling(script));
        assert_eq!((end.exit.code(), told(&rig, attempt)), (Some(0), Vec::new()), "{script}");
    }
}
