//! The `kubernetes_job` runtime in a real control plane: quotas, admission, RBAC, pulls, retries, logs, deletion, restarts.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use proofhouse_test_support::kubernetes::{ClusterClient, ControlPlane, Image, Images, Node};
use proofhouse_test_support::wait::eventually;
use proofhouse_test_support::workspace;
use proofhouse_tools::actions::Cluster;
use proofhouse_tools::runtime::{ActionFailure, Invocation, ToolLimits, ToolTask};
use proofhouse_wire::CancellationToken;
use serde_json::{Value, json};

use crate::kubernetes_job::cases;
use crate::kubernetes_support::{execute, failure, script, task, value};
use crate::support::act;

/// An image whose registry does not answer three times.
const SLOW_IMAGE: &str = "slow:1";

/// The control plane with its node; none where its programs are not there.
fn cluster(test: &str) -> Option<&'static ControlPlane> {
    static NODE: OnceLock<Node> = OnceLock::new();
    let plane = ControlPlane::shared(test)?;
    NODE.get_or_init(|| {
        let images = [Image::new("busybox:1.36"), Image::new(SLOW_IMAGE).slow(3)];
        Node::start(plane, "tools-1", Images::new(images))
    });
    Some(plane)
}

/// Short where something is expected to be wrong, long where a busy machine only takes its time.
fn limits() -> ToolLimits {
    let mut limits = ToolLimits::default();
    limits.job.deadline = Duration::from_secs(240);
    limits.job.poll = Duration::from_millis(200);
    limits.job.start_patience = Duration::from_secs(1);
    limits.job.silence = Duration::from_secs(200);
    limits.job.cleanup = Duration::from_secs(30);
    limits
}

fn task_of(kubeconfig: &Path, namespace: &str, spec: &Value, limits: &ToolLimits) -> ToolTask {
    let cluster = Cluster::kubeconfig(kubeconfig);
    task(cluster, &execute(namespace, spec), limits)
}

/// A script that goes on when a file is there, and says so at its end.
fn waits_for(file: &Path) -> Value {
    script(&format!(
        "echo started; until [ -e '{}' ]; do sleep 0.1; done; printf done > /dev/termination-log",
        file.display()
    ))
}

fn touch(file: &Path) {
    std::fs::write(file, "").unwrap();
}

fn signal_file() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("go-on");
    (directory, file)
}

fn jobs(namespace: &str) -> String {
    format!("/apis/batch/v1/namespaces/{namespace}/jobs")
}

fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

async fn items(admin: &ClusterClient, path: &str) -> Vec<Value> {
    let list = admin.get(path).await.unwrap_or_default();
    list["items"].as_array().cloned().unwrap_or_default()
}

/// Waits until a Pod of the namespace runs.
async fn a_pod_runs(admin: &ClusterClient, namespace: &str) -> Value {
    let path = pods(namespace);
    eventually("a Pod runs", || async {
        let all = items(admin, &path).await;
        all.into_iter()
            .find(|pod| pod["status"]["phase"] == "Running")
    })
    .await
}

