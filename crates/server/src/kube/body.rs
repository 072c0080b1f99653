//! What a request carries: one value, written as JSON or YAML, or by kubectl as protobuf.

use octoflow_control::registry::document;
use serde_json::Value;

use super::wire;
use crate::{call::Call, fault::Fault};

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writing {
    Json,
    Yaml,
    Protobuf,
}

/// The object a request carries.
pub(super) async fn object(call: &mut Call) -> Result<Value, Fault> {
    let object = optional(call).await?;
    if object.is_null() {
        return Err(Fault::bad_request("the request has no body; send the object as JSON or YAML"));
    }
    Ok(object)
}

/// What a request may carry; `null` when there is nothing.
pub(super) async fn optional(call: &mut Call) -> Result<Value, Fault> {
    let writing = match media_type(call).as_str() {
        "" | "application/json" => Writing::Json,
        "application/yaml" | "application/x-yaml" | "text/yaml" => Writing::Yaml,
        "application/vnd.kubernetes.protobuf" => Writing::Protobuf,
        other => {
            // Nothing is what everybody can write.
            if call.header("content-length") == Some("0") {
                return Ok(Value::Null);
            }
            return Err(Fault::unsupported(format!(
                "a body of type {other} cannot be read; accepted are application/json and application/yaml"
            )));
        }
    };
    match writing {
        Writing::Json => call.json().await,
        Writing::Yaml => yaml(call).await,
        Writing::Protobuf => wire::object(&call.bytes().await?).map_err(Fault::unsupported),
    }
}

/// YAML, which JSON is a part of.
pub(super) async fn yaml(call: &mut Call) -> Result<Value, Fault> {
    let bytes = call.bytes().await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    let text = String::from_utf8(bytes).map_err(|_| Fault::bad_request("the body is not UTF-8"))?;
    document(&text).map_err(Fault::bad_request)
}

/// Without parameters such as the character set.
pub(super) fn media_type(call: &Call) -> String {
    let text = call.header("content-type").unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
