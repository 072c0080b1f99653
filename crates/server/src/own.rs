//! Our own routes: whether the server lives, and what it is.

mod lines;
mod retry;
mod runs;

use octoflow_control::registry::Registry;
use serde_json::json;

use crate::{
    answer::{self, Answer},
    call::Call,
    fault::Fault,
    route::{Face, Need, Table},
};

pub(crate) fn routes() -> Table {
    let mut table = Table::new(Face::Own);
    table.get("/livez", Need::Nothing, live);
    table.get("/readyz", Need::Nothing, ready);
    table.get("/version", Need::Nothing, version);
    runs::add_to(&mut table);
    lines::add_to(&mut table);
    retry::add_to(&mut table);
    table
}

async fn live(_: Call) -> Result<Answer, Fault> {
    Ok(answer::text("ok"))
}

/// Ready is whoever can still decide and read.
async fn ready(call: Call) -> Result<Answer, Fault> {
    call.work(Registry::probe).await?;
    Ok(answer::text("ok"))
}

async fn version(_: Call) -> Result<Answer, Fault> {
    let version = env!("CARGO_PKG_VERSION");
    Ok(answer::json(&json!({
        "major": "1", "minor": "33", "gitVersion": format!("v1.33.0+octoflow-{version}"), "gitCommit": "",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })))
}
