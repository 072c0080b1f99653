//! Handles pods with several containers: adds the nodes of a container set, and derives the pod's end from theirs.

use std::collections::HashMap;

use octoflow_model::{
    NodeIx,
    argo::{
        NodeAdded, NodeFinished, NodeKind, NodeList, OutputValues, Phase, Role, Template, WorkflowFact,
        body::SetContainer,
    },
    order::{End, Exit},
    pod::MemberEnd,
};

use super::{turn::Turn, view::View};
use crate::graph::{self, TieBreak};

/// Default name of a container.
pub(super) const MAIN: &str = "main";

/// Exit code of a container that could not run because of a container it depends on.
const DEPENDENCY_FAILED: i32 = 64;

impl Turn<'_> {
    /// Adds nodes for the containers of a set once their pod was handed to a runtime. A pod that was preempted keeps those
    /// that it has.
    pub(super) fn add_containers(&mut self, at: NodeIx) {
        if self.run.state.attempt_number(at) > 0 {
            return;
        }
        let Ok(instance) = self.instance(at) else { return };
        let Some(set) = &instance.template.container_set else { return };
        let order = order(&set.containers).unwrap_or_default();
        let (pod, template) = {
            let node = self.run.state.node(at);
            (node.name.clone(), node.template.as_deref().map(str::to_owned))
        };
        let mut nodes: HashMap<&str, NodeIx> = HashMap::new();
        for index in order {
            let container = &set.containers[index];
            let after = container.dependencies.iter().filter_map(|name| nodes.get(name.as_str()).copied());
            let mut after: NodeList = after.collect();
            if after.is_empty() {
                after.push(at);
            }
            let name = format!("{pod}.{}", name_of(container));
            let (phase, message, reused) = match self.run.reused_result(&name) {
                Some(done) => (done.phase, done.message.clone(), true),
                // The reused pod was over before this container began.
                None if self.run.state.node(at).reused() => continue,
                None => (Phase::Pending, String::new(), false),
            };
            let node = self.add_node(NodeAdded {
                name,
                kind: NodeKind::Container,
                role: Role::Container(index as u32),
                parent: Some(at),
                boundary: Some(at),
                after,
                template: template.clone(),
                phase,
                message,
                at: self.now,
                inputs: octoflow_model::argo::InputValues::default(),
                followed: false,
                hooked: false,
                wake: None,
                barred: false,
                display: None,
                reused,
            });
            nodes.insert(name_of(container), node);
        }
    }

    /// Ends all open containers of a pod that is over: each as reported, or like its pod.
    pub(super) fn close_containers(&mut self, at: NodeIx, ends: &[MemberEnd], phase: Phase, message: &str) {
        let open = self.view().open_containers(at);
        if open.is_empty() {
            return;
        }
        let instance = self.instance(at).ok();
        let containers = instance.as_ref().and_then(|instance| instance.template.container_set.as_ref());
        let containers = containers.map_or(&[][..], |set| &set.containers);
        for (node, index) in open {
            let reported = containers.get(index).and_then(|container| {
                let end = end_of(ends, name_of(container))?;
                Some((end, container))
            });
            match reported {
                Some((end, _)) if end.exit.is_some() => self.apply_container_report(node, end),
                Some((_, container)) => match failed_dependency(container, ends) {
                    Some(why) => {
                        self.finish(node, Phase::Error, format!("Error (exit code {DEPENDENCY_FAILED}): {why}"))
                    }
                    None => self.finish(node, phase, message),
                },
                None => self.finish(node, phase, message),
            }
        }
    }

    /// Takes a runtime's report about one container of a running pod.
    pub(super) fn container_reported(&mut self, at: NodeIx, member: &MemberEnd) {
        let open = self.view().open_containers(at);
        let Ok(instance) = self.instance(at) else { return };
        let Some(set) = &instance.template.container_set else { return };
        let named = |(_, index): &(NodeIx, usize)| {
            set.containers.get(*index).is_some_and(|container| name_of(container) == member.name)
        };
        if let Some((node, _)) = open.into_iter().find(named) {
            self.apply_container_report(node, member);
        }
    }

    /// Decides what was reported of an open container for its node.
    fn apply_container_report(&mut self, node: NodeIx, reported: &MemberEnd) {
        if let (Some(started), Phase::Pending) = (reported.started, self.run.state.node(node).phase) {
            self.decide(WorkflowFact::Started { node, at: started });
        }
        if let Some(exit) = &reported.exit {
            let (phase, message) = judge(exit, None);
            self.decide(WorkflowFact::Finished(Box::new(NodeFinished {
                node,
                phase,
                message,
                // Clamp to the start, in case the clock was set back meanwhile.
                at: reported.ended.unwrap_or(self.now).max(self.run.state.node(node).started),
                outputs: OutputValues::default(),
                outbound: NodeList::default(),
                log_bytes: 0,
            })));
        }
    }
}

