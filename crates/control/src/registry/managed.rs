//! Field ownership as in `metadata.managedFields`. Maps are owned key by key, lists as a whole. Pure: works on values
//! and never reads the store.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::meta::SERVER_FIELDS;

/// Path of a field: the names that lead to it.
pub(super) type Path = Vec<String>;

/// Path element for a map itself, whatever its contents.
const ITSELF: &str = ".";

/// Metadata fields without an owner because the request path sets them. Fields set by the server have no owner either.
const IDENTITY: [&str; 3] = ["name", "generateName", "namespace"];

/// Manager of fields that were written before ownership was recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// One manager with its fields.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    manager: String,
    operation: Operation,
    version: String,
    time: Value,
    fields: BTreeSet<Path>,
    /// Entry of a subresource, which is managed elsewhere; kept unchanged.
    subresource: Option<Value>,
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ManagedFields(Vec<Entry>);

/// Field whose applied value differs from what another manager wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldConflict {
    pub path: Path,
    pub manager: String,
    pub version: String,
}

impl ManagedFields {
    pub(super) fn of(object: &Value) -> Self {
        let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
        Self(entries.filter_map(Entry::read).collect())
    }

    pub(super) fn write(&self, object: &mut Value) {
        let Some(metadata) = object["metadata"].as_object_mut() else { return };
        if self.0.is_empty() {
            metadata.remove("managedFields");
        } else {
            metadata.insert("managedFields".to_owned(), self.0.iter().map(Entry::value).collect());
        }
    }

    /// Records the creation of an object.
    pub(super) fn created(object: &Value, manager: &str, operation: Operation, now: &str) -> Self {
        if manager.is_empty() {
            return Self::default();
        }
        let mut managed = Self::default();
        managed.entry(object, manager, operation, now).fields = leaves(object);
        managed.tidy();
        managed
    }

    /// Records an update: changed fields belong to this manager now.
    pub(super) fn changed(&mut self, before: &Value, after: &Value, manager: &str, now: &str) {
        let (was, is) = (leaves(before), leaves(after));
        let differs = |path: &&Path| at(before, path) != at(after, path);
        let changed: BTreeSet<Path> = is.iter().filter(differs).cloned().collect();
        let removed: BTreeSet<Path> = was.difference(&is).cloned().collect();
        if changed.is_empty() && removed.is_empty() {
            return;
        }
        for entry in self.0.iter_mut().filter(|entry| entry.subresource.is_none()) {
            let own = entry.manager == manager && entry.operation == Operation::Update;
            entry
                .fields
                .retain(|field| !removed.contains(field) && (own || !changed.iter().any(|path| overlap(path, field))));
        }
        if !manager.is_empty() && !changed.is_empty() {
            let entry = self.entry(after, manager, Operation::Update, now);
            entry.fields.extend(changed);
            entry.time = json!(now);
        }
        self.tidy();
    }

