//! The metrics route, in the Prometheus text format.

use octoflow_control::registry::Fault as Reason;

use crate::{
    answer::{self, Answer, fault::Fault},
    call::Call,
    faces::openapi::operation::Content,
    gate::area::Area,
    listen::expose::{self, Scrape},
    route::{Need, Table},
};

/// The one route that configuration may open to everybody.
pub(crate) const PATH: &str = "/metrics";

pub(super) fn routes(table: &mut Table) {
    let route = table.get(PATH, Need::Token, metrics);
    // The metrics name every namespace.
    route.within(Area::Server).about("Metrics, as Prometheus reads them").gives(Content::text());
}

async fn metrics(call: Call) -> Result<Answer, Fault> {
    let app = call.app.clone();
    let text = call
        .work(move |registry| {
            let scrape = Scrape {
                gauges: registry.gauges()?,
                phases: registry.runs_by_phase()?,
                revision: registry.revision()?,
                custom: registry.controller().metrics()?,
                hooks: registry.hooks()?,
            };
            Ok::<_, Reason>(expose::text(&app, &scrape))
        })
        .await?;
    Ok(answer::bytes_as(axum::http::StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text.into_bytes()))
}