impl View<'_> {
    /// Returns the open containers of a pod, with their indexes in the set.
    fn open_containers(&self, pod: NodeIx) -> Vec<(NodeIx, usize)> {
        let state = &self.run.state;
        let first = state.node(pod).children.iter().find(|child| state.node(**child).kind == NodeKind::Container);
        let Some(first) = first.filter(|_| state.node(pod).kind == NodeKind::Pod) else { return Vec::new() };
        // Containers were added in one sequence, so the pod's containers are contiguous in the list of nodes.
        let mut found = Vec::new();
        for (at, node) in state.nodes.iter().enumerate().skip(first.at()) {
            let Role::Container(index) = node.role else { break };
            if node.parent != Some(pod) {
                break;
            }
            if !node.phase.fulfilled() {
                found.push((NodeIx(at as u32), index as usize));
            }
        }
        found
    }
}

pub(super) fn name_of(container: &SetContainer) -> &str {
    container.container.name.as_deref().unwrap_or(MAIN)
}

/// Returns the name of a template's single main container.
pub(super) fn main_name(template: &Template) -> &str {
    let script = template.script.as_ref().map(|script| &script.container);
    template.container.as_ref().or(script).and_then(|container| container.name.as_deref()).unwrap_or(MAIN)
}

/// Maps the end of a task to a phase, with the message of the container that decided it.
pub(super) fn judge_end(template: &Template, end: &End) -> (Phase, String) {
    let known = template.init_containers.len() + template.sidecars.len();
    if end.members.len() <= known {
        // No reports of individual containers: there is only one, or none was started.
        return judge(&end.exit, Some(main_name(template)));
    }
    let (before, rest) = end.members.split_at(template.init_containers.len());
    let (main, beside) = rest.split_at(rest.len() - template.sidecars.len());
    let bad = |member: &&MemberEnd| member.exit.is_some() && !member.well();
    let ignored = |member: &&MemberEnd| matches!(member.exit.as_ref().and_then(Exit::code), Some(137 | 143));
    let blamed = before
        .iter()
        .find(bad)
        .or_else(|| main.iter().find(|member| member.name == MAIN && bad(member)))
        .or_else(|| main.iter().find(bad))
        .or_else(|| beside.iter().find(|member| bad(member) && !ignored(member)));
    match blamed.and_then(|member| Some((member, member.exit.as_ref()?))) {
        Some((member, exit)) => judge(exit, Some(&member.name)),
        None if main.iter().all(MemberEnd::well) => (Phase::Succeeded, String::new()),
        None => judge(&end.exit, Some(main_name(template))),
    }
}

/// Maps the end of one container to a phase. The message begins with its name, if given.
fn judge(exit: &Exit, name: Option<&str>) -> (Phase, String) {
    let of = name.map(|name| format!("{name}: ")).unwrap_or_default();
    match exit {
        Exit::Code(0) => (Phase::Succeeded, String::new()),
        Exit::Code(_) | Exit::Signal(_) => {
            let code = exit.code().unwrap_or(-1);
            (Phase::Failed, format!("{of}Error (exit code {code})"))
        }
        Exit::OutOfMemory => (Phase::Failed, format!("{of}OOMKilled (exit code 137)")),
        Exit::NotStarted(why) => (Phase::Failed, format!("{of}StartError (exit code 128): {why}")),
        Exit::Environment(why) => (Phase::Error, why.clone()),
        Exit::Evicted(why) => (Phase::Failed, format!("{of}Evicted (exit code 137): {why}")),
    }
}

/// Why a container was never started, if one that it depends on is the reason.
fn failed_dependency(container: &SetContainer, ends: &[MemberEnd]) -> Option<String> {
    container.dependencies.iter().find_map(|name| {
        let end = end_of(ends, name)?;
        match &end.exit {
            _ if end.well() => None,
            Some(exit) => match exit.code() {
                Some(code) => Some(format!("dependency '{name}' exited with non-zero code: {code}")),
                None => Some(format!("dependency '{name}' could not be started")),
            },
            None => Some(format!("dependency '{name}' did not run")),
        }
    })
}

fn end_of<'e>(ends: &'e [MemberEnd], name: &str) -> Option<&'e MemberEnd> {
    ends.iter().find(|end| end.name == name)
}

