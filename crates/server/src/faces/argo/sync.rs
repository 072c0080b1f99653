//! Semaphore limits: numbers under keys of ConfigMaps.

use axum::http::{Method, StatusCode};
use octoflow_control::registry::{Fault as RegistryFault, Registry};
use octoflow_model::meta::DEFAULT_NAMESPACE;
use serde_json::{Value, json};

use super::{body::Message, kind, namespace, workflow::writer};
use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::{
        operation::{Content, Parameter, refer, text, word},
        shapes::empty,
    },
    route::{Need, Table},
};

const MAP: &str = "ConfigMap";

const QUERY: &[Parameter] = &[
    text("cmName", "The name of the ConfigMap; must be given"),
    word("type", &["CONFIGMAP"], "Where the limit is kept; a database is not offered"),
];

pub(super) fn routes(table: &mut Table) {
    let (here, one) = ("/api/v1/sync/{namespace}", "/api/v1/sync/{namespace}/{key}");
    let (text_field, number) = (json!({"type": "string"}), json!({"type": "integer"}));
    let kept = json!({"type": "string", "enum": ["CONFIGMAP"]});
    let body = |required: &[&str]| {
        Content::json(json!({
            "type": "object", "required": required,
            "properties": {
                "cmName": text_field, "key": text_field, "limit": {"type": "integer", "minimum": 1}, "type": kept,
                "namespace": text_field,
            },
        }))
    };
    let limit = || {
        Content::json(json!({
            "type": "object", "required": ["namespace", "cmName", "key", "limit", "type"],
            "properties": {"namespace": text_field, "cmName": text_field, "key": text_field, "limit": number, "type": kept},
        }))
    };
    let unimplemented = || Content::json(refer("argo.Error"));
    table
        .add(Method::POST, here, Need::WriteJob, create)
        .about("Creates the limit of a semaphore")
        .takes(body(&["cmName", "key", "limit"]))
        .gives(limit())
        .gives_as(501, unimplemented());
    table
        .get(one, Need::ReadJob, get)
        .about("Reads the limit of a semaphore")
        .query(QUERY)
        .gives(limit())
        .gives_as(501, unimplemented());
    table
        .add(Method::PUT, one, Need::WriteJob, update)
        .about("Changes the limit of a semaphore")
        .takes(body(&["cmName", "limit"]))
        .gives(limit())
        .gives_as(501, unimplemented());
    table
        .add(Method::DELETE, one, Need::WriteJob, delete)
        .about("Deletes the limit of a semaphore")
        .query(QUERY)
        .gives(Content::json(empty()))
        .gives_as(501, unimplemented());
}

/// Key of a ConfigMap that holds a limit.
struct Limit {
    namespace: String,
    map: String,
    key: String,
}

impl Limit {
    fn new(call: &Call, kept: Option<&str>, map: Option<String>, key: Option<String>) -> Result<Self, Fault> {
        match kept {
            None | Some("" | "CONFIGMAP" | "0") => {}
            Some("DATABASE" | "1") => {
                return Err(Fault::not_implemented("limits are kept in ConfigMaps; there is no database for them"));
            }
            Some(other) => return Err(Fault::bad_request(format!("type must be CONFIGMAP, not `{other}`"))),
        }
        let namespace = namespace(call)?.unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
        let map = map.ok_or_else(|| Fault::bad_request("cmName is required: the name of the ConfigMap"))?;
        let key = key.ok_or_else(|| Fault::bad_request("key is required"))?;
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        if key.len() > 253 || !key.bytes().all(letter) || matches!(key.as_str(), "." | "..") {
            return Err(Fault::bad_request(format!("`{key}` is no key: letters, digits, `-`, `_` and `.`")));
        }
        Ok(Self { namespace, map, key })
    }

    fn of_query(call: &Call) -> Result<Self, Fault> {
        let map = call.query.get("cmName").map(str::to_owned);
        Self::new(call, call.query.get("type"), map, Some(call.param("key").to_owned()))
    }

