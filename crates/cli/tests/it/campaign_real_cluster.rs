//! `run --on kubernetes` in a real control plane: five workers finish a campaign, whatever is taken from them.
#![cfg(unix)]
#![allow(clippy::panic, clippy::disallowed_methods, reason = "a test may")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofhouse_store::{PostgresOptions, Store};
use proofhouse_test_support::kubernetes::{ClusterClient, ControlPlane, Image, Images, Node};
use proofhouse_test_support::postgres::Postgres;
use proofhouse_test_support::wait::eventually;
use serde_json::{Value, json};

use crate::campaigns::{Campaigns, PROMPT, code, stderr};
use crate::chart_real_cluster::{apply, objects};
use crate::resume::counted;

const AGENT_IMAGE: &str = "shop-agent:1";
const PROGRAM_IMAGE: &str = "proofhouse:test";

/// A namespace that is prepared as the how-to page says.
struct Prepared {
    plane: &'static ControlPlane,
    admin: ClusterClient,
    namespace: String,
    /// Of the service account that may do what `rbac.yaml` says.
    kubeconfig: PathBuf,
    postgres: Postgres,
    campaigns: Campaigns,
}

fn images() -> Images {
    let program = env!("CARGO_BIN_EXE_proofhouse");
    Images::new([
        Image::new(AGENT_IMAGE),
        Image::new(PROGRAM_IMAGE).with_program("/usr/bin/proofhouse", program),
    ])
}

async fn prepare(test: &str, prefix: &str) -> Option<Prepared> {
    let plane = ControlPlane::shared(test)?;
    let postgres = Postgres::for_test(test)?;
    let admin = plane.admin().await;
    let namespace = plane.namespace(prefix).await;
    let secret = json!({
        "metadata": {"name": "proofhouse-store"},
        "data": {"url": STANDARD.encode(postgres.url())},
    });
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    admin.create(&path, &secret).await.unwrap();
    let rbac = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes/rbac.yaml");
    let rbac = std::fs::read_to_string(rbac).unwrap();
    let rbac = rbac.replace("namespace: default", &format!("namespace: {namespace}"));
    apply(&admin, &namespace, &objects(&rbac)).await;
    let account =
        format!("/api/v1/namespaces/{namespace}/serviceaccounts/proofhouse-campaigns/token");
    let token = admin.create(&account, &json!({"spec": {}})).await.unwrap();
    let token = token["status"]["token"].as_str().unwrap();
    let kubeconfig = plane.kubeconfig_of_token(&namespace, token);
    Some(Prepared {
        campaigns: Campaigns::new(),
        plane,
        admin,
        namespace,
        kubeconfig,
        postgres,
    })
}

impl Prepared {
    /// The command with five workers on the nodes of the namespace's pool.
    fn command(&self, repeats: &str, more: &[&str]) -> Command {
        let run = [
            "run",
            "documents",
            "--prompt",
            PROMPT,
            "--seed",
            "7",
            "--repeats",
            repeats,
            "--name",
            "c",
            "--on",
            "kubernetes",
            "--workers",
            "5",
            "--jobs",
            "2",
            "--proofhouse-image",
            PROGRAM_IMAGE,
            "--format",
            "json",
        ];
        let mut command = self.campaigns.command(&run);
        for (flag, usual) in [("--image", AGENT_IMAGE), ("--namespace", &self.namespace)] {
            if !more.contains(&flag) {
                command.args([flag, usual]);
            }
        }
        command
            .args(["--node-selector", &format!("pool={}", self.namespace)])
            .args(more)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PROOFHOUSE_STORE", self.postgres.url());
        command
    }

    fn node(&self, number: u32) -> Node {
        let name = format!("{}-{number}", self.namespace);
        Node::start_in(self.plane, &name, &self.namespace, images())
    }

    /// What one process makes of the same.
    fn alone(&self, repeats: &str) -> Vec<Value> {
        let more = [
            "--repeats",
            repeats,
            "--seed",
            "7",
            "--format",
            "json",
            "--no-keep",
        ];
        let ran = self.campaigns.run(&more);
        counted(&serde_json::from_slice(&ran.stdout).unwrap())
    }

    fn pods(&self) -> String {
        format!("/api/v1/namespaces/{}/pods", self.namespace)
    }

