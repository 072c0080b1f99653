//! The `fields` parameter: which parts of an answer are wanted, or with a leading `-`, which are not. Paths begin at
//! the root of the answer and pass through lists; the mask knows nothing else about the format.

use serde_json::Value;

use crate::answer::query::Query;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mask {
    paths: Vec<Vec<String>>,
    excludes: bool,
}

impl Mask {
    pub(crate) fn of(query: &Query) -> Self {
        Self::parse(query.get("fields").unwrap_or_default())
    }

    pub(crate) fn parse(text: &str) -> Self {
        let (text, excludes) = match text.strip_prefix('-') {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let paths = text.split(',').map(str::trim).filter(|path| !path.is_empty());
        Self { paths: paths.map(|path| path.split('.').map(str::to_owned).collect()).collect(), excludes }
    }

    /// Keeps this path whatever else is selected.
    pub(crate) fn always(mut self, path: &str) -> Self {
        if !self.paths.is_empty() && !self.excludes {
            self.paths.push(path.split('.').map(str::to_owned).collect());
        }
        self
    }

    /// Returns whether anything at, below or above this path is wanted.
    pub(crate) fn wants(&self, path: &str) -> bool {
        let path: Vec<&str> = path.split('.').collect();
        let begins = |one: &Vec<String>| one.iter().zip(&path).all(|(a, b)| a == b);
        if self.paths.is_empty() {
            return true;
        }
        match self.excludes {
            true => !self.paths.iter().any(|one| one.len() <= path.len() && begins(one)),
            false => self.paths.iter().any(begins),
        }
    }

    pub(crate) fn apply(&self, value: &mut Value) {
        if self.paths.is_empty() {
            return;
        }
        let paths: Vec<&[String]> = self.paths.iter().map(Vec::as_slice).collect();
        if self.excludes { without(value, &paths) } else { only(value, &paths) }
    }
}

fn without(value: &mut Value, paths: &[&[String]]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| without(item, paths)),
        Value::Object(fields) => {
            fields.retain(|name, inner| {
                let below = below(name, paths);
                if below.iter().any(|rest| rest.is_empty()) {
                    return false;
                }
                if !below.is_empty() {
                    without(inner, &below);
                }
                true
            });
        }
        _ => {}
    }
}

fn only(value: &mut Value, paths: &[&[String]]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| only(item, paths)),
        Value::Object(fields) => fields.retain(|name, inner| {
            let below = below(name, paths);
            if below.is_empty() {
                return false;
            }
            if !below.iter().any(|rest| rest.is_empty()) {
                only(inner, &below);
            }
            true
        }),
        _ => {}
    }
}

/// Returns the rest of the paths that pass through this field. Label names contain dots, so a field may take several
/// steps.
fn below<'a>(name: &str, paths: &[&'a [String]]) -> Vec<&'a [String]> {
    let steps: Vec<&str> = name.split('.').collect();
    let through = |path: &&'a [String]| path.len() >= steps.len() && path.iter().zip(&steps).all(|(a, b)| a == b);
    paths.iter().copied().filter(through).map(|path| &path[steps.len()..]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masked(fields: &str) -> Value {
        let mut value = json!({
            "metadata": {"resourceVersion": "1"},
            "items": [{"metadata": {"name": "a", "labels": {"x.io/y": "1", "z": "2"}}, "status": {"phase": "P", "nodes": {"n": 1}}}],
        });
        Mask::parse(fields).apply(&mut value);
        value
    }

    #[test]
    fn wanted_paths_alone_remain() {
        assert_eq!(
            masked("items.status.phase,items.metadata.name"),
            json!({"items": [{"metadata": {"name": "a"}, "status": {"phase": "P"}}]})
        );
        assert_eq!(masked("metadata"), json!({"metadata": {"resourceVersion": "1"}}));
        assert_eq!(
            masked("items.metadata.labels.x.io/y")["items"][0],
            json!({"metadata": {"labels": {"x.io/y": "1"}}})
        );
        assert_eq!(masked("nothing"), json!({}));
    }

    #[test]
    fn a_leading_minus_takes_all_listed_paths_away() {
        let value = masked("-items.status.nodes,items.metadata.labels");
        assert_eq!(value["items"][0], json!({"metadata": {"name": "a"}, "status": {"phase": "P"}}));
        assert_eq!(value["metadata"]["resourceVersion"], "1");
    }

    #[test]
    fn a_mask_knows_what_it_will_leave() {
        for (fields, wants) in [
            ("", true),
            ("-status.nodes", false),
            ("-status", false),
            ("-status.nodes.x", true),
            ("-metadata", true),
            ("status", true),
            ("status.nodes.x", true),
            ("status.phase,metadata.name", false),
        ] {
            assert_eq!(Mask::parse(fields).wants("status.nodes"), wants, "{fields}");
        }
    }

    #[test]
    fn an_empty_mask_changes_nothing_and_what_must_stay_stays() {
        assert_eq!(masked(""), masked("-"));
        let mut event = json!({"result": {"type": "ADDED", "object": {"a": 1, "b": 2}}});
        Mask::parse("result.object.a").always("result.type").apply(&mut event);
        assert_eq!(event, json!({"result": {"type": "ADDED", "object": {"a": 1}}}));
        let mut whole = json!({"result": {"type": "ADDED", "object": {}}});
        Mask::parse("-result.object").always("result.type").apply(&mut whole);
        assert_eq!(whole, json!({"result": {"type": "ADDED"}}));
    }
}
