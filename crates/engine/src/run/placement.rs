//! The node and devices of a task, as its launch records them. On the machine that a run was submitted on nothing is
//! recorded, so that the journals of a single machine do not grow.

use octoflow_model::task::placement::Assignment;

use crate::engine::capacity::LOCAL;

/// Returns what the fact of a launch records.
pub(crate) fn recorded(mut assignment: Assignment, host: Option<&str>) -> Option<Box<Assignment>> {
    if assignment.node == LOCAL || host == Some(assignment.node.as_str()) {
        assignment.node.clear();
    }
    (assignment != Assignment::default()).then(|| Box::new(assignment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_the_own_machine_is_recorded() {
        let on = |node: &str| Assignment { node: node.to_owned(), ..Assignment::default() };
        assert_eq!(recorded(on("here"), Some("here")), None);
        assert_eq!(recorded(on(LOCAL), Some("here")), None);
        assert_eq!(recorded(on("there"), Some("here")), Some(Box::new(on("there"))));
        assert_eq!(recorded(on("there"), None), Some(Box::new(on("there"))));
        let devices = [("gpu".to_owned(), vec![1])].into();
        let kept = recorded(Assignment { node: "here".to_owned(), devices }, Some("here")).unwrap();
        assert_eq!((kept.node.as_str(), kept.devices.len()), ("", 1));
    }
}