    async fn of_body(call: &mut Call) -> Result<(Self, i64), Fault> {
        let mut message = Message::of(call).await?;
        let kept = message.value("type");
        let kept = kept.map(|kept| kept.as_str().map_or_else(|| kept.to_string(), str::to_owned));
        let key = match call.optional_param("key") {
            Some(key) => Some(key.to_owned()),
            None => message.text("key")?,
        };
        let size = match message.number("limit")? {
            None => message.number("sizeLimit")?,
            size => size,
        };
        let size =
            size.filter(|size| *size > 0).ok_or_else(|| Fault::bad_request("limit must be greater than zero"))?;
        Ok((Self::new(call, kept.as_deref(), message.text("cmName")?, key)?, size))
    }

    fn read(&self, object: &Value) -> Option<i64> {
        object["data"][&self.key].as_str().and_then(|text| text.trim().parse().ok())
    }

    fn written(&self, size: i64) -> Value {
        json!({
            "namespace": self.namespace, "cmName": self.map, "key": self.key, "limit": size, "type": "CONFIGMAP",
        })
    }

    fn missing(&self) -> Fault {
        Fault::not_found(format!("ConfigMap `{}` has no limit under `{}`", self.map, self.key))
    }

    /// Sets or removes the number; `check` sees the object before.
    fn put(
        &self,
        registry: &Registry,
        size: Option<i64>,
        check: impl Fn(&Value) -> Result<(), RegistryFault>,
    ) -> Result<Value, RegistryFault> {
        registry.update(kind(MAP), &self.namespace, &self.map, &writer(), |before| {
            check(before)?;
            let mut after = before.clone();
            if !after["data"].is_object() {
                after["data"] = json!({});
            }
            match size {
                Some(size) => after["data"][&self.key] = json!(size.to_string()),
                None => drop(after["data"].as_object_mut().and_then(|data| data.remove(&self.key))),
            }
            Ok(after)
        })
    }
}

async fn create(mut call: Call) -> Result<Answer, Fault> {
    let (limit, size) = Limit::of_body(&mut call).await?;
    let made = call
        .work(move |registry| -> Result<Value, Fault> {
            let taken = || Fault::new(StatusCode::CONFLICT, "AlreadyExists", format!("`{}` exists already", limit.key));
            let free = |before: &Value| match before["data"].get(&limit.key) {
                Some(_) => Err(RegistryFault::Exists { kind: kind(MAP), name: limit.key.clone() }),
                None => Ok(()),
            };
            match limit.put(registry, Some(size), free) {
                Err(RegistryFault::NotFound { .. }) => {
                    let map = json!({"metadata": {"name": limit.map}, "data": {&limit.key: size.to_string()}});
                    registry.create(kind(MAP), &limit.namespace, map, &writer())?;
                }
                Err(RegistryFault::Exists { .. }) => return Err(taken()),
                other => drop(other?),
            }
            Ok(limit.written(size))
        })
        .await?;
    Ok(answer::json(&made))
}

async fn get(call: Call) -> Result<Answer, Fault> {
    let limit = Limit::of_query(&call)?;
    let found = call
        .work(move |registry| -> Result<Value, Fault> {
            let object = registry.get(kind(MAP), &limit.namespace, &limit.map)?;
            limit.read(&object).map(|size| limit.written(size)).ok_or_else(|| limit.missing())
        })
        .await?;
    Ok(answer::json(&found))
}

async fn update(mut call: Call) -> Result<Answer, Fault> {
    let (limit, size) = Limit::of_body(&mut call).await?;
    let kept = call
        .work(move |registry| -> Result<Value, Fault> {
            limit.put(registry, Some(size), there(&limit)).map_err(|fault| limit.explain(fault))?;
            Ok(limit.written(size))
        })
        .await?;
    Ok(answer::json(&kept))
}

async fn delete(call: Call) -> Result<Answer, Fault> {
    let limit = Limit::of_query(&call)?;
    call.work(move |registry| limit.put(registry, None, there(&limit)).map_err(|fault| limit.explain(fault))).await?;
    Ok(answer::json(&json!({})))
}

fn there(limit: &Limit) -> impl Fn(&Value) -> Result<(), RegistryFault> + '_ {
    |before| match before["data"].get(&limit.key) {
        Some(_) => Ok(()),
        None => Err(RegistryFault::NotFound { kind: kind(MAP), name: limit.key.clone() }),
    }
}

impl Limit {
    fn explain(&self, fault: RegistryFault) -> Fault {
        match fault {
            RegistryFault::NotFound { name, .. } if name == self.key => self.missing(),
            other => other.into(),
        }
    }
}
