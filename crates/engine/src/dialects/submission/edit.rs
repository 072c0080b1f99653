//! Differences of two documents as a list of edits, and their application. What is applied to the old document is exactly
//! the new one.

use octoflow_model::submitted::Edit;
use serde_json::Value;

/// Returns the edits that make the new document of the old one.
pub fn between(old: &Value, new: &Value) -> Vec<Edit> {
    let mut edits = Vec::new();
    compare(old, new, &mut String::new(), &mut edits);
    edits
}

fn compare(old: &Value, new: &Value, path: &mut String, edits: &mut Vec<Edit>) {
    let length = path.len();
    match (old, new) {
        (Value::Object(before), Value::Object(after)) => {
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                step(path, key);
                edits.push(Edit { path: path.clone(), value: Value::Null, removed: true });
                path.truncate(length);
            }
            for (key, value) in after {
                step(path, key);
                match before.get(key) {
                    Some(known) => compare(known, value, path, edits),
                    None => edits.push(set(path, value)),
                }
                path.truncate(length);
            }
        }
        // Elements have no names: where their number changes, the array is set as a whole.
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (known, value)) in before.iter().zip(after).enumerate() {
                step(path, &at.to_string());
                compare(known, value, path, edits);
                path.truncate(length);
            }
        }
        (old, new) if old == new => {}
        (_, new) => edits.push(set(path, new)),
    }
}

fn step(path: &mut String, key: &str) {
    path.push('/');
    path.push_str(&key.replace('~', "~0").replace('/', "~1"));
}

fn set(path: &str, value: &Value) -> Edit {
    Edit { path: path.to_owned(), value: value.clone(), removed: false }
}

/// Applies edits to a document. One that has no place in it changes nothing.
pub fn apply(document: &mut Value, edits: &[Edit]) {
    for edit in edits {
        let Some((parent, key)) = edit.path.rsplit_once('/') else {
            document.clone_from(&edit.value);
            continue;
        };
        let key = key.replace("~1", "/").replace("~0", "~");
        match document.pointer_mut(parent) {
            Some(Value::Object(fields)) if edit.removed => drop(fields.remove(&key)),
            Some(Value::Object(fields)) => drop(fields.insert(key, edit.value.clone())),
            Some(Value::Array(items)) => {
                if let Some(item) = key.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                    item.clone_from(&edit.value);
                }
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..3u8).prop_map(Value::from)];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[ab~/]{1,2}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_between_two_documents_makes_the_second_of_the_first(old in document(), new in document()) {
            let mut made = old.clone();
            apply(&mut made, &between(&old, &new));
            prop_assert_eq!(made, new);
        }
    }

    #[test]
    fn equal_documents_have_nothing_between_them() {
        let one = json!({"a": [1, {"b/c~": null}]});
        assert_eq!(between(&one, &one), []);
    }
}
