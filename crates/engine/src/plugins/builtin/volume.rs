//! The decorator that mounts one claim into every container, so that all of a job see the same files.

use serde_json::{Value, json};

use super::{Question, settings::Settings, templates};

pub(super) struct SharedVolume {
    claim: String,
    path: String,
    read_only: bool,
}

impl SharedVolume {
    pub(super) fn read(settings: &Settings<'_>) -> Result<Self, String> {
        settings.only(&["claim", "mountPath", "readOnly"])?;
        let path = settings.required("mountPath")?;
        if !path.starts_with('/') {
            return Err(settings.wrong("mountPath", "an absolute path"));
        }
        let read_only = settings.flag("readOnly")?.unwrap_or(false);
        Ok(Self { claim: settings.required("claim")?.to_owned(), path: path.to_owned(), read_only })
    }
}

pub(super) fn decorate(question: &Question<'_>, shared: &SharedVolume) -> Result<Value, String> {
    let mut job = question.job.clone();
    templates::each(&mut job, |_, template| {
        let spec = template.get_mut("spec").ok_or("a pod template has no spec")?;
        let volumes = templates::list(spec, "volumes")?;
        let same = |volume: &&Value| volume["persistentVolumeClaim"]["claimName"] == shared.claim;
        let name = match volumes.iter().find(same).and_then(|volume| volume["name"].as_str()) {
            Some(name) => name.to_owned(),
            None => {
                let name = free_name(volumes);
                volumes.push(json!({"name": name, "persistentVolumeClaim": {"claimName": shared.claim}}));
                name
            }
        };
        templates::containers(template, |container| {
            let owner = container["name"].as_str().unwrap_or("main").to_owned();
            let mounts = templates::list(container, "volumeMounts")?;
            match mounts.iter().find(|mount| mount["mountPath"] == shared.path) {
                Some(mount) if mount["name"] == name => {}
                Some(_) => return Err(format!("container {owner} has another volume at {}", shared.path)),
                None => {
                    let mut mount = json!({"name": name, "mountPath": shared.path});
                    if shared.read_only {
                        mount["readOnly"] = json!(true);
                    }
                    mounts.push(mount);
                }
            }
            Ok(())
        })
    })?;
    Ok(job)
}

/// Returns a name that no volume has.
fn free_name(volumes: &[Value]) -> String {
    let is_free = |name: &String| !volumes.iter().any(|volume| volume["name"] == *name);
    let numbered = (2..).map(|number| format!("shared-{number}"));
    std::iter::once("shared".to_owned()).chain(numbered).find(is_free).expect("some number is free")
}