/// Sorts the containers of a set topologically. Returns `None` if they depend on each other in a cycle or on a missing
/// one.
pub(super) fn order(containers: &[SetContainer]) -> Option<Vec<usize>> {
    let places: HashMap<&str, usize> =
        containers.iter().enumerate().map(|(at, container)| (name_of(container), at)).collect();
    let needs = containers.iter().map(|container| {
        container.dependencies.iter().map(|name| places.get(name.as_str()).copied()).collect::<Option<Vec<usize>>>()
    });
    let needs: Vec<Vec<usize>> = needs.collect::<Option<_>>()?;
    graph::sort(needs.len(), TieBreak::Index, |at| needs[at].iter().copied()).complete()
}

#[cfg(test)]
mod tests {
    use octoflow_model::{argo::UserContainer, podspec::Container};

    use super::*;

    fn set(list: &[(&str, &[&str])]) -> Vec<SetContainer> {
        let container = |name: &str| Container { name: Some(name.to_owned()), ..Container::default() };
        list.iter()
            .map(|(name, after)| SetContainer {
                container: container(name),
                dependencies: after.iter().map(|name| (*name).to_owned()).collect(),
            })
            .collect()
    }

    #[test]
    fn containers_come_after_what_they_depend_on_and_else_as_written() {
        assert_eq!(order(&set(&[("c", &["a", "b"]), ("b", &[]), ("a", &["b"])])), Some(vec![1, 2, 0]));
        assert_eq!(order(&set(&[("a", &[]), ("b", &[])])), Some(vec![0, 1]));
        assert_eq!(order(&set(&[("a", &["b"]), ("b", &["a"])])), None);
        assert_eq!(order(&set(&[("a", &["nobody"])])), None);
        assert_eq!(order(&set(&[("b", &["a", "a"]), ("a", &[])])), Some(vec![1, 0]));
    }

    fn member(name: &str, exit: Option<Exit>) -> MemberEnd {
        MemberEnd { name: name.to_owned(), started: None, ended: None, exit }
    }

    fn end(members: Vec<MemberEnd>) -> End {
        End {
            exit: Exit::Code(0),
            started: None,
            collected: octoflow_model::order::Collected::default(),
            log_truncated: false,
            log_bytes: 0,
            members,
        }
    }

    #[test]
    fn main_is_blamed_before_its_sidecars_and_killed_sidecars_never_are() {
        let template = Template {
            container: Some(Container::default()),
            init_containers: vec![UserContainer::default()],
            sidecars: vec![UserContainer::default(), UserContainer::default()],
            ..Template::default()
        };
        let judge_end = |init, main, one, two| {
            let members = vec![member("before", init), member("main", main), member("one", one), member("two", two)];
            judge_end(&template, &end(members))
        };
        let code = |code: i32| Some(Exit::Code(code));
        assert_eq!(judge_end(code(0), code(0), code(0), code(0)).0, Phase::Succeeded);
        assert_eq!(judge_end(code(0), code(0), code(137), Some(Exit::Signal(15))).0, Phase::Succeeded);
        assert_eq!(
            judge_end(code(0), code(0), Some(Exit::Signal(15)), code(2)),
            (Phase::Failed, "two: Error (exit code 2)".to_owned())
        );
        assert_eq!(
            judge_end(code(0), code(3), code(2), code(2)),
            (Phase::Failed, "main: Error (exit code 3)".to_owned())
        );
        assert_eq!(
            judge_end(Some(Exit::Signal(9)), None, None, None),
            (Phase::Failed, "before: Error (exit code 137)".to_owned())
        );
        let missing = Some(Exit::NotStarted("exec: no".to_owned()));
        assert_eq!(
            judge_end(code(0), code(0), missing, code(0)),
            (Phase::Failed, "one: StartError (exit code 128): exec: no".to_owned())
        );
    }

    #[test]
    fn g13_a_container_of_a_set_is_blamed_by_its_name() {
        let template =
            Template { container_set: Some(octoflow_model::argo::ContainerSet::default()), ..Template::default() };
        let members = vec![member("one", Some(Exit::Signal(9))), member("two", None)];
        assert_eq!(judge_end(&template, &end(members)), (Phase::Failed, "one: Error (exit code 137)".to_owned()));
    }

    #[test]
    fn the_main_container_may_have_a_name_of_its_own() {
        let container = Container { name: Some("work".to_owned()), ..Container::default() };
        let template = Template { container: Some(container), ..Template::default() };
        let end = End { exit: Exit::Signal(15), ..end(Vec::new()) };
        assert_eq!(judge_end(&template, &end), (Phase::Failed, "work: Error (exit code 143)".to_owned()));
    }
}
