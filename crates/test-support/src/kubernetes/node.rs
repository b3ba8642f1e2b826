//! A node: registers, keeps its lease, and runs the Pods that are bound to it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::client::{ClusterClient, Refused};
use super::control_plane::{AuthorityOf, ControlPlane};
use super::images::Images;
use super::logs::{self, PodLogs};
use super::pod::{self, PodOrder};
use super::reaper::Reaper;

/// How often a node says that it is there.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// The pause after a request that was not answered.
pub(super) const PAUSE: Duration = Duration::from_millis(200);
/// Where leases of nodes are.
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// A node. It is gone, with its processes, when this is dropped; the cluster is not told.
#[derive(Debug)]
pub struct Node {
    name: String,
    shared: Arc<NodeShared>,
    runtime: Option<Runtime>,
}

/// What the parts of a node share.
#[derive(Debug)]
pub(super) struct NodeShared {
    pub(super) name: String,
    pub(super) directory: PathBuf,
    pub(super) images: Images,
    pub(super) logs: PodLogs,
    reaper: Arc<Reaper>,
    groups: Mutex<BTreeSet<u32>>,
}

impl NodeShared {
    /// A group of processes that ends with the node.
    pub(super) fn add_group(&self, group: u32) {
        self.reaper.add(group);
        self.groups().insert(group);
    }

    /// A group that has ended.
    pub(super) fn remove_group(&self, group: u32) {
        self.reaper.remove(group);
        self.groups().remove(&group);
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, BTreeSet<u32>> {
        lock(&self.groups)
    }
}

impl Node {
    /// Starts a node with these images. Pods are bound to it when the cluster has seen it.
    pub fn start(plane: &ControlPlane, name: &str, images: Images) -> Self {
        Self::start_in(plane, name, "default", images)
    }

    /// The same with the label `pool`, which Pods can select it by.
    pub fn start_in(plane: &ControlPlane, name: &str, pool: &str, images: Images) -> Self {
        let shared = Arc::new(NodeShared {
            name: name.to_owned(),
            directory: plane.directory(name),
            images,
            logs: PodLogs::default(),
            reaper: Arc::clone(&plane.reaper),
            groups: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let (kubeconfig, pool) = (plane.admin_kubeconfig(), pool.to_owned());
        let AuthorityOf(authority) = &*plane.authority;
        let (tls, of_node) = (authority.server(), Arc::clone(&shared));
        runtime.spawn(async move {
            let client = ClusterClient::new(&kubeconfig).await;
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            tokio::spawn(logs::serve(listener, tls, of_node.logs.clone()));
            register(&client, &of_node.name, &pool, port).await;
            tokio::spawn(keep_lease(client.clone(), of_node.name.clone()));
            follow_pods(client, of_node).await;
        });
        Self {
            name: name.to_owned(),
            shared,
            runtime: Some(runtime),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Goes away as if its power was cut: processes end at once, and nobody is told.
    pub fn vanish(self) {}
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // First who would tell of the ends of processes, then the processes.
            runtime.shutdown_background();
        }
        for group in std::mem::take(&mut *self.shared.groups()) {
            pod::kill(group);
            self.shared.reaper.remove(group);
        }
    }
}

/// Asks until there is an answer; refusals are answers, except those of a server that is not ready.
pub(super) async fn persist<F>(mut ask: impl FnMut() -> F) -> Result<Value, Refused>
where
    F: Future<Output = Result<Value, Refused>>,
{
    loop {
        match ask().await {
            Err(refused) if matches!(refused.code, 0 | 401 | 403 | 429 | 500..) => {
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}

async fn register(client: &ClusterClient, name: &str, pool: &str, port: u16) {
    let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "pool": pool});
    let node = json!({"metadata": {"name": name, "labels": labels}});
    let _ = persist(|| client.create("/api/v1/nodes", &node)).await;
    let now = format!("{:.0}", Timestamp::now());
    let room = json!({"cpu": "64", "memory": "256Gi", "pods": "250", "ephemeral-storage": "256Gi"});
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Test", "message": "",
            "lastHeartbeatTime": now, "lastTransitionTime": now})
    };
    let status = json!({"status": {
        "capacity": room, "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [
            condition("Ready", "True"), condition("MemoryPressure", "False"),
            condition("DiskPressure", "False"), condition("PIDPressure", "False"),
        ],
    }});
    let path = format!("/api/v1/nodes/{name}/status");
    persist(|| client.patch(&path, &status)).await.unwrap();
}

