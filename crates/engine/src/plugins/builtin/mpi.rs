//! MPIJob to TaskSet: the launcher starts when all workers are up, finds them in a host file, and its end is that of the
//! job.

use serde_json::{Value, json};

use super::{
    Question,
    kubeflow::{self, JobShape, ReplicaGroup, Weight},
    templates,
};

const SHAPE: JobShape = JobShape {
    kind: "MPIJob",
    replicas: "mpiReplicaSpecs",
    groups: &["Worker", "Launcher"],
    fields: &["slotsPerWorker", "mpiImplementation", "mainContainer"],
    container: "mpi",
    port: "mpi",
    default_port: 22,
};

const FOLDER: &str = "/etc/mpi";
const VOLUME: &str = "mpi-job-config";

pub(super) fn translate(question: &Question<'_>) -> Result<Value, String> {
    let mut job = kubeflow::read(question, &SHAPE)?;
    let launchers: u64 = job.roles.iter().filter(|role| role.group == "Launcher").map(|role| role.count).sum();
    if launchers != 1 {
        return Err("an MPIJob has one Launcher, whose end is that of the job".to_owned());
    }
    let slots = match job.spec.get("slotsPerWorker").filter(|slots| !slots.is_null()) {
        None => 1,
        Some(slots) => {
            slots.as_u64().filter(|slots| *slots > 0).ok_or("spec.slotsPerWorker is no whole number from 1 on")?
        }
    };
    let file = format!("{FOLDER}/hostfile");
    let variables = match job.spec["mpiImplementation"].as_str().unwrap_or("OpenMPI") {
        "OpenMPI" => vec![
            ("OMPI_MCA_orte_default_hostfile", file.clone()),
            ("OMPI_MCA_orte_set_default_slots", slots.to_string()),
            ("OMPI_MCA_orte_keep_fqdn_hostnames", "true".to_owned()),
        ],
        "Intel" => vec![("I_MPI_HYDRA_HOST_FILE", file.clone()), ("I_MPI_PERHOST", slots.to_string())],
        "MPICH" => vec![("HYDRA_HOST_FILE", file.clone())],
        other => return Err(format!("spec.mpiImplementation `{other}` is not known")),
    };
    let workers: u64 = job.roles.iter().filter(|role| role.group == "Worker").map(|role| role.count).sum();
    for role in &mut job.roles {
        if role.group == "Launcher" {
            let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
            templates::add_env(role.main()?, variables)?;
            host_file(role, workers, slots, &file)?;
        } else if role.main()?["command"].is_null() && role.main()?["args"].is_null() {
            // Without a command a worker waits for the launcher's connections.
            role.main()?["command"] = json!(["/usr/sbin/sshd", "-De"]);
        }
    }
    let mut made = job.task_set(question, |role| match role.group {
        "Launcher" => Weight::Decides,
        // A worker that ends makes the launcher fail if it was needed.
        _ => Weight::Serves,
    });
    let roles = made["spec"]["roles"].as_array_mut().into_iter().flatten();
    for role in roles.filter(|role| role["name"] == "launcher" && workers > 0) {
        role["dependsOn"] = json!(["worker"]);
    }
    Ok(made)
}

/// Writes the host file before the launcher starts: the workers by name, each with its slots.
fn host_file(role: &mut ReplicaGroup, workers: u64, slots: u64, file: &str) -> Result<(), String> {
    let main = role.main()?;
    let image = main["image"].clone();
    let mount = json!({"name": VOLUME, "mountPath": FOLDER});
    templates::list(main, "volumeMounts")?.push(mount.clone());
    let script =
        format!("i=0; while [ $i -lt {workers} ]; do echo \"worker-$i slots={slots}\"; i=$((i+1)); done > {file}");
    let writer = json!({"name": "hostfile", "image": image, "command": ["sh", "-c", script], "volumeMounts": [mount]});
    let spec = &mut role.template["spec"];
    templates::list(spec, "initContainers")?.insert(0, writer);
    templates::list(spec, "volumes")?.push(json!({"name": VOLUME, "emptyDir": {}}));
    Ok(())
}