    fn entry(&mut self, object: &Value, manager: &str, operation: Operation, now: &str) -> &mut Entry {
        let known = self
            .0
            .iter()
            .position(|entry| entry.manager == manager && entry.operation == operation && entry.subresource.is_none());
        let place = known.unwrap_or_else(|| {
            let version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
            let fields = BTreeSet::new();
            self.0.push(Entry {
                manager: manager.to_owned(),
                operation,
                version,
                time: json!(now),
                fields,
                subresource: None,
            });
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    fn tidy(&mut self) {
        self.0.retain(|entry| !entry.fields.is_empty() || entry.subresource.is_some());
    }
}

/// Merges an applied configuration into the object, or returns every conflict.
pub(super) fn apply(
    before: &Value,
    applied: &Value,
    manager: &str,
    force: bool,
    now: &str,
) -> Result<Value, Vec<FieldConflict>> {
    let wanted = leaves(applied);
    let mut managed = ManagedFields::of(before);
    if managed.0.is_empty() {
        managed = ManagedFields::created(before, BEFORE_FIRST_APPLY, Operation::Update, now);
    }
    let differing: BTreeSet<&Path> = wanted.iter().filter(|path| at(before, path) != at(applied, path)).collect();
    let ours =
        |entry: &Entry| entry.manager == manager && entry.operation == Operation::Apply && entry.subresource.is_none();
    let mut clashes = Vec::new();
    for entry in managed.0.iter().filter(|entry| !ours(entry) && entry.subresource.is_none()) {
        let hit = differing.iter().filter(|path| entry.fields.iter().any(|field| overlap(path, field)));
        clashes.extend(hit.map(|path| FieldConflict {
            path: (*path).clone(),
            manager: entry.manager.clone(),
            version: entry.version.clone(),
        }));
    }
    if !clashes.is_empty() && !force {
        return Err(clashes);
    }
    for entry in managed.0.iter_mut().filter(|entry| !ours(entry) && entry.subresource.is_none()) {
        entry.fields.retain(|field| !differing.iter().any(|path| overlap(path, field)));
    }
    let entry = managed.entry(applied, manager, Operation::Apply, now);
    let dropped: Vec<Path> = entry.fields.iter().filter(|field| !wanted.contains(*field)).cloned().collect();
    let same = entry.fields == wanted && differing.is_empty();
    entry.fields.clone_from(&wanted);
    if !same {
        entry.time = json!(now);
    }
    managed.tidy();
    let mut after = before.clone();
    for path in dropped {
        let kept = managed.0.iter().any(|entry| entry.fields.iter().any(|field| overlap(&path, field)));
        if !kept {
            remove(&mut after, &path);
        }
    }
    for path in &wanted {
        if let Some(value) = at(applied, path) {
            set(&mut after, path, value.clone());
        }
    }
    managed.write(&mut after);
    Ok(after)
}

impl Entry {
    fn read(value: &Value) -> Option<Self> {
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let operation = match value["operation"].as_str()? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        let mut fields = BTreeSet::new();
        unfold(&value["fieldsV1"], &mut Vec::new(), &mut fields);
        let subresource = value["subresource"].as_str().is_some_and(|text| !text.is_empty()).then(|| value.clone());
        let (manager, version) = (text("manager"), text("apiVersion"));
        Some(Self { manager, operation, version, time: value["time"].clone(), fields, subresource })
    }

    fn value(&self) -> Value {
        if let Some(whole) = &self.subresource {
            return whole.clone();
        }
        let mut tree = json!({});
        for path in &self.fields {
            let mut place = &mut tree;
            for name in path {
                place = &mut place[if name == ITSELF { name.clone() } else { format!("f:{name}") }];
                if place.is_null() {
                    *place = json!({});
                }
            }
        }
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        json!({
            "manager": self.manager, "operation": operation, "apiVersion": self.version, "time": self.time,
            "fieldsType": "FieldsV1", "fieldsV1": tree,
        })
    }
}

/// Returns the fields that can have owners: everything in maps, lists as a whole.
fn leaves(object: &Value) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    for (field, value) in object.as_object().into_iter().flatten() {
        match field.as_str() {
            "apiVersion" | "kind" | "status" => {}
            "metadata" => {
                let is_unowned = |name: &str| IDENTITY.contains(&name) || SERVER_FIELDS.contains(&name);
                let fields = value.as_object().into_iter().flatten();
                for (name, value) in fields.filter(|(name, _)| !is_unowned(name)) {
                    gather(value, &mut vec![field.clone(), name.clone()], &mut found);
                }
            }
            _ => gather(value, &mut vec![field.clone()], &mut found),
        }
    }
    found
}

/// Collects the leaf fields below a value. Recursion is bounded by the nesting limit of the request reader.
fn gather(value: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
    match value {
        Value::Null => {}
        Value::Object(fields) if fields.is_empty() => {
            let mut itself = path.clone();
            itself.push(ITSELF.to_owned());
            found.insert(itself);
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                path.push(name.clone());
                gather(value, path, found);
                path.pop();
            }
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => drop(found.insert(path.clone())),
    }
}

fn unfold(tree: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
    let mut deeper = false;
    for (key, below) in tree.as_object().into_iter().flatten() {
        if let Some(name) = key.strip_prefix("f:") {
            deeper = true;
            path.push(name.to_owned());
            unfold(below, path, found);
            path.pop();
        } else if key == ITSELF && !path.is_empty() {
            deeper = true;
            path.push(key.clone());
            found.insert(path.clone());
            path.pop();
        }
    }
    // Items of a list are owned with the list.
    if !deeper && !path.is_empty() {
        found.insert(path.clone());
    }
}

/// Returns whether one path equals or contains the other.
fn overlap(one: &[String], other: &[String]) -> bool {
    let length = one.len().min(other.len());
    one[..length] == other[..length]
}

/// Returns the value at a path; for a map itself only a marker that it is a map.
fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    static MAP: Value = Value::Bool(true);
    path.iter().try_fold(object, |value, name| match name.as_str() {
        ITSELF => value.is_object().then_some(&MAP),
        name => value.get(name),
    })
}

fn set(object: &mut Value, path: &[String], value: Value) {
    let mut place = object;
    for name in path {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        if name == ITSELF {
            return;
        }
        place = &mut place[name];
    }
    *place = value;
}

/// Removes a field, and the maps that become empty.
fn remove(object: &mut Value, path: &[String]) {
    for length in (1..=path.len()).rev() {
        let Some((last, parents)) = path[..length].split_last() else { return };
        let mut place = &mut *object;
        for name in parents {
            match place.get_mut(name) {
                Some(below) => place = below,
                None => return,
            }
        }
        let Some(fields) = place.as_object_mut() else { return };
        let whole = length < path.len();
        let full = |value: &Value| value.as_object().is_none_or(|map| !map.is_empty());
        if last != ITSELF && whole && fields.get(last).is_some_and(full) {
            return;
        }
        fields.remove(last);
    }
}

/// Formats a path as `.data.key`, as conflicts name it.
pub(super) fn shown(path: &[String]) -> String {
    path.iter().map(|name| format!(".{name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data})
    }

    fn first(data: Value, manager: &str) -> Value {
        let mut object = map(data);
        ManagedFields::created(&object, manager, Operation::Apply, "1").write(&mut object);
        object
    }

    #[test]
    fn what_is_applied_again_changes_nothing() {
        let object = first(json!({"a": "1", "b": "2"}), "one");
        let again = apply(&object, &map(json!({"a": "1", "b": "2"})), "one", false, "9").unwrap();
        assert_eq!(again, object);
        assert_eq!(object["metadata"]["managedFields"][0]["fieldsV1"], json!({"f:data": {"f:a": {}, "f:b": {}}}));
    }

    #[test]
    fn fields_no_longer_applied_go_unless_somebody_else_has_them() {
        let object = first(json!({"a": "1", "b": "2", "c": "3"}), "one");
        let shared = apply(&object, &map(json!({"b": "2"})), "two", false, "2").unwrap();
        let less = apply(&shared, &map(json!({"a": "1"})), "one", false, "3").unwrap();
        assert_eq!(less["data"], json!({"a": "1", "b": "2"}));
        let none = apply(&less, &map(json!({})), "two", false, "4").unwrap();
        assert_eq!(none["data"], json!({"a": "1"}));
    }

    #[test]
    fn conflicts_name_the_field_and_who_has_it_and_force_takes_it() {
        let object = first(json!({"a": "1", "b": "2"}), "one");
        let clashes = apply(&object, &map(json!({"a": "x", "b": "2"})), "two", false, "2").unwrap_err();
        assert_eq!(clashes.len(), 1);
        assert_eq!((shown(&clashes[0].path).as_str(), clashes[0].manager.as_str()), (".data.a", "one"));
        let taken = apply(&object, &map(json!({"a": "x", "b": "2"})), "two", true, "2").unwrap();
        assert_eq!(taken["data"]["a"], "x");
        let managed = ManagedFields::of(&taken);
        assert_eq!(managed.0[0].fields, [vec!["data".to_owned(), "b".to_owned()]].into());
        // The first now conflicts in turn, and both still have what they agree on.
        assert_eq!(apply(&taken, &map(json!({"a": "1", "b": "2"})), "one", false, "3").unwrap_err()[0].manager, "two");
        assert!(apply(&taken, &map(json!({"a": "x", "b": "2"})), "one", false, "3").is_ok());
    }

    #[test]
    fn an_ordinary_change_takes_the_field_from_whoever_had_it() {
        let before = first(json!({"a": "1", "b": "2"}), "one");
        let mut after = before.clone();
        after["data"] = json!({"a": "x"});
        let mut managed = ManagedFields::of(&before);
        managed.changed(&before, &after, "hand", "2");
        managed.write(&mut after);
        assert_eq!(managed.0.len(), 1, "nothing is left of the first");
        let clashes = apply(&after, &map(json!({"a": "1"})), "one", false, "3").unwrap_err();
        assert_eq!(clashes[0].manager, "hand");
    }

    #[test]
    fn an_object_nobody_is_known_to_have_written_belongs_to_somebody() {
        let before = map(json!({"a": "1"}));
        assert_eq!(
            apply(&before, &map(json!({"a": "2"})), "one", false, "1").unwrap_err()[0].manager,
            BEFORE_FIRST_APPLY
        );
        let after = apply(&before, &map(json!({"a": "1", "b": "2"})), "one", false, "1").unwrap();
        assert_eq!(after["data"], json!({"a": "1", "b": "2"}));
    }

    #[test]
    fn lists_and_what_lies_deeper_belong_together() {
        let object = |spec: Value| json!({"apiVersion": "v", "metadata": {"name": "t"}, "spec": spec});
        let mut before = object(json!({"templates": [{"name": "a"}], "arguments": {}}));
        ManagedFields::created(&before, "one", Operation::Update, "1").write(&mut before);
        let after = apply(&before, &object(json!({"arguments": {"parameters": []}})), "two", false, "2").unwrap();
        assert_eq!(
            after["spec"]["arguments"],
            json!({"parameters": []}),
            "an empty map says nothing about what is in it"
        );
        let clashes = apply(&after, &object(json!({"arguments": 1})), "two", false, "2").unwrap_err();
        assert_eq!(shown(&clashes[0].path), ".spec.arguments");
        let clashes = apply(&before, &object(json!({"templates": []})), "two", false, "2").unwrap_err();
        assert_eq!(shown(&clashes[0].path), ".spec.templates");
        let foreign = json!({"f:spec": {"f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}}});
        let mut fields = BTreeSet::new();
        unfold(&foreign, &mut Vec::new(), &mut fields);
        assert_eq!(fields, [vec!["spec".to_owned(), "list".to_owned()]].into());
    }
}
