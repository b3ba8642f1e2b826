//! The chart and the files of `deploy/kubernetes/` in a real control plane: linted, rendered, applied with validation.
#![allow(clippy::panic, clippy::disallowed_methods, reason = "a test may")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use proofhouse_source::{ReadLimits, Source};
use proofhouse_test_support::kubernetes::{ClusterClient, ControlPlane};
use proofhouse_test_support::wait::eventually;
use serde_json::{Value, json};

fn deploy(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("deploy").join(path)
}

/// Where objects of a kind are in a namespace.
pub(crate) fn collection(object: &Value, namespace: &str) -> String {
    let (version, kind) = (&object["apiVersion"], &object["kind"]);
    let (version, kind) = (version.as_str().unwrap(), kind.as_str().unwrap());
    let plural = match kind {
        "NetworkPolicy" => "networkpolicies".to_owned(),
        _ => format!("{}s", kind.to_lowercase()),
    };
    let group = if version == "v1" { "api" } else { "apis" };
    format!("/{group}/{version}/namespaces/{namespace}/{plural}")
}

/// The objects of a file with several.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let parts = text.split("\n---").map(|part| {
        let (source, errors) = Source::read_leniently(part, &ReadLimits::default());
        assert!(errors.is_empty(), "{errors:?}: {part}");
        source.map_or(Value::Null, |source| source.root().to_value(&mut |_| {}))
    });
    parts.filter(|object| object["kind"].is_string()).collect()
}

/// Applies objects on the server's side, with every rule of validation and admission.
pub(crate) async fn apply(admin: &ClusterClient, namespace: &str, all: &[Value]) {
    for object in all {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}", collection(object, namespace));
        let applied = admin.apply(&path, object).await;
        applied.unwrap_or_else(|error| panic!("{}: {error}", object["kind"]));
    }
}

fn helm(plane: &ControlPlane, namespace: &str, arguments: &[&str]) -> Output {
    let home = tempfile::tempdir().unwrap();
    Command::new(plane.programs().join("helm"))
        .args(arguments)
        .args(["--namespace", namespace, "--kubeconfig"])
        .arg(plane.admin_kubeconfig())
        .env("HOME", home.path())
        .output()
        .unwrap()
}

fn good(ran: &Output) -> String {
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Everything that can be switched on.
const EVERYTHING: [&str; 10] = [
    "--set",
    "nightly.enabled=true",
    "--set",
    "nightly.agentImage=shop-agent:1",
    "--set",
    "autoscaling.enabled=true",
    "--set",
    "settings.secretName=operator",
    "--set",
    "publicUrl=https://hooks.example.com",
];

#[tokio::test]
async fn the_chart_is_accepted_by_a_real_cluster() {
    let Some(plane) = ControlPlane::shared("the chart in a cluster") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let admin = plane.admin().await;
    let namespace = plane.namespace("chart").await;
    // Pods that break a rule of the strictest standard are not made.
    let enforce =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let path = format!("/api/v1/namespaces/{namespace}");
    admin.patch(&path, &enforce).await.unwrap();
    let chart = deploy("helm/proofhouse");
    let chart = chart.to_str().unwrap();
    good(&helm(plane, &namespace, &["lint", "--strict", chart]));
    let mut lint = vec!["lint", "--strict", chart];
    lint.extend(EVERYTHING);
    good(&helm(plane, &namespace, &lint));

    let mut template = vec!["template", "agents", chart];
    template.extend(EVERYTHING);
    let all = objects(&good(&helm(plane, &namespace, &template)));
    assert_eq!(all.len(), 9, "{all:?}");
    apply(&admin, &namespace, &all).await;
    // The rules let the Pods of the Deployment be made; the pull of their image is another matter.
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let pods = pods.as_str();
    eventually("Pods of the Deployment", || async {
        let list = admin.get(pods).await.ok()?;
        let count = list["items"].as_array()?.len();
        (count >= 2).then_some(())
    })
    .await;
    // So do they those of the CronJob, started by hand.
    let cron = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/agents-nightly");
    let cron = admin.get(&cron).await.unwrap();
    let by_hand = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "by-hand"},
        "spec": cron["spec"]["jobTemplate"]["spec"],
    });
    let jobs = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
    admin.create(&jobs, &by_hand).await.unwrap();
    let of_job = format!("{pods}?labelSelector=batch.kubernetes.io/job-name%3Dby-hand");
    let of_job = of_job.as_str();
    eventually("the Pod of the campaign", || async {
        let list = admin.get(of_job).await.ok()?;
        (!list["items"].as_array()?.is_empty()).then_some(())
    })
    .await;
    for object in &all {
        let name = object["metadata"]["name"].as_str().unwrap();
        let path = format!("{}/{name}", collection(object, &namespace));
        admin.delete(&path, &json!({})).await.unwrap();
    }
}

#[tokio::test]
async fn helm_installs_upgrades_and_removes_the_chart_in_a_real_cluster() {
    let Some(plane) = ControlPlane::shared("helm in a cluster") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let admin = plane.admin().await;
    let namespace = plane.namespace("helm").await;
    let chart = deploy("helm/proofhouse");
    let chart = chart.to_str().unwrap();
    good(&helm(plane, &namespace, &["install", "agents", chart]));
    let mut upgrade = vec!["upgrade", "agents", chart];
    upgrade.extend(EVERYTHING);
    good(&helm(plane, &namespace, &upgrade));
    let cron = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/agents-nightly");
    assert_eq!(
        admin.get(&cron).await.unwrap()["spec"]["schedule"],
        "0 2 * * *"
    );
    good(&helm(plane, &namespace, &["uninstall", "agents"]));
    assert_eq!(admin.get(&cron).await.unwrap_err().code, 404);
    // What makes no sense is refused before anything is changed.
    for wrong in [
        "replicas=0",
        "nightly.enabled=true",
        "nightly.workers=0",
        "nightly.surprise=1",
    ] {
        let ran = helm(
            plane,
            &namespace,
            &["install", "wrong", chart, "--set", wrong],
        );
        assert!(!ran.status.success(), "{wrong}");
    }
}

#[tokio::test]
async fn the_example_of_every_night_is_accepted_by_a_real_cluster() {
    let Some(plane) = ControlPlane::shared("deploy/kubernetes in a cluster") else {
        return;
    };
    let _peace = plane.undisturbed().await;
    let admin = plane.admin().await;
    let namespace = plane.namespace("nightly").await;
    for file in ["kubernetes/rbac.yaml", "kubernetes/nightly.yaml"] {
        let text = std::fs::read_to_string(deploy(file)).unwrap();
        let mut all = objects(&text);
        for object in &mut all {
            // A binding says where the account is that it binds.
            if object["kind"] == "RoleBinding" {
                object["subjects"][0]["namespace"] = namespace.as_str().into();
            }
        }
        apply(&admin, &namespace, &all).await;
    }
}
