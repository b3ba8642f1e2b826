//! One Pod: its volumes as directories, its containers as processes, its status as the cluster is told it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use tokio::sync::{Mutex, watch};

use super::client::ClusterClient;
use super::container::ContainerRun;
use super::node::{NodeShared, persist};

/// What becomes of a Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodOrder {
    /// It runs.
    Run,
    /// It is asked to end, and ended after this time.
    Stop(Duration),
    /// It is gone.
    Kill,
}

/// A Pod that runs here.
pub(super) struct PodRun {
    pub(super) client: ClusterClient,
    pub(super) node: Arc<NodeShared>,
    pub(super) pod: Value,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Where its logs are.
    pub(super) directory: PathBuf,
    /// The directories of its volumes.
    pub(super) volumes: BTreeMap<String, PathBuf>,
    pub(super) orders: watch::Receiver<PodOrder>,
    status: Mutex<PodView>,
}

/// What the cluster is told.
struct PodView {
    phase: &'static str,
    started: String,
    before: Vec<Value>,
    main: Vec<Value>,
}

/// Which containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodStage {
    Before,
    Main,
}

impl PodStage {
    fn key(self) -> &'static str {
        match self {
            Self::Before => "initContainers",
            Self::Main => "containers",
        }
    }
}

/// Runs a Pod to its end, and on to its deletion.
pub(super) async fn run(
    client: ClusterClient,
    node: Arc<NodeShared>,
    pod: Value,
    orders: watch::Receiver<PodOrder>,
) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &pod["metadata"];
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let uid = text(&metadata["uid"]);
    let directory = node.directory.join(&uid);
    let _ = std::fs::create_dir_all(&directory);
    node.logs.add(&namespace, &name, directory.clone());
    let waiting = |stage: PodStage, reason: &str| -> Vec<Value> {
        let all = pod["spec"][stage.key()].as_array();
        let all = all.map(Vec::as_slice).unwrap_or_default().iter();
        all.map(|spec| {
            json!({
                "name": spec["name"], "image": spec["image"], "imageID": "", "ready": false,
                "restartCount": 0, "state": {"waiting": {"reason": reason}}, "lastState": {},
            })
        })
        .collect()
    };
    let status = PodView {
        phase: "Pending",
        started: format!("{:.0}", Timestamp::now()),
        before: waiting(PodStage::Before, "PodInitializing"),
        main: waiting(PodStage::Main, "ContainerCreating"),
    };
    let mut run = PodRun {
        volumes: BTreeMap::new(),
        status: Mutex::new(status),
        client,
        node,
        namespace,
        name,
        directory,
        orders,
        pod,
    };
    run.publish().await;
    run.make_volumes().await;
    let run = Arc::new(run);
    let is_good = run.clone().containers().await;
    let phase = if is_good { "Succeeded" } else { "Failed" };
    run.status.lock().await.phase = phase;
    let _ = std::fs::remove_dir_all(run.directory.join("volumes"));
    run.publish().await;
    // What ended stays until somebody wants it gone.
    let mut orders = run.orders.clone();
    let wanted = orders.wait_for(|order| *order != PodOrder::Run).await;
    let is_there = wanted.is_ok_and(|order| *order != PodOrder::Kill);
    if is_there {
        let path = run.path();
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        let _ = persist(|| run.client.delete(&path, &options)).await;
    }
}

