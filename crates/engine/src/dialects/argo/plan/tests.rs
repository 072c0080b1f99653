//! Tests plans of small workflows.

use octoflow_manifest::{Limits, read};

use super::*;
use crate::run::plan::{LongestPath, longest_path};

fn look(spec: &str) -> WorkflowPlan {
    look_within(spec, PlanBounds::default())
}

fn look_within(spec: &str, bounds: PlanBounds) -> WorkflowPlan {
    let text = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: w}}\nspec:{}",
        spec.replace('\n', "\n  ")
    );
    let manifest = read("test", text.as_bytes(), &Limits::default()).unwrap().remove(0).value;
    plan(&manifest, &Stored::default(), bounds).unwrap()
}

fn names(item: &PlannedCall) -> Vec<(&str, usize)> {
    item.children.iter().map(|child| (child.name.as_str(), child.wave)).collect()
}

fn weigh(plan: &WorkflowPlan) -> LongestPath {
    longest_path(plan, &|_| None)
}

const LEAF: &str = "
- {name: leaf, inputs: {parameters: [{name: m, default: x}]}, container: {image: i, command: [c]}}";

#[test]
fn what_depends_on_time_or_chance_is_not_known_yet() {
    let plan = look(&format!(
        "
entrypoint: main
templates:{LEAF}
- name: main
  steps: [[{{name: a, template: leaf, when: '{{{{=now().Year()}}}} > 2000'}}, {{name: b, template: leaf, when: '{{{{=1 + 1}}}} > 2000'}}]]"
    ));
    let conditions: Vec<&CallCondition> = plan.root.children.iter().map(|item| &item.condition).collect();
    assert!(matches!(conditions[..], [CallCondition::Open(_), CallCondition::Never(_)]), "{conditions:?}");
}

#[test]
fn a_graph_has_waves_and_a_longest_chain() {
    let plan = look(&format!(
        "
entrypoint: main
onExit: leaf
templates:{LEAF}
- name: main
  dag:
    tasks:
    - {{name: d, template: leaf, depends: b && c}}
    - {{name: a, template: leaf}}
    - {{name: b, template: leaf, depends: a}}
    - {{name: c, template: pair, dependencies: [a]}}
    - {{name: e, template: leaf, depends: a.Failed}}
- name: pair
  steps: [[{{name: one, template: leaf}}, {{name: two, template: leaf}}], [{{name: three, template: leaf}}]]"
    ));
    let mut waves = names(&plan.root);
    waves.sort_unstable();
    assert_eq!(waves, [("a", 1), ("b", 2), ("c", 2), ("d", 3), ("e", 2)]);
    let found = weigh(&plan);
    assert_eq!((found.least, found.most), (7, Some(8)), "whether e runs is open");
    assert_eq!(found.chain, ["a", "c.one", "c.three", "d", "onExit"]);
    let slow = longest_path(&plan, &|template| (template == "leaf").then_some(std::time::Duration::from_secs(10)));
    assert_eq!(slow.span, Some(std::time::Duration::from_secs(50)));
}

#[test]
fn values_known_before_decide_conditions_and_loops() {
    let plan = look(&format!(
        "
entrypoint: main
arguments: {{parameters: [{{name: env, value: prod}}, {{name: list, value: '[\"x\", \"z\"]'}}, {{name: many, value: 3}}]}}
templates:{LEAF}
- name: main
  inputs: {{parameters: [{{name: env}}]}}
  steps:
  - - {{name: never, template: leaf, when: '{{{{workflow.parameters.env}}}} == dev'}}
    - {{name: always, template: leaf, when: '{{{{inputs.parameters.env}}}} == prod'}}
    - {{name: computed, template: leaf, when: '{{{{=asInt(workflow.parameters.many) > 2}}}}'}}
  - - {{name: each, template: leaf, withParam: '{{{{workflow.parameters.list}}}}', when: '{{{{item}}}} != z'}}
    - {{name: count, template: leaf, withSequence: {{count: '{{{{workflow.parameters.many}}}}'}}}}
    - {{name: later, template: leaf, withParam: '{{{{steps.always.outputs.result}}}}'}}
    - {{name: maybe, template: leaf, when: '{{{{steps.always.outputs.result}}}} == yes'}}"
    ));
    let by_name = |name: &str| plan.root.children.iter().find(|child| child.name == name).unwrap();
    assert_eq!(by_name("never").condition, CallCondition::Never("prod == dev".to_owned()));
    assert_eq!(by_name("always").condition, CallCondition::Always);
    assert_eq!(by_name("computed").condition, CallCondition::Always);
    assert_eq!(names(by_name("each")), [("each(0:x)", 1), ("each(1:z)", 1)]);
    assert_eq!(by_name("each").children[1].condition, CallCondition::Never("z != z".to_owned()));
    assert_eq!(by_name("count").rounds, Rounds::Known(3));
    assert_eq!(by_name("later").rounds, Rounds::Open("{{steps.always.outputs.result}}".to_owned()));
    assert_eq!(by_name("maybe").condition, CallCondition::Open("{{steps.always.outputs.result}} == yes".to_owned()));
    let found = weigh(&plan);
    assert_eq!((found.least, found.most), (6, None));
}

#[test]
fn recursion_ends_where_a_condition_is_open_or_does_not_hold() {
    let flip = look(&format!(
        "
entrypoint: flip
templates:{LEAF}
- name: flip
  steps:
  - - {{name: toss, template: leaf}}
  - - {{name: again, template: flip, when: '{{{{steps.toss.outputs.result}}}} == tails'}}"
    ));
    assert_eq!(flip.root.children[1].cut, Some(NotExpanded::Recursion));
    assert_eq!(weigh(&flip).most, None);
    let down = look(&format!(
        "
entrypoint: down
arguments: {{parameters: [{{name: many, value: 3}}]}}
templates:{LEAF}
- name: down
  inputs: {{parameters: [{{name: many}}]}}
  steps:
  - - {{name: work, template: leaf}}
  - - name: next
      template: down
      when: '{{{{inputs.parameters.many}}}} > 1'
      arguments: {{parameters: [{{name: many, value: '{{{{=asInt(inputs.parameters.many) - 1}}}}'}}]}}"
    ));
    let found = weigh(&down);
    assert_eq!((found.least, found.most), (3, Some(3)));
    assert_eq!(found.chain, ["work", "next.work", "next.next.work"]);
}

#[test]
fn large_workflows_are_cut_and_still_counted() {
    let spec = format!(
        "
entrypoint: main
templates:{LEAF}
- name: main
  steps: [[{{name: each, template: inner, withSequence: {{count: 1000}}}}]]
- name: inner
  steps: [[{{name: in, template: leaf, withSequence: {{count: 1000}}}}]]"
    );
    let plan = look(&spec);
    assert_eq!(plan.root.children[0].cut, Some(NotExpanded::Rounds(980)));
    let found = weigh(&plan);
    assert_eq!((found.least, found.most), (1_000_000, Some(1_000_000)));
    let tiny = look_within(&spec, PlanBounds { items: 10, of_a_loop: 20 });
    assert!(tiny.cut);
}

#[test]
fn targets_leave_out_what_they_do_not_need() {
    let plan = look(&format!(
        "
entrypoint: main
templates:{LEAF}
- name: main
  dag:
    target: b
    tasks: [{{name: a, template: leaf}}, {{name: b, template: leaf, depends: a}}, {{name: c, template: leaf}}]"
    ));
    assert_eq!(names(&plan.root), [("a", 1), ("b", 2)]);
}
