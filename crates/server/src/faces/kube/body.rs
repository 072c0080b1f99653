//! Request bodies: one value as JSON or YAML, or from kubectl as protobuf.

use octoflow_control::registry::document;
use serde_json::Value;

use super::wire;
use crate::{answer::fault::Fault, call::Call};

/// Encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyEncoding {
    Json,
    Yaml,
    Protobuf,
}

/// Reads the object of a request.
pub(super) async fn object(call: &mut Call) -> Result<Value, Fault> {
    let object = optional(call).await?;
    if object.is_null() {
        return Err(Fault::bad_request("the request has no body; send the object as JSON or YAML"));
    }
    Ok(object)
}

/// Reads an optional body; `null` if there is none.
pub(super) async fn optional(call: &mut Call) -> Result<Value, Fault> {
    let encoding = match media_type(call).as_str() {
        "" | "application/json" => BodyEncoding::Json,
        "application/yaml" | "application/x-yaml" | "text/yaml" => BodyEncoding::Yaml,
        "application/vnd.kubernetes.protobuf" => BodyEncoding::Protobuf,
        other => {
            // An empty body is valid in any encoding.
            if call.header("content-length") == Some("0") {
                return Ok(Value::Null);
            }
            return Err(Fault::unsupported(format!(
                "a body of type {other} cannot be read; accepted are application/json and application/yaml"
            )));
        }
    };
    match encoding {
        BodyEncoding::Json => call.json().await,
        BodyEncoding::Yaml => yaml(call).await,
        BodyEncoding::Protobuf => {
            wire::object(&call.bytes().await?).map_err(|error| Fault::unsupported(error.to_string()))
        }
    }
}

/// Reads YAML, of which JSON is a subset.
pub(super) async fn yaml(call: &mut Call) -> Result<Value, Fault> {
    let bytes = call.bytes().await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Value::Null);
    }
    let text = String::from_utf8(bytes).map_err(|_| Fault::bad_request("the body is not UTF-8"))?;
    document(&text).map_err(Fault::bad_request)
}

/// Returns the media type without parameters such as the character set.
pub(super) fn media_type(call: &Call) -> String {
    let text = call.header("content-type").unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