/// Waits until the namespace has neither Jobs nor Pods.
async fn nothing_is_left(admin: &ClusterClient, namespace: &str) {
    for path in [jobs(namespace), pods(namespace)] {
        let path = path.as_str();
        eventually("nothing is left", || async {
            let list = admin.get(path).await.ok()?;
            let is_empty = list["items"].as_array().is_some_and(Vec::is_empty);
            is_empty.then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn jobs_yield_their_output_in_a_real_cluster() {
    // The cluster of whoever sets it, else ours.
    if workspace::setting("KUBECONFIG").is_some() {
        let namespace = workspace::setting("KUBE_NAMESPACE");
        let namespace = namespace.unwrap_or_else(|| "default".to_owned());
        let variable = |name: &str| workspace::setting(name).map(Into::into);
        for (spec, _, check) in cases() {
            let execute = execute(&namespace, &spec);
            let task = task(Cluster::infer(variable), &execute, &limits());
            check(act(&task, json!({})).await);
            assert_eq!(task.teardown().await, []);
        }
        return;
    }
    let Some(plane) = cluster("kubernetes_job: outputs") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let namespace = plane.namespace("outputs").await;
    for (spec, _, check) in cases() {
        let task = task_of(&plane.admin_kubeconfig(), &namespace, &spec, &limits());
        check(act(&task, json!({})).await);
        assert_eq!(task.teardown().await, []);
    }
    nothing_is_left(&plane.admin().await, &namespace).await;
}

#[tokio::test]
async fn quotas_of_a_real_cluster_are_told_and_pass() {
    let Some(plane) = cluster("kubernetes_job: quotas") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let (admin, kubeconfig) = (plane.admin().await, plane.admin_kubeconfig());
    let namespace = plane.namespace("quota").await;
    let quotas = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    let limit = async |name: &str, hard: Value| {
        let quota = json!({"metadata": {"name": name}, "spec": {"hard": hard}});
        admin.create(&quotas, &quota).await.unwrap();
        let path = format!("{quotas}/{name}");
        let path = path.as_str();
        eventually("the quota counts", || async {
            let quota = admin.get(path).await.ok()?;
            quota["status"]["hard"].is_object().then_some(())
        })
        .await;
    };
    // No Job at all.
    limit("no-jobs", json!({"count/jobs.batch": "0"})).await;
    let task = task_of(&kubeconfig, &namespace, &script("true"), &limits());
    let error = failure(act(&task, json!({})).await);
    assert_eq!(error.failure, ActionFailure::HttpStatus, "{error:?}");
    assert_eq!(error.detail["cause"], "quota");
    assert!(error.is_recoverable() && !error.outcome_unknown);
    assert!(error.message.contains("exceeded quota: no-jobs"), "{error}");
    assert_eq!(task.teardown().await, []);
    // The Job, but no Pods: the cluster only says it in an event.
    let nothing = json!({});
    let path = format!("{quotas}/no-jobs");
    admin.delete(&path, &nothing).await.unwrap();
    limit("no-pods", json!({"pods": "0"})).await;
    let mut short = limits();
    short.job.deadline = Duration::from_secs(8);
    let task = task_of(&kubeconfig, &namespace, &script("true"), &short);
    let error = failure(act(&task, json!({})).await);
    assert_eq!(error.failure, ActionFailure::Deadline, "{error:?}");
    let events = error.detail["events"].to_string();
    assert!(events.contains("exceeded quota: no-pods"), "{events}");
    assert_eq!(task.teardown().await, []);
    nothing_is_left(&admin, &namespace).await;
}

#[tokio::test]
async fn admission_in_a_real_cluster_is_no_matter_of_the_account() {
    let Some(plane) = cluster("kubernetes_job: admission") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let (admin, kubeconfig) = (plane.admin().await, plane.admin_kubeconfig());
    let namespace = plane.namespace("admission").await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    // A policy that says 403, and one that says what policies say by default, 422.
    for (name, reason, label) in [("strict", Some("Forbidden"), "a"), ("plain", None, "b")] {
        let name = format!("{namespace}-{name}");
        let mut rule = json!({
            "expression": format!("!has(object.metadata.labels) || !('deny' in object.metadata.labels) || object.metadata.labels['deny'] != '{label}'"),
            "message": "no such Jobs here",
        });
        if let Some(reason) = reason {
            rule["reason"] = reason.into();
        }
        let policy = json!({"metadata": {"name": name}, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"],
            }]},
            "validations": [rule],
        }});
        let binding = json!({"metadata": {"name": name}, "spec": {
            "policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
        }});
        let policies = format!("{group}/validatingadmissionpolicies");
        admin.create(&policies, &policy).await.unwrap();
        let bindings = format!("{group}/validatingadmissionpolicybindings");
        admin.create(&bindings, &binding).await.unwrap();
        // Until the API server knows of it.
        let mut probe = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "probe", "labels": {"deny": label}}, "spec": script("true"),
        });
        // The runtime says so itself; what is not valid is refused before policies are asked.
        probe["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
        let path = format!("{}?dryRun=All", jobs(&namespace));
        let (path, probe) = (path.as_str(), &probe);
        eventually("the policy holds", || async {
            let refused = admin.create(path, probe).await.err()?;
            refused.message.contains("no such Jobs here").then_some(())
        })
        .await;
        let spec = json!({
            "metadata": {"labels": {"deny": label}},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
                {"name": "main", "image": "busybox:1.36", "command": ["true"]},
            ]}}},
        });
        let task = task_of(&kubeconfig, &namespace, &spec, &limits());
        let error = failure(act(&task, json!({})).await);
        assert_eq!(error.failure, ActionFailure::HttpStatus, "{error:?}");
        assert_eq!(error.detail["cause"], "admission", "{error:?}");
        assert!(error.is_recoverable(), "{error:?}");
        assert!(error.message.contains("no such Jobs here"), "{error}");
    }
    // A rule about Pods is told by an event of the Job.
    let path = format!("/api/v1/namespaces/{namespace}");
    let enforce =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    admin.patch(&path, &enforce).await.unwrap();
    let mut short = limits();
    short.job.deadline = Duration::from_secs(8);
    let task = task_of(&kubeconfig, &namespace, &script("true"), &short);
    let error = failure(act(&task, json!({})).await);
    assert_eq!(error.failure, ActionFailure::Deadline, "{error:?}");
    let events = error.detail["events"].to_string();
    assert!(events.contains("violates PodSecurity"), "{events}");
    assert_eq!(task.teardown().await, []);
    nothing_is_left(&admin, &namespace).await;
}

