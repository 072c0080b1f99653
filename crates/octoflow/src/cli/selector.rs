//! Selectors on the command line: labels of runs (`app=x,tier!=db,team in (a,b)`) and fields of nodes
//! (`displayName=approve`). Parsing and matching only.

use octoflow_control::registry::{FieldSelector, FieldTest, LabelSelector};
use octoflow_store::LabelTest;

use crate::source::workflow::Node;

/// Parses `a=b,c!=d,e in (f,g),h notin (i),j,!k`.
pub(crate) fn labels(text: &str) -> Result<Vec<LabelTest>, String> {
    Ok(LabelSelector::parse(text)?.0)
}

/// Tests on fields of nodes; all must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields(FieldSelector);

impl Fields {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match FieldSelector::parse(text)? {
            selector if selector.0.is_empty() => {
                Err("a selector needs at least one test, like displayName=approve".to_owned())
            }
            selector => Ok(Self(selector)),
        }
    }

    pub(crate) fn phase(phase: &str) -> Self {
        let test = FieldTest { field: "phase".to_owned(), value: phase.to_owned(), equal: true };
        Self(FieldSelector(vec![test]))
    }

    pub(crate) fn matches(&self, node: Node<'_>) -> bool {
        self.0.0.iter().all(|test| (node.field(&test.field).unwrap_or_default() == test.value) == test.equal)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::source::workflow::Workflow;

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