    async fn pod_names(&self, phase: &str, node: Option<&str>) -> Vec<String> {
        let list = self.admin.get(&self.pods()).await.unwrap_or_default();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let fits = |pod: &&Value| {
            pod["status"]["phase"] == phase
                && node.is_none_or(|node| pod["spec"]["nodeName"] == node)
        };
        let names = items.iter().filter(fits);
        names
            .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    async fn nothing_is_left(&self) {
        let jobs = format!("/apis/batch/v1/namespaces/{}/jobs", self.namespace);
        for path in [jobs, self.pods()] {
            let path = path.as_str();
            eventually("nothing is left", || async {
                let list = self.admin.get(path).await.ok()?;
                list["items"].as_array()?.is_empty().then_some(())
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_workers_finish_a_campaign_in_a_real_cluster() {
    let Some(prepared) = prepare("a campaign in a cluster", "campaign").await else {
        return;
    };
    let _peace = prepared.plane.undisturbed().await;
    let _node = prepared.node(1);
    let mut command = prepared.command("10", &[]);
    let ran = tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap();
    // The gullible simulation gives way.
    assert_eq!(code(&ran), 1, "{}", stderr(&ran));
    let told = stderr(&ran);
    assert!(told.contains("with 5 workers"), "{told}");
    assert!(told.contains("100%:"), "{told}");
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(counted(&result), prepared.alone("10"));
    prepared.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_campaign_survives_what_is_taken_from_it_in_a_real_cluster() {
    let Some(prepared) = prepare("a disturbed campaign in a cluster", "disturbed").await else {
        return;
    };
    const REPEATS: &str = "150";
    let _alone = prepared.plane.alone().await;
    let (first, second) = (prepared.node(1), prepared.node(2));
    let expected = prepared.alone(REPEATS);
    let mut command = prepared.command(REPEATS, &[]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.unwrap();
    let ended = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    let options = PostgresOptions::url(prepared.postgres.url().to_owned());
    let store = Arc::new(Store::open_postgres(options).await.unwrap());
    // Waits until so many runs of a hundred are done.
    let until_done = async |percent: i64| {
        let store = &store;
        eventually("the campaign gets on", || async {
            let campaign = store.find_campaign("c", None).await.ok()??;
            let progress = store.campaign_progress(campaign.id).await.ok()?;
            let is_far = campaign.total > 0 && progress.done * 100 >= campaign.total * percent;
            (is_far || campaign.state.is_over()).then_some(campaign.state.is_over())
        })
        .await
    };
    let mut taken = Vec::new();
    // A Pod.
    if !until_done(10).await {
        let running = prepared.pod_names("Running", None).await;
        let path = format!("{}/{}", prepared.pods(), running[0]);
        prepared.admin.delete(&path, &json!({})).await.unwrap();
        taken.push("a Pod");
    }
    // A node, with everything on it.
    if !until_done(25).await {
        let on_it = prepared.pod_names("Running", Some(second.name())).await;
        assert!(!on_it.is_empty());
        let path = format!("/api/v1/nodes/{}", second.name());
        second.vanish();
        // As whoever runs the machines says it.
        prepared.admin.delete(&path, &json!({})).await.unwrap();
        taken.push("a node");
    }
    // The API server.
    if !until_done(40).await {
        let plane = prepared.plane;
        tokio::task::spawn_blocking(|| {
            plane.kill_api_server();
            plane.start_api_server();
        })
        .await
        .unwrap();
        taken.push("the API server");
    }
    let ran = ended.await.unwrap();
    assert_eq!(taken, ["a Pod", "a node", "the API server"]);
    assert_eq!(code(&ran), 1, "{}", stderr(&ran));
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(counted(&result), expected);
    prepared.nothing_is_left().await;
    drop(first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_keeps_workers_from_working_in_a_real_cluster_is_told() {
    let Some(prepared) = prepare("workers that cannot work", "trouble").await else {
        return;
    };
    let _peace = prepared.plane.undisturbed().await;
    let _node = prepared.node(1);
    let run = async |more: &[&str]| {
        let mut command = prepared.command("1", more);
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
        ran.await.unwrap()
    };
    // An account without rights, and a namespace that is not there: nothing was planned for nobody.
    for (namespace, expected) in [
        ("default", "deploy/kubernetes/rbac.yaml"),
        ("A b", "names of namespaces"),
    ] {
        let ran = run(&["--namespace", namespace]).await;
        assert!([3, 64].contains(&code(&ran)), "{}", stderr(&ran));
        assert!(stderr(&ran).contains(expected), "{}", stderr(&ran));
    }
    // An image that is not there: told at once, and the Job ends when its time is up.
    let ran = run(&["--image", "nowhere:1", "--job-deadline", "8s"]).await;
    assert_eq!(code(&ran), 3, "{}", stderr(&ran));
    let told = stderr(&ran);
    assert!(told.contains("nowhere:1: not found"), "{told}");
    assert!(told.contains("DeadlineExceeded"), "{told}");
    // A secret that is not there.
    let ran = run(&["--secret-env", "KEY=missing:key", "--job-deadline", "8s"]).await;
    assert_eq!(code(&ran), 3, "{}", stderr(&ran));
    let told = stderr(&ran);
    assert!(told.contains("secret \"missing\" not found"), "{told}");
    prepared.nothing_is_left().await;
}
