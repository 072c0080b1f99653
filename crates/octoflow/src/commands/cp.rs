//! `octoflow cp NAME [DIR]`: downloads artifacts of a run from a server, one folder per node.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::Context;
use crate::{
    cli::Cp,
    client::Address,
    exit::{Exit, Failure},
    load::names,
    source::workflow::{Node, Workflow, list, text},
};

pub(crate) fn cp(args: &Cp, context: &Context) -> Result<Exit> {
    let client = context.client()?;
    let source = context.source_of_server()?;
    let row = source.find(args.namespace.or_default(), &args.name)?;
    let object = source.object(&row)?;
    let workflow = Workflow::new(&object);
    let nodes = workflow.nodes();
    let is_meant = |node: &&Node<'_>| {
        args.node.as_deref().is_none_or(|wanted| [node.display(), node.name(), node.id()].contains(&wanted))
    };
    let meant: Vec<&Node<'_>> = nodes.iter().filter(is_meant).collect();
    if let (Some(wanted), true) = (args.node.as_deref(), meant.is_empty()) {
        let failure = Failure::not_found(format!("run `{}` has no node `{wanted}`", row.name));
        let help = names::suggestion(wanted, nodes.iter().map(|node| node.display()));
        return Err(failure
            .help(help.unwrap_or_else(|| format!("see its nodes with: octoflow get {}", row.name)))
            .into());
    }
    let mut count = 0;
    for node in meant {
        for artifact in list(&node.outputs()["artifacts"]) {
            let name = text(artifact, "name");
            if args.artifact_name.as_deref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            let address = Address::of(&["artifacts", &row.namespace, &row.name, node.id(), name]);
            let (given, mut body) = client.download(&address)?;
            let file = given.filter(|given| is_plain(given)).unwrap_or_else(|| name.to_owned());
            let place = args.folder.join(safe(node.display())).join(safe(&file));
            write(&place, &mut body)?;
            context.output.data(&format!("{}\n", place.display()))?;
            count += 1;
        }
    }
    if count == 0 {
        return Err(Failure::not_found(format!("run `{}` has no such artifacts", row.name))
            .help(format!("see what it has with: octoflow get {} -o wide", row.name))
            .into());
    }
    Ok(Exit::Succeeded)
}

fn write(place: &Path, body: &mut impl io::Read) -> Result<()> {
    let told = || format!("cannot write `{}`", place.display());
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder).with_context(told)?;
    }
    // Written under a temporary name, so that an interrupted download leaves no partial file under the right one.
    let mut half = place.as_os_str().to_owned();
    half.push(".part");
    let half = PathBuf::from(half);
    let mut file = File::create(&half).with_context(told)?;
    io::copy(body, &mut file).with_context(|| format!("cannot fetch `{}`", place.display()))?;
    fs::rename(&half, place).with_context(told)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0'])
}

/// Turns a name into one safe path component.
fn safe(name: &str) -> String {
    let shown: String =
        name.chars()
            .map(|letter| {
                if letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '(' | ')' | ':') {
                    letter
                } else {
                    '_'
                }
            })
            .collect();
    if shown.trim_matches('.').is_empty() { "_".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        assert_eq!(safe("../../etc"), ".._.._etc");
        assert_eq!(safe(".."), "_");
        assert_eq!(safe("fan(0:a/b)"), "fan(0:a_b)");
        assert!(is_plain("a.tgz") && !is_plain("../a") && !is_plain(".bashrc"));
    }
}
