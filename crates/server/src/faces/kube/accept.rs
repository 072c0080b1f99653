//! Content negotiation: whole objects, a table, or metadata alone.

use crate::{answer::fault::Fault, call::Call};

/// Representation of an object or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    /// Version of the table format.
    Table(&'static str),
    /// Version of the metadata format.
    Metadata(&'static str),
}

/// One entry of an `Accept` header.
pub(super) struct MediaType<'a> {
    kind: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> MediaType<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        Self { kind, parameters: parts.filter_map(|part| part.split_once('=')).collect() }
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(known, _)| *known == name).map(|(_, value)| value.trim_matches('"'))
    }

    /// Returns whether JSON is acceptable.
    pub(super) fn json(&self) -> bool {
        matches!(self.kind, "application/json" | "application/*" | "*/*" | "")
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }
}

/// Returns the accepted media types in order of preference.
pub(super) fn accepted(call: &Call) -> Vec<MediaType<'_>> {
    let text = call.header("accept").unwrap_or("*/*");
    text.split(',').map(|part| MediaType::parse(part.trim())).collect()
}

pub(super) fn form(call: &Call) -> Result<Form, Fault> {
    let accepted = accepted(call);
    accepted.iter().find_map(form_of).ok_or_else(|| {
        not_acceptable(
            "only application/json can be answered here, as objects, or as Table or PartialObjectMetadata of meta.k8s.io",
        )
    })
}

pub(super) fn not_acceptable(message: &str) -> Fault {
    Fault::new(axum::http::StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
}

fn form_of(media: &MediaType<'_>) -> Option<Form> {
    if !media.json() {
        return None;
    }
    let version = match (media.parameter("g"), media.parameter("v")) {
        (None, None) => None,
        (Some("meta.k8s.io"), Some("v1")) => Some("v1"),
        (Some("meta.k8s.io"), Some("v1beta1")) => Some("v1beta1"),
        _ => return None,
    };
    match (media.parameter("as"), version) {
        (None, _) => Some(Form::Whole),
        (Some("Table"), Some(version)) => Some(Form::Table(version)),
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some(version)) => Some(Form::Metadata(version)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> Option<Form> {
        text.split(',').map(|part| MediaType::parse(part.trim())).find_map(|media| form_of(&media))
    }

    #[test]
    fn the_first_form_that_is_known_is_taken() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(first(kubectl), Some(Form::Table("v1")));
        assert_eq!(first("application/json;as=Table;v=v9;g=meta.k8s.io, */*"), Some(Form::Whole));
        assert_eq!(
            first(
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
            ),
            Some(Form::Metadata("v1"))
        );
        assert_eq!(first("application/vnd.kubernetes.protobuf, application/json"), Some(Form::Whole));
        assert_eq!(first("application/vnd.kubernetes.protobuf"), None);
        assert_eq!(first("text/html,*/*;q=0.8"), Some(Form::Whole));
    }
}
