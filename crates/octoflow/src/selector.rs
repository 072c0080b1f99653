//! Selectors people type: labels of runs (`app=x,tier!=db,team in (a,b)`) and fields of nodes (`displayName=approve`).
//! Parsing and matching only.

use octoflow_control::registry::LabelSelector;
use octoflow_store::LabelTest;

use crate::workflow::Node;

/// `a=b,c!=d,e in (f,g),h notin (i),j,!k`
pub(crate) fn labels(text: &str) -> Result<Vec<LabelTest>, String> {
    LabelSelector::parse(text).map(|selector| selector.0)
}

/// Tests on fields of nodes; all must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields {
    tests: Vec<FieldTest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTest {
    field: String,
    value: String,
    negated: bool,
}

impl Fields {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let tests: Result<Vec<FieldTest>, String> =
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(field).collect();
        match tests? {
            tests if tests.is_empty() => Err("a selector needs at least one test, like displayName=approve".to_owned()),
            tests => Ok(Self { tests }),
        }
    }

    pub(crate) fn phase(phase: &str) -> Self {
        Self { tests: vec![FieldTest { field: "phase".to_owned(), value: phase.to_owned(), negated: false }] }
    }

    pub(crate) fn matches(&self, node: Node<'_>) -> bool {
        self.tests.iter().all(|test| (node.field(&test.field).unwrap_or_default() == test.value) != test.negated)
    }
}

fn field(part: &str) -> Result<FieldTest, String> {
    let (field, value, negated) = match part.split_once("!=") {
        Some((field, value)) => (field, value, true),
        None => match part.split_once("==").or_else(|| part.split_once('=')) {
            Some((field, value)) => (field, value, false),
            None => return Err(format!("`{part}` is not a field selector; write field=value or field!=value")),
        },
    };
    Ok(FieldTest { field: field.trim().to_owned(), value: value.trim().to_owned(), negated })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::workflow::Workflow;

    #[test]
    fn label_selectors_are_read_in_all_their_forms() {
        let tests = labels("app=x, tier!=db,team in (a, b),env notin (c),ready,!gone").unwrap();
        let expected = vec![
            LabelTest::Equals { key: "app".into(), value: "x".into() },
            LabelTest::NotIn { key: "tier".into(), values: vec!["db".into()] },
            LabelTest::In { key: "team".into(), values: vec!["a".into(), "b".into()] },
            LabelTest::NotIn { key: "env".into(), values: vec!["c".into()] },
            LabelTest::Exists { key: "ready".into() },
            LabelTest::Absent { key: "gone".into() },
        ];
        assert_eq!(tests, expected);
        assert_eq!(labels("").unwrap(), Vec::new());
        for wrong in ["=x", "a in b", "a b"] {
            assert!(labels(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn field_selectors_pick_nodes() {
        let object = json!({"status": {"nodes": {"a": {"id": "a", "displayName": "A", "phase": "Failed"}}}});
        let node = Workflow::new(&object).nodes()[0];
        let matches = |text: &str| Fields::parse(text).unwrap().matches(node);
        assert!(matches("displayName=A") && matches("phase=Failed,displayName!=B"));
        assert!(!matches("displayName=B") && !matches("phase!=Failed"));
        assert!(Fields::parse("phase").is_err() && Fields::parse("").is_err());
    }
}
