//! `octoflow convert FILE…`: Jobs as JobTemplates and JobTemplates as Jobs, by the table of kinds. Nothing is run or stored.

use anyhow::Result;
use octoflow_engine::kinds::convert::{converted, convertible, counterpart};

use crate::{
    cli::Convert,
    exit::{Exit, Failure},
    load,
    output::{Output, json::objects},
};

pub(crate) fn convert(args: &Convert, output: &Output) -> Result<Exit> {
    let loaded = match load::load(&args.manifests)? {
        Ok(loaded) => loaded,
        Err(problems) => {
            output.talk(problems.render(output.talk_paint().is_on()).trim_end());
            return Ok(Exit::InvalidManifest);
        }
    };
    let mut results = Vec::new();
    for one in loaded {
        match one.known().and_then(counterpart) {
            Some(to) => results.push(converted(&one.value, to)),
            None => output.warn(&format!("{}: a {} is not converted, left out", one.place(), one.kind())),
        }
    }
    if results.is_empty() {
        let failure = Failure::new(Exit::InvalidManifest, "there is nothing to convert");
        return Err(failure.help(format!("converted to each other are {}", convertible().join(" and "))).into());
    }
    output.data(&objects(&args.output, &results, false).unwrap_or_default())?;
    Ok(Exit::Succeeded)
}