#[tokio::test]
async fn an_account_of_a_real_cluster_needs_what_the_reference_says() {
    let Some(plane) = cluster("kubernetes_job: RBAC") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let admin = plane.admin().await;
    let namespace = plane.namespace("rbac").await;
    let kubeconfig = plane.kubeconfig(&format!("{namespace}-user"), None);
    let spec = script("echo hello");
    let task = task_of(&kubeconfig, &namespace, &spec, &limits());
    let error = failure(act(&task, json!({})).await);
    assert_eq!(error.failure, ActionFailure::Forbidden, "{error:?}");
    assert!(!error.is_recoverable() && !error.detail.contains_key("cause"));
    assert!(error.message.contains("cannot create resource"), "{error}");
    // What docs/reference/tools.md lists, and nothing else.
    let rule = |group: &str, resource: &str, verbs: &[&str]| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs});
    let role = json!({"metadata": {"name": "jobs"}, "rules": [
        rule("batch", "jobs", &["create", "get", "watch", "delete"]),
        rule("", "pods", &["list"]),
        rule("", "pods/log", &["get"]),
        rule("", "events", &["list"]),
    ]});
    let binding = json!({
        "metadata": {"name": "jobs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "jobs"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("{namespace}-user")}],
    });
    let group = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}");
    admin
        .create(&format!("{group}/roles"), &role)
        .await
        .unwrap();
    admin
        .create(&format!("{group}/rolebindings"), &binding)
        .await
        .unwrap();
    // Rights arrive a moment later.
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"namespace": namespace, "verb": "create", "group": "batch", "resource": "jobs"}},
    });
    let user = ClusterClient::new(&kubeconfig).await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (user, review) = (&user, &review);
    eventually("the role holds", || async {
        let told = user.create(path, review).await.ok()?;
        (told["status"]["allowed"] == true).then_some(())
    })
    .await;
    let task = task_of(&kubeconfig, &namespace, &spec, &limits());
    assert_eq!(value(act(&task, json!({})).await), "hello\n");
    assert_eq!(task.teardown().await, []);
    nothing_is_left(&admin, &namespace).await;
}

#[tokio::test]
async fn a_slow_pull_in_a_real_cluster_is_waited_for() {
    let Some(plane) = cluster("kubernetes_job: pulls") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let namespace = plane.namespace("pulls").await;
    let mut limits = limits();
    // Shorter than the registry takes.
    limits.job.start_patience = Duration::from_millis(1);
    let spec = json!({"template": {"spec": {"containers": [
        {"name": "main", "image": SLOW_IMAGE, "command": ["echo", "pulled"]},
    ]}}});
    let task = task_of(&plane.admin_kubeconfig(), &namespace, &spec, &limits);
    assert_eq!(value(act(&task, json!({})).await), "pulled\n");
    // One that is not there is told, with what the node warned of.
    let spec = json!({"template": {"spec": {"containers": [
        {"name": "main", "image": "nowhere:1", "command": ["true"]},
    ]}}});
    let task = task_of(&plane.admin_kubeconfig(), &namespace, &spec, &limits);
    let error = failure(act(&task, json!({})).await);
    assert_eq!(error.failure, ActionFailure::Image, "{error:?}");
    let events = error.detail["events"].to_string();
    assert!(events.contains("nowhere:1: not found"), "{events}");
    nothing_is_left(&plane.admin().await, &namespace).await;
}

