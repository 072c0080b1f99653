//! Features between the store and the engine. Each is an object; its credentials are another one, which no face reads,
//! and the order of plugins is one for each type. They change in one commit, and then the engine gets the whole table.

use std::collections::{BTreeMap, BTreeSet};

use octoflow_engine::{
    Problems,
    plugins::{FeatureRecord, PluginTable, feature},
};
use octoflow_model::{
    Revision,
    plugin::{FEATURE_KIND, FeatureSecrets, FeatureSpec, PluginType},
};
use octoflow_store::{Change, Object, Reader};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Error;

/// Kinds of these objects beside the features. Manifests cannot have them, because they cannot be loaded. The store seals
/// the credentials as it does Secrets.
pub(crate) const CREDENTIALS: &str = "FeatureSecrets";
pub(crate) const ORDER: &str = "PluginOrder";

/// Fields of a feature's `spec` that are written and never read.
const AUTHORIZATION: &str = "authorization";
const SIGNING: &str = "secret";
const MAX_CREDENTIAL: usize = 4096;

/// Where kubectl keeps what was applied.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// New credentials, as far as somebody wrote some. An empty text removes one.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct SecretsChange {
    authorization: Option<String>,
    signing: Option<String>,
}

impl SecretsChange {
    /// Returns the credentials of a feature that had none before.
    pub(crate) fn alone(self) -> FeatureSecrets {
        let mut secrets = FeatureSecrets::default();
        self.apply(&mut secrets);
        secrets
    }

    fn apply(self, secrets: &mut FeatureSecrets) {
        let set = |new: Option<String>, place: &mut Option<String>| {
            if let Some(text) = new {
                *place = Some(text).filter(|text| !text.is_empty());
            }
        };
        set(self.authorization, &mut secrets.authorization);
        set(self.signing, &mut secrets.signing);
    }
}

/// The order of the plugins of one type as it is stored.
#[derive(Default, Serialize, Deserialize)]
struct StoredOrder {
    keys: Vec<String>,
}

/// Takes the credentials out of a feature, also where kubectl repeats them. The error says what is wrong with one.
pub(crate) fn split(object: &mut Value) -> Result<SecretsChange, String> {
    let change = SecretsChange {
        authorization: take(&mut object["spec"], AUTHORIZATION)?,
        signing: take(&mut object["spec"], SIGNING)?,
    };
    let applied = &mut object["metadata"]["annotations"][LAST_APPLIED];
    if let Some(text) = applied.as_str() {
        // What cannot be read may hold anything.
        let mut repeated: Value = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
        for field in [AUTHORIZATION, SIGNING] {
            repeated["spec"].as_object_mut().and_then(|spec| spec.remove(field));
        }
        *applied = json!(repeated.to_string());
    } else {
        remove_empty(object);
    }
    Ok(change)
}

/// Indexing has left empty places where there was nothing.
fn remove_empty(object: &mut Value) {
    let metadata = &mut object["metadata"];
    let annotations = metadata["annotations"].as_object_mut();
    let emptied = annotations.is_some_and(|annotations| {
        annotations.remove(LAST_APPLIED);
        annotations.is_empty()
    });
    if emptied && let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("annotations");
    }
}

fn take(spec: &mut Value, field: &str) -> Result<Option<String>, String> {
    let text = match spec.as_object_mut().and_then(|spec| spec.remove(field)) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text,
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            return Err(format!("{field} must be a text"));
        }
    };
    let plain = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if text.len() > MAX_CREDENTIAL || !plain {
        return Err(format!("{field} has more than {MAX_CREDENTIAL} bytes, or other than printable ASCII characters"));
    }
    Ok(Some(text))
}

