//! Kubernetes' own Jobs and CronJobs as kubectl makes, shows and awaits them, on the real binary.

use crate::rig::{Rig, eventually, shows};

#[test]
fn kubectl_creates_shows_awaits_and_deletes_a_job() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let made = rig.good(&["create", "job", "hello", "--image=busybox", "--", "sh", "-c", "echo hello from a job"]);
    shows(&made, &["job.batch/hello created"]);
    shows(&rig.good(&["wait", "--for=condition=complete", "job/hello", "--timeout=60s"]), &["condition met"]);
    shows(&rig.good(&["get", "jobs"]), &["NAME", "COMPLETIONS", "DURATION", "hello", "1/1"]);
    let object = rig.json(&["get", "job", "hello"]);
    assert_eq!((&object["apiVersion"], &object["status"]["succeeded"]), (&"batch/v1".into(), &1.into()));
    assert_eq!(rig.good(&["logs", "job/hello"]), "hello from a job\n");
    shows(&rig.good(&["get", "pods", "-l", "job-name=hello"]), &["hello-", "Completed"]);
    shows(&rig.good(&["describe", "job", "hello"]), &["Completed", "Succeeded"]);
    shows(&rig.good(&["explain", "job.spec.podFailurePolicy"]), &["rules"]);
    shows(&rig.good(&["delete", "job", "hello"]), &["deleted"]);
    shows(&rig.bad(&["get", "job", "hello"]), &["not found"]);
}

#[test]
fn kubectl_suspends_and_resumes_a_job_and_what_is_fixed_stays() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let text = "apiVersion: batch/v1
kind: Job
metadata: {name: held}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, command: ['true']}]
";
    let file = rig.file("job.yaml", text);
    shows(&rig.good(&["apply", "-f", &file]), &["job.batch/held created"]);
    shows(&rig.good(&["apply", "-f", &file]), &["unchanged"]);
    assert_eq!(rig.good(&["get", "pods", "-o", "name"]), "");
    shows(&rig.bad(&["patch", "job", "held", "-p", "{\"spec\":{\"completionMode\":\"Indexed\"}}"]), &["immutable"]);
    shows(&rig.good(&["patch", "job", "held", "-p", "{\"spec\":{\"suspend\":false}}"]), &["patched"]);
    rig.good(&["wait", "--for=condition=complete", "job/held", "--timeout=60s"]);
}

#[test]
fn kinds_of_a_cluster_are_refused() {
    let Some(rig) = Rig::with_kubectl() else { return };
    shows(&rig.bad(&["create", "deployment", "web", "--image=nginx"]), &["there is nothing at"]);
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 80}]}\n";
    let file = rig.file("service.yaml", service);
    shows(&rig.bad(&["create", "-f", &file]), &["a Service cannot be created or changed here"]);
    assert_eq!(rig.good(&["get", "services", "-o", "name"]), "");
}

#[test]
fn kubectl_creates_a_cron_job_and_a_job_from_it() {
    let Some(rig) = Rig::with_kubectl() else { return };
    let words = ["create", "cronjob", "nightly", "--image=busybox", "--schedule=0 2 * * *", "--", "echo", "good night"];
    shows(&rig.good(&words), &["cronjob.batch/nightly created"]);
    shows(&rig.good(&["get", "cronjobs"]), &["SCHEDULE", "SUSPEND", "nightly", "0 2 * * *", "False"]);
    shows(&rig.good(&["create", "job", "now", "--from=cronjob/nightly"]), &["job.batch/now created"]);
    rig.good(&["wait", "--for=condition=complete", "job/now", "--timeout=60s"]);
    assert_eq!(rig.good(&["logs", "job/now"]), "good night\n");
    shows(&rig.good(&["patch", "cronjob", "nightly", "-p", "{\"spec\":{\"suspend\":true}}"]), &["patched"]);
    shows(&rig.good(&["get", "cj", "nightly"]), &["True"]);
    let wrong = ["create", "cronjob", "wrong", "--image=busybox", "--schedule=99 2 * * *"];
    shows(&rig.bad(&wrong), &["spec.schedule"]);
    rig.good(&["delete", "cronjob", "nightly"]);
    eventually("its Job goes with it", || rig.kubectl(&["get", "job", "now"]).code != 0);
}

/// A workflow with one step, which makes a Job that sleeps and waits for it.
fn parent(name: &str, script: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {{name: {name}}}
spec:
  entrypoint: main
  templates:
  - name: main
    resource:
      action: create
      setOwnerReference: true
      successCondition: status.succeeded > 0
      failureCondition: status.failed > 3
      manifest: |
        apiVersion: batch/v1
        kind: Job
        metadata: {{name: {name}-job}}
        spec:
          template:
            spec:
              restartPolicy: Never
              containers: [{{name: main, image: busybox, command: [sh, -c, '{script}']}}]
"
    )
}

#[test]
fn a_workflow_hears_what_becomes_of_its_job_and_ends_it() {
    let Some(mut rig) = Rig::with_kubectl() else { return };
    for name in ["lost", "stopped", "done"] {
        let script = if name == "done" { "true" } else { "sleep 300" };
        rig.good(&["create", "-f", &rig.file("parent.yaml", &parent(name, script))]);
    }
    let active =
        |rig: &Rig, name: &str| rig.kubectl(&["get", "job", name, "-o", "jsonpath={.status.active}"]).out == "1";
    eventually("the Jobs run", || active(&rig, "lost-job") && active(&rig, "stopped-job"));
    rig.restart();
    assert!(active(&rig, "lost-job"), "it goes on");
    let phase = |name: &str| rig.json(&["get", "workflow", name])["status"]["phase"].clone();
    let job = rig.json(&["get", "job", "lost-job"]);
    assert_eq!(job["metadata"]["ownerReferences"][0]["name"], "lost");
    rig.good(&["delete", "job", "lost-job"]);
    eventually("a Job that somebody deletes fails its step", || phase("lost") == "Failed");
    let message = rig.json(&["get", "workflow", "lost"])["status"]["message"].to_string();
    shows(&message, &["Job 'lost-job' ended Failed"]);
    rig.good(&["patch", "workflow", "stopped", "--type=merge", "-p", "{\"spec\":{\"shutdown\":\"Stop\"}}"]);
    eventually("the workflow ends", || phase("stopped") == "Failed");
    rig.good(&["wait", "--for=condition=failed", "job/stopped-job", "--timeout=60s"]);
    eventually("the third ends well", || phase("done") == "Succeeded");
    assert_eq!(rig.json(&["get", "job", "done-job"])["status"]["succeeded"], 1);
}

#[test]
fn a_name_of_two_kinds_of_jobs_is_asked_back_with_words_that_work() {
    let Some(rig) = Rig::with_kubectl() else { return };
    rig.good(&["create", "job", "twice", "--image=busybox", "--", "true"]);
    let text = "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: twice}
spec:
  tasks:
  - {name: a, replicas: 1, template: {spec: {containers: [{name: a, image: busybox, command: ['true']}]}}}
";
    rig.good(&["apply", "-f", &rig.file("twice.yaml", text)]);
    let address = format!("http://{}", rig.server.address);
    let get = |name: &str| rig.octoflow(&["get", name, "--server", &address, "--token", "admin"]);
    let said = get("twice");
    shows(&said.err, &["a Job of batch/v1 and a Job of batch.volcano.sh/v1alpha1 are called `twice`"]);
    shows(&said.err, &["job/twice or vcjob/twice"]);
    shows(&get("vcjob/twice").out, &["twice"]);
    shows(&get("job/twice").out, &["twice"]);
}
