//! Lists of workflows, open and archived alike, newest first; and the query options of lists.

use octoflow_control::registry::{
    Fault as RegistryFault, FieldSelector, History, HistoryFilter, LabelSelector, NameTest, Registry, Selection,
};
use octoflow_model::{Revision, Time};
use serde_json::Value;

use super::{
    kind,
    listing::{Items, List},
    mask::Mask,
    namespace,
};
use crate::{
    answer::{Answer, fault::Fault, pieces, query::Query},
    call::Call,
    faces::openapi::operation::{self, Parameter, count, text, word},
};

/// Options of every list of this face.
pub(super) const OPTIONS: &[Parameter] = &[
    text("listOptions.labelSelector", "Only objects with these labels"),
    text("listOptions.fieldSelector", "Only objects with these fields"),
    count("listOptions.limit", "At most so many in one page"),
    text("listOptions.continue", "Where the page before ended"),
    word("nameFilter", &["Exact", "Contains", "Prefix"], "How the name in the field selector is meant"),
    FIELDS,
];

/// Additional options of lists of runs.
pub(super) const OF_RUNS: &[Parameter] = &[
    text("namePrefix", "Only workflows whose name has this prefix"),
    operation::time("createdAfter", "Only workflows created after that"),
    operation::time("finishedBefore", "Only workflows finished before that"),
];

pub(super) const FIELDS: Parameter =
    text("fields", "Only these parts of the answer, or with a leading `-` all but these");

pub(super) async fn list(call: Call) -> Result<Answer, Fault> {
    let wanted = history_filter(&call.query, namespace(&call)?)?;
    answer(&call, wanted).await
}

/// Answers with the list of runs.
pub(super) async fn answer(call: &Call, wanted: HistoryFilter) -> Result<Answer, Fault> {
    let mask = Mask::of(&call.query);
    pieces::begin(call, move |registry| {
        let nodes = mask.wants("items.status.nodes");
        let runs = Runs { registry: registry.clone(), history: registry.history(kind("Workflow"), wanted)?, nodes };
        Ok(List::new("WorkflowList".to_owned(), runs, mask))
    })
    .await
}

/// Runs of a list, with nodes only if the mask wants them.
struct Runs {
    registry: Registry,
    history: History,
    nodes: bool,
}

impl Items for Runs {
    fn next_item(&mut self) -> Result<Option<Value>, RegistryFault> {
        while let Some(row) = self.history.next_row()? {
            let object = if self.nodes { self.registry.listed_run(&row) } else { self.registry.trimmed_run(&row) };
            match object {
                Ok(object) => return Ok(Some(object)),
                // It was deleted meanwhile.
                Err(RegistryFault::NotFound { .. }) => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(None)
    }

    fn end(&mut self) -> Result<(Revision, Option<String>), RegistryFault> {
        Ok((self.history.revision(), self.history.next_skip()?.map(|skip| skip.to_string())))
    }
}

/// Parses the query of a list of runs.
pub(super) fn history_filter(query: &Query, namespace: Option<String>) -> Result<HistoryFilter, Fault> {
    let mut wanted = HistoryFilter { namespace, ..HistoryFilter::default() };
    wanted.selection.labels = labels(query)?;
    let mut named = None;
    let mut rest = Vec::new();
    // Besides equality, two times can be compared.
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

/// Zero means no limit, as in the Kubernetes API.
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

    fn asked(query: &str) -> HistoryFilter {
        history_filter(&Query::parse(query), None).unwrap()
    }

    #[test]
    fn names_are_filtered_as_asked() {
        let query = "listOptions.fieldSelector=metadata.name%3Da";
        assert_eq!(asked(query).name, Some(NameTest::Is("a".into())));
        assert_eq!(asked(&format!("{query}&nameFilter=Contains")).name, Some(NameTest::Contains("a".into())));
        assert_eq!(asked(&format!("{query}&nameFilter=Prefix")).name, Some(NameTest::Begins("a".into())));
        assert_eq!(asked("namePrefix=b").name, Some(NameTest::Begins("b".into())));
        assert!(history_filter(&Query::parse(&format!("{query}&nameFilter=Like")), None).is_err());
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
            assert!(history_filter(&Query::parse(wrong), None).is_err(), "{wrong}");
        }
    }
}