#[tokio::test]
async fn retries_and_logs_of_every_container_in_a_real_cluster() {
    let Some(plane) = cluster("kubernetes_job: retries") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let namespace = plane.namespace("retries").await;
    let spec = json!({"backoffLimit": 1, "template": {"spec": {
        "initContainers": [
            {"name": "before", "image": "busybox:1.36", "command": ["echo", "prepared"]},
        ],
        "containers": [
            {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", "echo failing; exit 3"]},
            {"name": "beside", "image": "busybox:1.36", "command": ["echo", "beside it"]},
        ],
    }}});
    let task = task_of(&plane.admin_kubeconfig(), &namespace, &spec, &limits());
    let error = failure(act(&task, json!({})).await);
    assert_eq!(error.failure, ActionFailure::JobFailed, "{error:?}");
    assert_eq!(error.detail["exit_code"], 3);
    assert_eq!(error.detail["container"], "main");
    let logs = error.detail["logs"].as_array().unwrap();
    let of = |container: &str, text: &str| {
        let logs = logs.iter();
        let logs = logs.filter(|log| log["container"] == container && log["log"] == text);
        let pods: std::collections::BTreeSet<&str> =
            logs.filter_map(|log| log["pod"].as_str()).collect();
        pods.len()
    };
    // Two tries.
    assert_eq!(of("before", "prepared\n"), 2, "{logs:?}");
    assert_eq!(of("main", "failing\n"), 2, "{logs:?}");
    assert_eq!(of("beside", "beside it\n"), 2, "{logs:?}");
    nothing_is_left(&plane.admin().await, &namespace).await;
}

#[tokio::test]
async fn deletion_and_cancellation_in_a_real_cluster() {
    let Some(plane) = cluster("kubernetes_job: deletion") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let (admin, kubeconfig) = (plane.admin().await, plane.admin_kubeconfig());
    let namespace = plane.namespace("deletion").await;
    let (_directory, never) = signal_file();
    // Somebody deletes the Job.
    let task = task_of(&kubeconfig, &namespace, &waits_for(&never), &limits());
    let (acted, ()) = tokio::join!(act(&task, json!({})), async {
        a_pod_runs(&admin, &namespace).await;
        let job = items(&admin, &jobs(&namespace)).await.remove(0);
        let path = format!(
            "{}/{}",
            jobs(&namespace),
            job["metadata"]["name"].as_str().unwrap()
        );
        let background = json!({"propagationPolicy": "Background"});
        admin.delete(&path, &background).await.unwrap();
    });
    let error = failure(acted);
    assert_eq!(error.failure, ActionFailure::JobDeleted, "{error:?}");
    assert!(error.outcome_unknown);
    nothing_is_left(&admin, &namespace).await;
    // The call is cancelled.
    let task = task_of(&kubeconfig, &namespace, &waits_for(&never), &limits());
    let cancel = CancellationToken::new();
    let invocation = Invocation {
        id: "call-1".to_owned(),
        action: "act".to_owned(),
        context: json!({"agent": {"name": "a"}}),
        cancel: cancel.clone(),
        ..Invocation::default()
    };
    let (acted, ()) = tokio::join!(task.carry_out(invocation), async {
        a_pod_runs(&admin, &namespace).await;
        cancel.cancel();
    });
    assert_eq!(failure(acted).failure, ActionFailure::Cancelled);
    assert_eq!(task.teardown().await, []);
    nothing_is_left(&admin, &namespace).await;
    // A Pod that is deleted is a failed try; the Job goes on with the next.
    let (_directory, go_on) = signal_file();
    let mut spec = waits_for(&go_on);
    spec["backoffLimit"] = 3.into();
    let task = task_of(&kubeconfig, &namespace, &spec, &limits());
    let (acted, ()) = tokio::join!(act(&task, json!({})), async {
        let pod = a_pod_runs(&admin, &namespace).await;
        let name = pod["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}", pods(&namespace));
        admin.delete(&path, &json!({})).await.unwrap();
        touch(&go_on);
    });
    assert_eq!(value(acted), "done");
    nothing_is_left(&admin, &namespace).await;
}

#[tokio::test]
async fn a_restart_of_a_real_api_server_is_survived() {
    let Some(plane) = cluster("kubernetes_job: restarts") else {
        return;
    };
    let _alone = plane.alone().await;
    let admin = plane.admin().await;
    let namespace = plane.namespace("restarts").await;
    let (_directory, go_on) = signal_file();
    let task = task_of(
        &plane.admin_kubeconfig(),
        &namespace,
        &waits_for(&go_on),
        &limits(),
    );
    let (acted, ()) = tokio::join!(act(&task, json!({})), async {
        a_pod_runs(&admin, &namespace).await;
        let restarted = tokio::task::spawn_blocking(|| {
            plane.kill_api_server();
            // The Job ends while nobody can tell it.
            plane.start_api_server();
        });
        touch(&go_on);
        restarted.await.unwrap();
    });
    assert_eq!(value(acted), "done");
    assert_eq!(task.teardown().await, []);
    nothing_is_left(&admin, &namespace).await;
}