/// Returns the table of all stored plugins, and why some are not in it.
pub(crate) fn table(reader: &Reader) -> Result<(PluginTable, Vec<String>), Error> {
    let (mut records, mut odd) = (Vec::new(), Vec::new());
    let mut secrets: BTreeMap<String, FeatureSecrets> = BTreeMap::new();
    for object in reader.objects(CREDENTIALS, None)? {
        match serde_json::from_slice(&object.body) {
            Ok(found) => drop(secrets.insert(object.name, found)),
            Err(_) => odd.push(format!("the credentials of the feature {} cannot be read", object.name)),
        }
    }
    for object in reader.objects(FEATURE_KIND, None)? {
        match spec_of(&object) {
            Ok(spec) => {
                let secrets = secrets.remove(&object.name).unwrap_or_default();
                records.push(FeatureRecord { name: object.name, spec, secrets });
            }
            Err(why) => odd.push(format!("the feature {} is left out: {why}", object.name)),
        }
    }
    let mut order = BTreeMap::new();
    for plugin_type in PluginType::ALL {
        order.insert(plugin_type, stored_order(reader, plugin_type)?.0);
    }
    let (table, broken) = PluginTable::new(&records, &order);
    odd.extend(broken);
    Ok((table, odd))
}

fn spec_of(object: &Object) -> Result<FeatureSpec, String> {
    let body: Value = serde_json::from_slice(&object.body).map_err(|error| error.to_string())?;
    spec(&body)
}

/// Reads the specification of a feature without its credentials.
pub(crate) fn spec(object: &Value) -> Result<FeatureSpec, String> {
    serde_json::from_value(object["spec"].clone()).map_err(|error| error.to_string())
}

fn stored_order(reader: &Reader, plugin_type: PluginType) -> Result<(Vec<String>, Option<Revision>), Error> {
    let Some(object) = reader.object(ORDER, "", plugin_type.word())? else { return Ok((Vec::new(), None)) };
    let order: StoredOrder = serde_json::from_slice(&object.body)
        .map_err(|error| Error::Object { what: format!("the order of {plugin_type}s"), why: error.to_string() })?;
    Ok((order.keys, Some(object.revision)))
}

/// Makes the changes that go with storing a feature: its credentials, and places for new plugins behind all others.
pub(crate) fn beside_put(reader: &Reader, object: &Value, change: SecretsChange) -> Result<Vec<Change>, Error> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let refused = |why: String| Error::Object { what: format!("{FEATURE_KIND} `{name}`"), why };
    let spec = spec(object).map_err(refused)?;
    let stored = reader.object(CREDENTIALS, "", name)?;
    let before: FeatureSecrets = match &stored {
        Some(stored) => serde_json::from_slice(&stored.body).map_err(|error| refused(error.to_string()))?,
        None => FeatureSecrets::default(),
    };
    let mut secrets = before.clone();
    change.apply(&mut secrets);
    let plugins = feature::compile(name, &spec, &secrets)
        .map_err(|problems| refused(Problems(problems).render(false).trim_end().to_owned()))?;
    check_keys(reader, object)?;
    let mut changes = Vec::new();
    if secrets != before {
        changes.push(expect(CREDENTIALS, name, stored.map(|object| object.revision)));
        changes.push(if secrets.is_empty() { delete(CREDENTIALS, name) } else { put(CREDENTIALS, name, &secrets) });
    }
    let new = plugins.iter().map(|plugin| (plugin.plugin_type, plugin.key.clone())).collect();
    changes.extend(reorder(reader, &keys_of(reader, name)?, &new)?);
    Ok(changes)
}

/// Makes the changes that go with deleting a feature.
pub(crate) fn beside_deletion(reader: &Reader, name: &str) -> Result<Vec<Change>, Error> {
    let mut changes = vec![delete(CREDENTIALS, name)];
    changes.extend(reorder(reader, &keys_of(reader, name)?, &BTreeMap::new())?);
    Ok(changes)
}

/// Returns the keys that a stored feature's plugins have.
fn keys_of(reader: &Reader, name: &str) -> Result<BTreeMap<PluginType, String>, Error> {
    let Some(object) = reader.object(FEATURE_KIND, "", name)? else { return Ok(BTreeMap::new()) };
    Ok(stored_keys(&object))
}

fn stored_keys(object: &Object) -> BTreeMap<PluginType, String> {
    // What cannot be read has no plugins in the table either.
    spec_of(object).map_or_else(|_| BTreeMap::new(), |spec| keys(&object.name, &spec))
}

fn keys(name: &str, spec: &FeatureSpec) -> BTreeMap<PluginType, String> {
    let types = spec.plugins.iter().filter_map(|plugin| PluginType::of_word(&plugin.plugin_type));
    types.map(|plugin_type| (plugin_type, feature::key(plugin_type, name, &spec.author))).collect()
}

