//! The keys of the default artifact repository: what the runs of this house left there.

use octoflow_model::request::ListingRequest;
use octoflow_store::{Filter, Page};

use super::act::told;
use crate::house::Desk;

/// Runs looked at in one go.
const PAGE: usize = 256;

/// Every key that begins so, sorted, each once.
pub(super) fn list(desk: &Desk, request: &ListingRequest) -> Result<Vec<String>, String> {
    let reader = desk.store.reader().map_err(|error| told(error.into()))?;
    let mut keys = std::collections::BTreeSet::new();
    // Namespaces do not see each other's keys.
    let filter = Filter { namespace: Some(request.namespace.clone()), ..Filter::default() };
    let mut page = Page { limit: PAGE, after: None };
    loop {
        let (rows, next) = reader.list(&filter, page).map_err(|error| told(error.into()))?;
        for row in rows {
            let object = desk.object(row.run).map_err(told)?;
            let nodes = object["status"]["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
            let artifacts = nodes.flat_map(|node| node["outputs"]["artifacts"].as_array().into_iter().flatten());
            let found = artifacts
                .filter_map(|artifact| artifact["s3"]["key"].as_str().or_else(|| artifact["local"]["key"].as_str()));
            keys.extend(found.filter(|key| key.starts_with(&request.prefix)).map(str::to_owned));
        }
        match next {
            Some(after) => page.after = Some(after),
            None => break,
        }
    }
    Ok(keys.into_iter().collect())
}
