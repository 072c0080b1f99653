//! Custom metrics on disk: one object for each series, written in the same commit as the facts that changed it. A crash
//! rolls back both, so a total is neither lost nor counted twice.

use octoflow_engine::meters::{Live, Meters, Series};
use octoflow_model::Time;
use octoflow_store::{Change, Reader};

use crate::{Error, event_loop::record, read};

/// Kind of these objects. Manifests cannot have it, because it cannot be loaded.
const KIND: &str = "Meter";

/// Makes the change that stores the current state of a series.
pub(crate) fn put(series: &Series) -> Change {
    let (labels, body) = (serde_json::to_string(&series.labels), serde_json::to_vec(series));
    Change::PutObject {
        kind: KIND.to_owned(),
        namespace: series.name.clone(),
        name: labels.expect("a list of texts can be written"),
        uid: String::new(),
        body: body.expect("a series has only finite numbers and keys that are text"),
    }
}

/// Loads all stored metrics. Also returns what could not be read.
pub(crate) fn load(reader: &Reader) -> Result<(Meters, Vec<String>), Error> {
    let mut meters = Meters::default();
    let mut odd = Vec::new();
    for object in reader.objects(KIND, None)? {
        let series: Result<Series, String> = serde_json::from_slice(&object.body).map_err(|error| error.to_string());
        if let Err(why) = series.and_then(|series| meters.restore(series)) {
            odd.push(format!("a series of metric {} is left out: {why}", object.namespace));
        }
    }
    Ok((meters, odd))
}

/// Renders every metric of a data directory in the Prometheus text format, with the gauges of open runs.
pub fn metrics(reader: &Reader, now: Time) -> Result<String, Error> {
    let (meters, mut odd) = load(reader)?;
    let mut live: Vec<Live> = Vec::new();
    for row in reader.unfinished()? {
        let facts = match read::facts(reader, row.run) {
            // It ended meanwhile.
            Err(Error::UnknownRun(_)) => continue,
            facts => facts,
        };
        let run = match facts
            .and_then(|facts| record::fold(row.run, facts).map_err(|why| Error::Journal { run: row.run, why }))
        {
            Ok(run) => run,
            Err(error @ Error::Journal { .. }) => {
                odd.push(error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        live.extend(run.live_meters(now));
    }
    let mut text = meters.render(&live);
    // A comment: Prometheus ignores it and people see it.
    odd.iter().for_each(|why| text.push_str(&format!("# {}\n", why.replace('\n', " "))));
    Ok(text)
}
