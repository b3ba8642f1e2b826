//! The control plane: etcd, the API server, the controllers and the scheduler as processes on the loopback address.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use proofhouse_wire::sync::lock;
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::certificates::{Authority, token_keys};
use super::client::{ClusterClient, Refused};
use super::reaper::Reaper;
use crate::loopback::free_address;
use crate::workspace;

/// The group whose members may do everything.
const MASTERS: &str = "system:masters";
/// The switch that `scripts/kubernetes test` sets.
const SUITE: &str = "PROOFHOUSE_REAL_CLUSTER";
/// Longer than a start takes on a machine with much else to do.
const START: Duration = Duration::from_secs(300);

/// A cluster without nodes. It ends with the process, in whatever way that ends.
#[derive(Debug)]
pub struct ControlPlane {
    programs: PathBuf,
    directory: PathBuf,
    pub(super) reaper: Arc<Reaper>,
    pub(super) authority: Arc<AuthorityOf>,
    server: SocketAddr,
    api_arguments: Vec<OsString>,
    api_server: Mutex<Option<Child>>,
    others: Mutex<Vec<Child>>,
    peace: RwLock<()>,
}

/// The authority, which has nothing to show.
pub(super) struct AuthorityOf(pub(super) Authority);

impl std::fmt::Debug for AuthorityOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authority")
    }
}

/// While this is held, the control plane stays as it is.
pub type Undisturbed<'a> = RwLockReadGuard<'a, ()>;

impl ControlPlane {
    /// The one that all tests of this process share; says loudly when nobody asked for it, or when its programs are not there.
    pub fn shared(test: &str) -> Option<&'static Self> {
        static SHARED: OnceLock<Option<ControlPlane>> = OnceLock::new();
        // It takes a core for itself, which tests beside it would wait for.
        if workspace::setting(SUITE).is_none() {
            workspace::skipped(test, "a suite of its own: scripts/kubernetes test");
            return None;
        }
        let shared = SHARED.get_or_init(|| {
            let programs = programs()?;
            // Waiting needs a runtime, and the caller may be in one.
            let started = std::thread::spawn(move || Self::start(programs)).join();
            Some(started.expect("the control plane starts"))
        });
        if shared.is_none() {
            let why = "there is no control plane; make it: scripts/kubernetes build";
            workspace::skipped(test, why);
        }
        shared.as_ref()
    }

    /// Starts one of one's own.
    ///
    /// # Panics
    ///
    /// If its programs are not there or do not start. Not to be called in a runtime.
    pub fn own() -> Self {
        Self::start(programs().expect("scripts/kubernetes build makes its programs"))
    }

    fn start(programs: PathBuf) -> Self {
        let directory = tempfile::Builder::new().prefix("kubernetes").tempdir();
        // The reaper removes it.
        let directory = directory.unwrap().keep();
        let (etcd, peer, server) = (free_address(), free_address(), free_address());
        let authority = Authority::new();
        let api_arguments = api_arguments(&directory, &authority, etcd, server);
        let plane = Self {
            reaper: Arc::new(Reaper::new(&directory)),
            authority: Arc::new(AuthorityOf(authority)),
            api_server: Mutex::new(None),
            others: Mutex::default(),
            peace: RwLock::new(()),
            programs,
            directory,
            server,
            api_arguments,
        };
        let data = plane.directory.join("etcd");
        let (client, peer) = (format!("http://{etcd}"), format!("http://{peer}"));
        plane.also(
            "etcd",
            &[
                format!("--data-dir={}", data.display()),
                format!("--listen-client-urls={client}"),
                format!("--advertise-client-urls={client}"),
                format!("--listen-peer-urls={peer}"),
                format!("--initial-advertise-peer-urls={peer}"),
                format!("--initial-cluster=default={peer}"),
                // No test takes the power away.
                "--unsafe-no-fsync=true".to_owned(),
                "--log-level=warn".to_owned(),
            ],
        );
        plane.start_api_server();
        let kubeconfig = plane.kubeconfig("admin", Some(MASTERS));
        let shown = kubeconfig.display();
        let file = |name: &str| plane.directory.join(name).display().to_string();
        plane.also(
            "kube-controller-manager",
            &[
                format!("--kubeconfig={shown}"),
                format!("--service-account-private-key-file={}", file("sa.key")),
                format!("--root-ca-file={}", file("ca.crt")),
                "--leader-elect=false".to_owned(),
                "--secure-port=0".to_owned(),
                "--kube-api-qps=500".to_owned(),
                "--kube-api-burst=1000".to_owned(),
            ],
        );
        plane.also(
            "kube-scheduler",
            &[
                format!("--kubeconfig={shown}"),
                "--leader-elect=false".to_owned(),
                "--secure-port=0".to_owned(),
                "--kube-api-qps=500".to_owned(),
                "--kube-api-burst=1000".to_owned(),
            ],
        );
        plane
    }

    /// The directory of its programs, of which `helm` is one.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// A kubeconfig of a user, who may do what RBAC says; members of `system:masters` may do everything.
    pub fn kubeconfig(&self, user: &str, group: Option<&str>) -> PathBuf {
        let AuthorityOf(authority) = &*self.authority;
        let signed = authority.vouch(user, group).user();
        self.write_kubeconfig(user, &signed)
    }

    /// A kubeconfig with a token.
    pub fn kubeconfig_of_token(&self, name: &str, token: &str) -> PathBuf {
        self.write_kubeconfig(name, &json!({"token": token}))
    }

    fn write_kubeconfig(&self, name: &str, user: &Value) -> PathBuf {
        let AuthorityOf(authority) = &*self.authority;
        let server = format!("https://{}", self.server);
        let config = authority.kubeconfig(&server, user);
        let file = self.directory.join(format!("{name}.kubeconfig"));
        let beside = tempfile::NamedTempFile::new_in(&self.directory).unwrap();
        std::fs::write(beside.path(), config.to_string()).unwrap();
        beside.persist(&file).unwrap();
        file
    }

    /// A kubeconfig that may do everything.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.kubeconfig("admin", Some(MASTERS))
    }

    /// A client that may do everything, for the current runtime.
    pub async fn admin(&self) -> ClusterClient {
        ClusterClient::new(&self.admin_kubeconfig()).await
    }

    /// A new namespace, in which Pods can be made.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    pub async fn namespace(&self, prefix: &str) -> String {
        let admin = self.admin().await;
        let object = json!({"metadata": {"generateName": format!("{prefix}-")}});
        let made = admin.create("/api/v1/namespaces", &object).await.unwrap();
        let name = made["metadata"]["name"].as_str().unwrap().to_owned();
        let account = format!("/api/v1/namespaces/{name}/serviceaccounts/default");
        let account = account.as_str();
        crate::wait::eventually("a service account", || async {
            admin.get(account).await.ok()
        })
        .await;
        name
    }

    /// Waits until nobody disturbs the control plane, and keeps them from it.
    pub async fn undisturbed(&self) -> Undisturbed<'_> {
        self.peace.read().await
    }

    /// Waits until no other test needs the control plane: for whoever restarts it.
    pub async fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.peace.write().await
    }

    /// Kills the API server.
    pub fn kill_api_server(&self) {
        let mut api_server = lock(&self.api_server);
        if let Some(mut child) = api_server.take() {
            let _ = child.kill();
            let _ = child.wait();
            self.reaper.remove(child.id());
        }
    }

    /// Starts the API server again, and returns when it is ready.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_api_server(&self) {
        let child = self.spawn("kube-apiserver", &self.api_arguments);
        *lock(&self.api_server) = Some(child);
        let kubeconfig = self.kubeconfig("admin", Some(MASTERS));
        let ready = std::thread::spawn(move || wait_until_ready(&kubeconfig)).join();
        let ready = ready.expect("waiting does not panic");
        assert!(ready, "no API server: {}", self.log("kube-apiserver"));
    }

    /// The end of a program's log.
    pub fn log(&self, program: &str) -> String {
        #[expect(clippy::disallowed_methods, reason = "a log of our own")]
        let log = std::fs::read(self.directory.join(format!("{program}.log")));
        let log = log.unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(4000)..]).into_owned()
    }

    /// A directory that goes with the control plane.
    pub(super) fn directory(&self, name: &str) -> PathBuf {
        let directory = self.directory.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        directory
    }

    fn also(&self, program: &str, arguments: &[String]) {
        let child = self.spawn(program, arguments);
        lock(&self.others).push(child);
    }

    fn spawn<A: AsRef<std::ffi::OsStr>>(&self, program: &str, arguments: &[A]) -> Child {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.directory.join(format!("{program}.log")))
            .unwrap();
        let mut command = Command::new(self.programs.join(program));
        let child = command
            .args(arguments)
            .current_dir(&self.directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.reaper.add(child.id());
        child
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.kill_api_server();
        for mut child in lock(&self.others).drain(..) {
            let _ = child.kill();
            let _ = child.wait();
            self.reaper.remove(child.id());
        }
    }
}