/// Refuses a feature that would get a plugin key of another one: names and authors may have dots, so `a` by `b.c` and
/// `a.b` by `c` make the same. What the feature has already may stay, so that it can be turned off and changed.
pub(crate) fn check_keys(reader: &Reader, object: &Value) -> Result<(), Error> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let mut public = object.clone();
    let refused = |why: String| Error::Object { what: format!("{FEATURE_KIND} `{name}`"), why };
    split(&mut public).map_err(refused)?;
    let mut new = keys(name, &spec(&public).map_err(refused)?);
    let old = keys_of(reader, name)?;
    new.retain(|plugin_type, key| old.get(plugin_type) != Some(key));
    if new.is_empty() {
        return Ok(());
    }
    for other in reader.objects(FEATURE_KIND, None)?.iter().filter(|other| other.name != name) {
        if let Some(key) = stored_keys(other).into_values().find(|key| new.values().any(|new| new == key)) {
            let why = format!(
                "the feature `{}` has a plugin with the key {key} already; choose another name or author",
                other.name
            );
            return Err(Error::PluginKey { feature: name.to_owned(), why });
        }
    }
    Ok(())
}

/// Takes keys out of the orders and puts others in. A key in the place of another of the same feature has its place.
fn reorder(
    reader: &Reader,
    old: &BTreeMap<PluginType, String>,
    new: &BTreeMap<PluginType, String>,
) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    let types: BTreeSet<PluginType> = old.keys().chain(new.keys()).copied().collect();
    for plugin_type in types {
        let (before, revision) = stored_order(reader, plugin_type)?;
        let (gone, added) = (old.get(&plugin_type), new.get(&plugin_type));
        if let Some(key) = gone.filter(|key| plugin_type == PluginType::LifeHook && Some(*key) != added) {
            changes.push(Change::DropDeliveries { plugin: key.clone() });
        }
        let mut after = before.clone();
        match (gone.and_then(|gone| after.iter().position(|key| key == gone)), added) {
            (Some(at), Some(added)) => after[at].clone_from(added),
            (Some(at), None) => drop(after.remove(at)),
            (None, Some(added)) if !after.contains(added) => after.push(added.clone()),
            (None, _) => {}
        }
        if after != before {
            changes.extend(put_order(plugin_type, after, revision));
        }
    }
    Ok(changes)
}

/// Makes the changes after which one plugin runs before another; `None` if it does already. The error is the key that
/// nobody has.
pub(crate) fn move_before(
    reader: &Reader,
    plugin_type: PluginType,
    first: &str,
    second: &str,
) -> Result<Result<Option<Vec<Change>>, String>, Error> {
    let (table, _) = table(reader)?;
    let mut keys: Vec<String> = table.of_type(plugin_type).iter().map(|plugin| plugin.key.clone()).collect();
    let place = |wanted: &str| keys.iter().position(|key| key == wanted).ok_or_else(|| wanted.to_owned());
    let (from, to) = match (place(first), place(second)) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(unknown), _) | (_, Err(unknown)) => return Ok(Err(unknown)),
    };
    if from <= to {
        return Ok(Ok(None));
    }
    let moved = keys.remove(from);
    keys.insert(to, moved);
    let (_, revision) = stored_order(reader, plugin_type)?;
    Ok(Ok(Some(put_order(plugin_type, keys, revision).into())))
}

fn put_order(plugin_type: PluginType, keys: Vec<String>, revision: Option<Revision>) -> [Change; 2] {
    let name = plugin_type.word();
    [expect(ORDER, name, revision), put(ORDER, name, &StoredOrder { keys })]
}

fn expect(kind: &str, name: &str, revision: Option<Revision>) -> Change {
    Change::Expect { kind: kind.to_owned(), namespace: String::new(), name: name.to_owned(), revision }
}

fn delete(kind: &str, name: &str) -> Change {
    Change::DeleteObject { kind: kind.to_owned(), namespace: String::new(), name: name.to_owned() }
}

fn put(kind: &str, name: &str, body: &impl Serialize) -> Change {
    Change::PutObject {
        kind: kind.to_owned(),
        namespace: String::new(),
        name: name.to_owned(),
        uid: String::new(),
        body: serde_json::to_vec(body).expect("texts can always be written"),
    }
}
