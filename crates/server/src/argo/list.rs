//! Lists of workflows, running and archived alike, newest first; and what clients may ask of a list.

use octoflow_control::registry::{FieldSelector, LabelSelector, NameTest, Selection, Wanted};
use octoflow_model::{Revision, Time};
use serde_json::{Value, json};

use super::{kind, mask::Mask, namespace};
use crate::{
    answer::{self, Answer},
    call::Call,
    fault::Fault,
    query::Query,
};

pub(super) async fn list(call: Call) -> Result<Answer, Fault> {
    let wanted = wanted(&call.query, namespace(&call)?)?;
    answer(&call, wanted).await
}

/// The whole list of what is wanted.
pub(super) async fn answer(call: &Call, wanted: Wanted) -> Result<Answer, Fault> {
    let mut list = call
        .work(move |registry| {
            let workflow = kind("Workflow");
            let history = registry.history(workflow, &wanted)?;
            let mut items = Vec::with_capacity(history.rows.len());
            for row in &history.rows {
                match registry.run_object(row) {
                    Ok(object) => items.push(object),
                    // It was deleted meanwhile.
                    Err(octoflow_control::registry::Fault::NotFound { .. }) => {}
                    Err(fault) => return Err(fault),
                }
            }
            let next = history.more.then(|| (wanted.skip + history.rows.len()).to_string());
            Ok(written("WorkflowList", items, history.revision, next))
        })
        .await?;
    Mask::of(&call.query).apply(&mut list);
    Ok(answer::json(&list))
}

/// Clients expect an empty list to be nothing.
pub(super) fn written(kind: &str, items: Vec<Value>, revision: Revision, next: Option<String>) -> Value {
    let items = if items.is_empty() { Value::Null } else { Value::Array(items) };
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(next) = next {
        metadata["continue"] = json!(next);
    }
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": kind, "metadata": metadata, "items": items})
}

/// What a query asks of a list of runs.
pub(super) fn wanted(query: &Query, namespace: Option<String>) -> Result<Wanted, Fault> {
    let mut wanted = Wanted { namespace, ..Wanted::default() };
    wanted.selection.labels = labels(query)?;
    let mut named = None;
    let mut rest = Vec::new();
    // Beside equality there are two times that can be compared.
    for part in query.get("listOptions.fieldSelector").unwrap_or_default().split(',').map(str::trim) {
        if let Some(text) = part.strip_prefix("spec.startedAt>") {
            wanted.started_after = Some(time("spec.startedAt", text)?);
        } else if let Some(text) = part.strip_prefix("spec.finishedAt<") {
            wanted.finished_before = Some(time("spec.finishedAt", text)?);
        } else if !part.is_empty() {
            rest.push(part);
        }
    }
    let mut fields = FieldSelector::parse(&rest.join(",")).map_err(Fault::bad_request)?;
    fields.0.retain(|test| match (test.field.as_str(), test.equal) {
        ("metadata.name", equal) => {
            named = Some((test.value.clone(), equal));
            false
        }
        ("metadata.namespace", true) if wanted.namespace.is_none() => {
            wanted.namespace = Some(test.value.clone()).filter(|name| !name.is_empty());
            false
        }
        _ => true,
    });
    wanted.selection.fields = fields;
    wanted.name = match (named, query.get("nameFilter"), query.get("namePrefix")) {
        (None, _, None) => None,
        (None, _, Some(prefix)) => Some(NameTest::Begins(prefix.to_owned())),
        (Some((name, false)), ..) => Some(NameTest::IsNot(name)),
        (Some((name, true)), None | Some("Exact"), _) => Some(NameTest::Is(name)),
        (Some((name, true)), Some("Contains"), _) => Some(NameTest::Contains(name)),
        (Some((name, true)), Some("Prefix"), _) => Some(NameTest::Begins(name)),
        (Some((name, true)), Some("NotEquals"), _) => Some(NameTest::IsNot(name)),
        (Some(_), Some(other), _) => {
            return Err(Fault::bad_request(format!("nameFilter must be Exact, Contains or Prefix, not `{other}`")));
        }
    };
    if let Some(text) = query.get("createdAfter") {
        wanted.created_after = Some(time("createdAfter", text)?);
    }
    if let Some(text) = query.get("finishedBefore") {
        wanted.finished_before = Some(time("finishedBefore", text)?);
    }
    wanted.limit = limit(query)?;
    wanted.skip = match query.get("listOptions.continue") {
        None => 0,
        Some(text) => text.parse().map_err(|_| {
            Fault::bad_request(format!("listOptions.continue must be what an earlier list gave, not `{text}`"))
        })?,
    };
    Ok(wanted)
}

/// Zero means no limit, as for the Kubernetes API.
pub(super) fn limit(query: &Query) -> Result<Option<usize>, Fault> {
    let Some(text) = query.get("listOptions.limit") else { return Ok(None) };
    let limit: usize =
        text.parse().map_err(|_| Fault::bad_request(format!("listOptions.limit must be a number, not `{text}`")))?;
    Ok(Some(limit).filter(|limit| *limit > 0))
}

pub(super) fn selection(query: &Query) -> Result<Selection, Fault> {
    let text = query.get("listOptions.fieldSelector").unwrap_or_default();
    Ok(Selection { labels: labels(query)?, fields: FieldSelector::parse(text).map_err(Fault::bad_request)? })
}

fn labels(query: &Query) -> Result<LabelSelector, Fault> {
    LabelSelector::parse(query.get("listOptions.labelSelector").unwrap_or_default()).map_err(Fault::bad_request)
}

fn time(field: &str, text: &str) -> Result<Time, Fault> {
    Time::parse(text)
        .ok_or_else(|| Fault::bad_request(format!("{field} must be a time such as 2026-01-31T12:00:00Z, not `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Wanted {
        wanted(&Query::parse(query), None).unwrap()
    }

    #[test]
    fn names_are_filtered_as_asked() {
        let query = "listOptions.fieldSelector=metadata.name%3Da";
        assert_eq!(asked(query).name, Some(NameTest::Is("a".into())));
        assert_eq!(asked(&format!("{query}&nameFilter=Contains")).name, Some(NameTest::Contains("a".into())));
        assert_eq!(asked(&format!("{query}&nameFilter=Prefix")).name, Some(NameTest::Begins("a".into())));
        assert_eq!(asked("namePrefix=b").name, Some(NameTest::Begins("b".into())));
        assert!(wanted(&Query::parse(&format!("{query}&nameFilter=Like")), None).is_err());
    }

    #[test]
    fn times_limits_and_places_are_read_or_refused() {
        let found = asked(
            "listOptions.fieldSelector=spec.startedAt>2026-01-01T00:00:00Z,spec.finishedAt<2026-02-01T00:00:00Z,\
             metadata.namespace=x&listOptions.limit=5&listOptions.continue=10&createdAfter=2026-01-01T00:00:00Z",
        );
        assert!(found.started_after < found.finished_before);
        assert_eq!((found.limit, found.skip, found.namespace.as_deref()), (Some(5), 10, Some("x")));
        assert!(found.created_after.is_some() && found.selection.fields.0.is_empty());
        assert_eq!(asked("listOptions.limit=0").limit, None);
        for wrong in
            ["listOptions.limit=x", "listOptions.continue=x", "createdAfter=today", "listOptions.labelSelector=a b"]
        {
            assert!(wanted(&Query::parse(wrong), None).is_err(), "{wrong}");
        }
    }
}
