//! Pods of several containers: the nodes of a set's containers, and what the ends of containers mean for their pod.

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
use crate::graph::{self, Ties};

/// What a container is called that does not say.
pub(super) const MAIN: &str = "main";

/// The code of a container that could not do its part because of the containers around it.
const NOT_ITS_TURN: i32 = 64;

impl Turn<'_> {
    /// The containers of a set become nodes once their pod is given to a runtime.
    pub(super) fn add_containers(&mut self, at: NodeIx) {
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
            let (phase, message, reused) = match self.run.done_before(&name) {
                Some(done) => (done.phase, done.message.clone(), true),
                // It was over before this one began.
                None if self.run.state.node(at).reused() => continue,
                None => (Phase::Pending, String::new(), false),
            };
            let node = self.born(NodeAdded {
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

    /// A pod that is over has no open container: each ends as it was told, or with its pod.
    pub(super) fn close_containers(&mut self, at: NodeIx, ends: &[MemberEnd], phase: Phase, message: &str) {
        let open = self.view().open_containers(at);
        if open.is_empty() {
            return;
        }
        let instance = self.instance(at).ok();
        let containers = instance.as_ref().and_then(|instance| instance.template.container_set.as_ref());
        let containers = containers.map_or(&[][..], |set| &set.containers);
        for (node, index) in open {
            let told = containers.get(index).and_then(|container| {
                let end = end_of(ends, name_of(container))?;
                Some((end, container))
            });
            match told {
                Some((end, _)) if end.exit.is_some() => self.container_is(node, end),
                Some((_, container)) => match hindrance(container, ends) {
                    Some(why) => self.finish(node, Phase::Error, format!("Error (exit code {NOT_ITS_TURN}): {why}")),
                    None => self.finish(node, phase, message),
                },
                None => self.finish(node, phase, message),
            }
        }
    }

    /// A runtime tells of one container of a pod that runs.
    pub(super) fn container_stands(&mut self, at: NodeIx, member: &MemberEnd) {
        let open = self.view().open_containers(at);
        let Ok(instance) = self.instance(at) else { return };
        let Some(set) = &instance.template.container_set else { return };
        let named = |(_, index): &(NodeIx, usize)| {
            set.containers.get(*index).is_some_and(|container| name_of(container) == member.name)
        };
        if let Some((node, _)) = open.into_iter().find(named) {
            self.container_is(node, member);
        }
    }

    /// What is told of an open container becomes true of its node.
    fn container_is(&mut self, node: NodeIx, told: &MemberEnd) {
        if let (Some(started), Phase::Pending) = (told.started, self.run.state.node(node).phase) {
            self.decide(WorkflowFact::Started { node, at: started });
        }
        if let Some(exit) = &told.exit {
            let (phase, message) = judge(exit, None);
            self.decide(WorkflowFact::Finished(Box::new(NodeFinished {
                node,
                phase,
                message,
                // A clock that was set back meanwhile makes nothing end before it began.
                at: told.ended.unwrap_or(self.now).max(self.run.state.node(node).started),
                outputs: OutputValues::default(),
                outbound: NodeList::default(),
                log_bytes: 0,
            })));
        }
    }
}

impl View<'_> {
    /// The containers of a pod that are not final, with their places in the set.
    fn open_containers(&self, pod: NodeIx) -> Vec<(NodeIx, usize)> {
        let state = &self.run.state;
        let first = state.node(pod).children.iter().find(|child| state.node(**child).kind == NodeKind::Container);
        let Some(first) = first.filter(|_| state.node(pod).kind == NodeKind::Pod) else { return Vec::new() };
        // They came into being one after another, those that wait for others behind them.
        let mut found = Vec::new();
        for (at, node) in state.nodes.iter().enumerate().skip(first.at()) {
            match node.role {
                Role::Container(index) if node.parent == Some(pod) => {
                    if !node.phase.fulfilled() {
                        found.push((NodeIx(at as u32), index as usize));
                    }
                }
                _ => break,
            }
        }
        found
    }
}

pub(super) fn name_of(container: &SetContainer) -> &str {
    container.container.name.as_deref().unwrap_or(MAIN)
}

/// The name of a template's one main container.
pub(super) fn main_name(template: &Template) -> &str {
    let script = template.script.as_ref().map(|script| &script.container);
    template.container.as_ref().or(script).and_then(|container| container.name.as_deref()).unwrap_or(MAIN)
}

/// What the end of a task means, with the message of the container that decided it.
pub(super) fn verdict(template: &Template, end: &End) -> (Phase, String) {
    let known = template.init_containers.len() + template.sidecars.len();
    if end.members.len() <= known {
        // Nobody said anything of containers: there is one only, or none was reached.
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

/// What one container's end means; a message begins with its name when that is not plain from the place.
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

/// Why a container was never started, when another one is the reason.
fn hindrance(container: &SetContainer, ends: &[MemberEnd]) -> Option<String> {
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

/// The places of a set's containers, each after all it depends on. Nothing when they depend on each other in a circle
/// or on one that is not there.
pub(super) fn order(containers: &[SetContainer]) -> Option<Vec<usize>> {
    let places: HashMap<&str, usize> =
        containers.iter().enumerate().map(|(at, container)| (name_of(container), at)).collect();
    let needs = containers.iter().map(|container| {
        container.dependencies.iter().map(|name| places.get(name.as_str()).copied()).collect::<Option<Vec<usize>>>()
    });
    let needs: Vec<Vec<usize>> = needs.collect::<Option<_>>()?;
    graph::sort(needs.len(), Ties::Index, |at| needs[at].iter().copied()).complete()
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
        let verdict = |init, main, one, two| {
            let members = vec![member("before", init), member("main", main), member("one", one), member("two", two)];
            verdict(&template, &end(members))
        };
        let code = |code: i32| Some(Exit::Code(code));
        assert_eq!(verdict(code(0), code(0), code(0), code(0)).0, Phase::Succeeded);
        assert_eq!(verdict(code(0), code(0), code(137), Some(Exit::Signal(15))).0, Phase::Succeeded);
        assert_eq!(
            verdict(code(0), code(0), Some(Exit::Signal(15)), code(2)),
            (Phase::Failed, "two: Error (exit code 2)".to_owned())
        );
        assert_eq!(
            verdict(code(0), code(3), code(2), code(2)),
            (Phase::Failed, "main: Error (exit code 3)".to_owned())
        );
        assert_eq!(
            verdict(Some(Exit::Signal(9)), None, None, None),
            (Phase::Failed, "before: Error (exit code 137)".to_owned())
        );
        let missing = Some(Exit::NotStarted("exec: no".to_owned()));
        assert_eq!(
            verdict(code(0), code(0), missing, code(0)),
            (Phase::Failed, "one: StartError (exit code 128): exec: no".to_owned())
        );
    }

    #[test]
    fn g13_a_container_of_a_set_is_blamed_by_its_name() {
        let template =
            Template { container_set: Some(octoflow_model::argo::ContainerSet::default()), ..Template::default() };
        let members = vec![member("one", Some(Exit::Signal(9))), member("two", None)];
        assert_eq!(verdict(&template, &end(members)), (Phase::Failed, "one: Error (exit code 137)".to_owned()));
    }

    #[test]
    fn the_main_container_may_have_a_name_of_its_own() {
        let container = Container { name: Some("work".to_owned()), ..Container::default() };
        let template = Template { container: Some(container), ..Template::default() };
        let end = End { exit: Exit::Signal(15), ..end(Vec::new()) };
        assert_eq!(verdict(&template, &end), (Phase::Failed, "work: Error (exit code 143)".to_owned()));
    }
}