/// Where `scripts/kubernetes build` puts the programs, if all are there.
fn programs() -> Option<PathBuf> {
    let script = workspace::root().join("scripts/kubernetes");
    let output = Command::new(script).arg("check").output().ok()?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then(|| path.into())
}

fn api_arguments(
    directory: &Path,
    authority: &Authority,
    etcd: SocketAddr,
    server: SocketAddr,
) -> Vec<OsString> {
    let ca = authority.write(directory);
    let [certificate, key] = authority
        .vouch("kube-apiserver", None)
        .write(directory, "apiserver");
    let [kubelet, kubelet_key] = authority
        .vouch("kubelet-client", Some(MASTERS))
        .write(directory, "kubelet");
    let [signing, checking] = token_keys(directory);
    let mut arguments = Vec::new();
    let mut push = |name: &str, value: &Path| {
        let mut argument = OsString::from(format!("--{name}="));
        argument.push(value);
        arguments.push(argument);
    };
    push("client-ca-file", &ca);
    push("tls-cert-file", &certificate);
    push("tls-private-key-file", &key);
    push("kubelet-certificate-authority", &ca);
    push("kubelet-client-certificate", &kubelet);
    push("kubelet-client-key", &kubelet_key);
    push("service-account-signing-key-file", &signing);
    push("service-account-key-file", &checking);
    let texts = [
        format!("--etcd-servers=http://{etcd}"),
        format!("--secure-port={}", server.port()),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        "--authorization-mode=RBAC".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        // A node that is gone is gone for a test at once.
        "--default-not-ready-toleration-seconds=2".to_owned(),
        "--default-unreachable-toleration-seconds=2".to_owned(),
    ];
    arguments.extend(texts.map(OsString::from));
    arguments
}

fn wait_until_ready(kubeconfig: &Path) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let began = Instant::now();
    runtime.block_on(async {
        let client = ClusterClient::new(kubeconfig).await;
        while began.elapsed() < START {
            if client.get("/readyz").await.is_ok() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        false
    })
}

impl Refused {
    /// Whether the user may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.code == 403
    }
}