impl PodRun {
    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/pods/{}", self.namespace, self.name)
    }

    /// Runs what comes before, one after the other, then the rest side by side. Says whether all went well.
    async fn containers(self: Arc<Self>) -> bool {
        let count = |stage: PodStage| self.pod["spec"][stage.key()].as_array().map_or(0, Vec::len);
        for index in 0..count(PodStage::Before) {
            let container = ContainerRun::new(Arc::clone(&self), PodStage::Before, index);
            if !container.run_to_end().await {
                return false;
            }
        }
        let all = (0..count(PodStage::Main)).map(|index| {
            let container = ContainerRun::new(Arc::clone(&self), PodStage::Main, index);
            tokio::spawn(container.run_to_end())
        });
        let all: Vec<_> = all.collect();
        let mut is_good = true;
        for container in all {
            is_good &= container.await.unwrap_or(false);
        }
        is_good
    }

    pub(super) fn spec(&self, stage: PodStage, index: usize) -> &Value {
        &self.pod["spec"][stage.key()][index]
    }

    /// Tells of a container's state.
    pub(super) async fn tell(&self, stage: PodStage, index: usize, change: Value) {
        {
            let mut status = self.status.lock().await;
            let list = match stage {
                PodStage::Before => &mut status.before,
                PodStage::Main => &mut status.main,
            };
            if let (Some(container), Value::Object(change)) = (list.get_mut(index), change) {
                for (key, value) in change {
                    container[key] = value;
                }
            }
            let runs = status
                .main
                .iter()
                .any(|one| one["state"]["running"].is_object());
            if runs && status.phase == "Pending" {
                status.phase = "Running";
            }
        }
        self.publish().await;
    }

    /// Tells the cluster how the Pod is doing, until it has heard it.
    async fn publish(&self) {
        let path = format!("{}/status", self.path());
        let status = self.status.lock().await;
        let is_ready =
            !status.main.is_empty() && status.main.iter().all(|one| one["ready"] == true);
        let ended = |one: &Value| one["state"]["terminated"]["exitCode"] == 0;
        let is_initialized = status.before.iter().all(ended);
        let condition = |kind: &str, is: bool| {
            let told = if is { "True" } else { "False" };
            json!({"type": kind, "status": told})
        };
        let change = json!({
            "metadata": {"uid": self.pod["metadata"]["uid"]},
            "status": {
                "phase": status.phase, "startTime": status.started,
                "hostIP": "127.0.0.1", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
                "conditions": [
                    condition("Initialized", is_initialized),
                    condition("ContainersReady", is_ready),
                    condition("Ready", is_ready),
                ],
                "initContainerStatuses": status.before, "containerStatuses": status.main,
            },
        });
        // Held meanwhile, so that what is told last is what is.
        let _ = persist(|| self.client.patch(&path, &change)).await;
    }

    /// Warns of something, as people see it with `kubectl describe`.
    pub(super) async fn warn(&self, reason: &str, message: &str) {
        let metadata = &self.pod["metadata"];
        let now = format!("{:.0}", Timestamp::now());
        let event = json!({
            "metadata": {"generateName": "pod-", "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "name": self.name, "namespace": self.namespace,
                "uid": metadata["uid"],
            },
            "type": "Warning", "reason": reason, "message": message, "count": 1,
            "firstTimestamp": now, "lastTimestamp": now,
            "source": {"component": "kubelet", "host": self.node.name},
        });
        let path = format!("/api/v1/namespaces/{}/events", self.namespace);
        let _ = self.client.create(&path, &event).await;
    }

    /// Makes a directory of each volume. What is missing keeps its containers from starting: they look for it again.
    async fn make_volumes(&mut self) {
        let volumes = self.pod["spec"]["volumes"].as_array().cloned();
        for volume in volumes.unwrap_or_default() {
            let name = volume["name"].as_str().unwrap_or_default();
            let directory = self.directory.join("volumes").join(name);
            let _ = std::fs::create_dir_all(&directory);
            let files = if let Some(secret) = volume["secret"]["secretName"].as_str() {
                self.values("secrets", secret).await
            } else if let Some(map) = volume["configMap"]["name"].as_str() {
                self.values("configmaps", map).await
            } else {
                None
            };
            for (file, text) in files.unwrap_or_default() {
                let _ = std::fs::write(directory.join(file), text);
            }
            self.volumes.insert(name.to_owned(), directory);
        }
    }

    /// The values of a secret or of a config map; none if it is not there.
    pub(super) async fn values(&self, kind: &str, name: &str) -> Option<BTreeMap<String, String>> {
        let path = format!("/api/v1/namespaces/{}/{kind}/{name}", self.namespace);
        let object = persist(|| self.client.get(&path)).await.ok()?;
        let pairs = object["data"].as_object().cloned().unwrap_or_default();
        let decoded = pairs.into_iter().map(|(key, value)| {
            let text = value.as_str().unwrap_or_default();
            let plain = if kind == "secrets" {
                let bytes = STANDARD.decode(text).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            } else {
                text.to_owned()
            };
            (key, plain)
        });
        Some(decoded.collect())
    }

    /// Paths in the Pod, and what they are here, the longest first.
    pub(super) fn mounts(&self, stage: PodStage, index: usize) -> Vec<(String, PathBuf)> {
        let mounts = self.spec(stage, index)["volumeMounts"].as_array();
        let mounts = mounts.map(Vec::as_slice).unwrap_or_default().iter();
        let mut found: Vec<(String, PathBuf)> = mounts
            .filter_map(|mount| {
                let volume = self.volumes.get(mount["name"].as_str()?)?;
                Some((mount["mountPath"].as_str()?.to_owned(), volume.clone()))
            })
            .collect();
        found.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        found
    }

    /// Whether a container is started again after this exit code.
    pub(super) fn restarts(&self, stage: PodStage, code: i32) -> bool {
        match self.pod["spec"]["restartPolicy"].as_str() {
            Some("Never") => false,
            Some("OnFailure") => code != 0,
            _ => code != 0 || stage == PodStage::Main,
        }
    }
}

/// Asks a group of processes to end.
pub(super) fn terminate(group: u32) {
    send(group, Signal::TERM);
}

/// Ends a group of processes.
pub(super) fn kill(group: u32) {
    send(group, Signal::KILL);
}

fn send(group: u32, signal: Signal) {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw);
    if let Some(group) = group {
        let _ = kill_process_group(group, signal);
    }
}

/// The file into which a container writes what it has to say at its end.
pub(super) fn termination_log(directory: &std::path::Path, container: &str) -> PathBuf {
    directory.join(format!("{container}.termination-log"))
}