async fn keep_lease(client: ClusterClient, name: String) {
    let path = format!("{LEASES}/{name}");
    loop {
        let spec = json!({
            "holderIdentity": name, "leaseDurationSeconds": 40,
            "renewTime": format!("{:.6}", Timestamp::now()),
        });
        let renewed = client.patch(&path, &json!({"spec": spec})).await;
        if renewed.is_err_and(|refused| refused.code == 404) {
            let lease = json!({"metadata": {"name": name}, "spec": spec});
            let _ = client.create(LEASES, &lease).await;
        }
        tokio::time::sleep(HEARTBEAT).await;
    }
}

/// Lists the Pods, watches them, and begins again when the watch ends.
async fn follow_pods(client: ClusterClient, shared: Arc<NodeShared>) {
    let mut running: BTreeMap<String, watch::Sender<PodOrder>> = BTreeMap::new();
    let path = format!("/api/v1/pods?fieldSelector=spec.nodeName%3D{}", shared.name);
    loop {
        if let Ok(mut list) = client.get(&path).await {
            let version = list["metadata"]["resourceVersion"].as_str();
            let version = version.unwrap_or_default().to_owned();
            let items = list["items"].as_array_mut().map(std::mem::take);
            let items = items.unwrap_or_default();
            let listed: BTreeSet<&str> = items.iter().filter_map(uid).collect();
            for (uid, orders) in &running {
                if !listed.contains(uid.as_str()) {
                    orders.send_replace(PodOrder::Kill);
                }
            }
            for pod in &items {
                see(&client, &shared, &mut running, pod);
            }
            let watching = format!("{path}&watch=true&resourceVersion={version}&timeoutSeconds=60");
            if let Ok(mut watch) = client.watch(&watching).await {
                while let Some(event) = watch.next().await {
                    let pod = &event["object"];
                    match event["type"].as_str() {
                        Some("ADDED" | "MODIFIED") => see(&client, &shared, &mut running, pod),
                        Some("DELETED") => {
                            let orders = uid(pod).and_then(|uid| running.get(uid));
                            if let Some(orders) = orders {
                                orders.send_replace(PodOrder::Kill);
                            }
                        }
                        // An error, such as that the version is too old.
                        _ => break,
                    }
                }
            }
        }
        running.retain(|_, orders| !orders.is_closed());
        tokio::time::sleep(PAUSE).await;
    }
}

/// Takes note of a Pod: one that is new is run, one that shall go is stopped.
fn see(
    client: &ClusterClient,
    shared: &Arc<NodeShared>,
    running: &mut BTreeMap<String, watch::Sender<PodOrder>>,
    pod: &Value,
) {
    let Some(uid) = uid(pod) else { return };
    let order = if pod["metadata"]["deletionTimestamp"].is_string() {
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_u64();
        PodOrder::Stop(Duration::from_secs(grace.unwrap_or_default()))
    } else {
        PodOrder::Run
    };
    if let Some(orders) = running.get(uid) {
        orders.send_if_modified(|now| {
            let is_new = *now == PodOrder::Run && order != PodOrder::Run;
            if is_new {
                *now = order;
            }
            is_new
        });
        return;
    }
    let has_ended = matches!(
        pod["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    if has_ended && order == PodOrder::Run {
        return;
    }
    let (sender, receiver) = watch::channel(order);
    running.insert(uid.to_owned(), sender);
    tokio::spawn(pod::run(
        client.clone(),
        Arc::clone(shared),
        pod.clone(),
        receiver,
    ));
}

fn uid(pod: &Value) -> Option<&str> {
    pod["metadata"]["uid"].as_str()
}
