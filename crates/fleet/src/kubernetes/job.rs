//! The Job: what the workers of a campaign are to Kubernetes.

use std::time::Duration;

use proofhouse_tools::actions::{MANAGED_BY, OWNER, plain_label};
use serde_json::{Map, Value, json};

use super::parse::{
    EnvironmentPair, InvalidPodSetting, PodLabel, PodToleration, Quantity, SecretVariable,
    is_object_name,
};

/// Where the program is put for the image of the user.
const VOLUME: &str = "/opt/proofhouse";
/// Where the program is in its own image.
const PROGRAM: &str = "/usr/bin/proofhouse";
/// The volume that carries it.
const VOLUME_NAME: &str = "proofhouse";
/// The container that works.
pub(super) const WORKER: &str = "worker";
/// The container that brings the program.
const INSTALL: &str = "install";
/// The user of our own image.
const INSTALL_USER: u32 = 65532;
/// The label with the campaign.
pub(super) const CAMPAIGN: &str = "proofhouse/campaign";
/// The exit code of a command line that does not make sense: no other try makes sense of it.
const USAGE: u8 = 64;
/// What a worker has for giving back the runs that it did not finish.
const GIVE_BACK: Duration = Duration::from_secs(10);
/// The longest name whose Pods can be named after it with their index.
const MAX_NAME: usize = 52;

/// What the workers of a campaign shall be.
#[derive(Debug, Clone)]
pub struct WorkerPods {
    /// The name of the campaign.
    pub campaign: String,
    /// What tells this Job from others of the campaign.
    pub suffix: String,
    /// The namespace.
    pub namespace: String,
    /// The image with the agent.
    pub image: String,
    /// The image with the program.
    pub program_image: String,
    /// How many workers.
    pub workers: u32,
    /// How many runs each makes at a time.
    pub jobs: usize,
    /// The secret whose key `url` is the address of the store.
    pub store_secret: String,
    /// More arguments of the workers.
    pub arguments: Vec<String>,
    /// Variables from secrets.
    pub secret_variables: Vec<SecretVariable>,
    /// Secrets all of whose keys become variables.
    pub secrets: Vec<String>,
    /// Other variables.
    pub environment: Vec<EnvironmentPair>,
    /// What each worker may count on, and for memory, the most that it gets.
    pub cpu: Option<Quantity>,
    /// The same of memory.
    pub memory: Option<Quantity>,
    /// Taints that the workers stand.
    pub tolerations: Vec<PodToleration>,
    /// Labels of the nodes that they need.
    pub node_selector: Vec<PodLabel>,
    /// Labels of the Job and of its Pods.
    pub labels: Vec<PodLabel>,
    /// The service account of the Pods.
    pub service_account: Option<String>,
    /// Secrets for registries.
    pub pull_secrets: Vec<String>,
    /// Whether the Pods meet the Pod Security Standard "restricted".
    pub restricted: bool,
    /// How often a worker is started again.
    pub retries: u32,
    /// How long the Job may take.
    pub deadline: Duration,
    /// How long a worker may be silent before its runs are given to others.
    pub lease: Duration,
    /// How long a worker has to finish the runs it is at when it shall end.
    pub drain: Duration,
    /// How long the cluster keeps the Job when it is over and nobody deletes it.
    pub keep: Duration,
}

impl WorkerPods {
    /// The name of the Job.
    #[must_use]
    pub fn name(&self) -> String {
        let prefix = plain_label(
            &format!("proofhouse-{}", self.campaign),
            MAX_NAME.saturating_sub(self.suffix.len() + 1),
        );
        format!("{prefix}-{}", self.suffix)
    }

    /// What is wrong with names that nothing has checked yet.
    ///
    /// # Errors
    ///
    /// If the cluster would refuse a name, or there are no workers.
    pub fn check(&self) -> Result<(), InvalidPodSetting> {
        let objects = [&self.namespace, &self.store_secret].into_iter();
        let objects = objects.chain(&self.secrets).chain(&self.pull_secrets);
        let mut objects = objects.chain(&self.service_account);
        if !objects.all(|name| is_object_name(name)) {
            return Err(InvalidPodSetting::NAME);
        }
        let images = [&self.image, &self.program_image];
        let is_image = |image: &&String| {
            !image.is_empty()
                && image.len() <= 1024
                && image.bytes().all(|byte| byte.is_ascii_graphic())
        };
        if !images.iter().all(is_image) {
            return Err(InvalidPodSetting::IMAGE);
        }
        if self.workers == 0 {
            return Err(InvalidPodSetting::NO_WORKERS);
        }
        Ok(())
    }

    fn labels(&self) -> Value {
        let mut labels = Map::new();
        for label in &self.labels {
            labels.insert(label.name.clone(), label.value.as_str().into());
        }
        for (name, value) in [
            (MANAGED_BY, OWNER),
            ("app.kubernetes.io/name", OWNER),
            ("app.kubernetes.io/component", WORKER),
        ] {
            labels.insert(name.to_owned(), value.into());
        }
        labels.insert(CAMPAIGN.to_owned(), plain_label(&self.campaign, 63).into());
        labels.into()
    }

    fn variables(&self) -> Value {
        let reference =
            |secret: &str, key: &str| json!({"secretKeyRef": {"name": secret, "key": key}});
        let mut all = vec![json!({
            "name": "PROOFHOUSE_STORE", "valueFrom": reference(&self.store_secret, "url"),
        })];
        for variable in &self.secret_variables {
            let from = reference(&variable.secret, &variable.key);
            all.push(json!({"name": variable.name, "valueFrom": from}));
        }
        for pair in &self.environment {
            // `$(NAME)` would be replaced.
            let value = pair.value.replace("$(", "$$(");
            all.push(json!({"name": pair.name, "value": value}));
        }
        all.into()
    }

    fn command(&self) -> Value {
        let own = [
            format!("{VOLUME}/proofhouse"),
            "worker".to_owned(),
            "--name".to_owned(),
            self.campaign.clone(),
            "--jobs".to_owned(),
            self.jobs.to_string(),
            "--lease".to_owned(),
            format!("{}s", whole_seconds(self.lease)),
            "--drain".to_owned(),
            format!("{}s", whole_seconds(self.drain)),
        ];
        let words = own.iter().chain(&self.arguments);
        words.map(|word| word.replace("$(", "$$(")).collect()
    }

    fn resources(&self) -> Value {
        let mut requests = Map::new();
        let mut limits = Map::new();
        if let Some(cpu) = &self.cpu {
            requests.insert("cpu".to_owned(), cpu.as_str().into());
        }
        if let Some(memory) = &self.memory {
            requests.insert("memory".to_owned(), memory.as_str().into());
            limits.insert("memory".to_owned(), memory.as_str().into());
        }
        json!({"requests": requests, "limits": limits})
    }

    fn pod(&self) -> Value {
        let confined = json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        });
        let mut install_context = confined.clone();
        install_context["readOnlyRootFilesystem"] = true.into();
        install_context["runAsNonRoot"] = true.into();
        install_context["runAsUser"] = INSTALL_USER.into();
        let mut worker = json!({
            "name": WORKER,
            "image": self.image,
            "command": self.command(),
            "env": self.variables(),
            "resources": self.resources(),
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "volumeMounts": [{"name": VOLUME_NAME, "mountPath": VOLUME, "readOnly": true}],
        });
        if !self.secrets.is_empty() {
            let all = self.secrets.iter();
            let all = all.map(|secret| json!({"secretRef": {"name": secret}}));
            worker["envFrom"] = all.collect();
        }
        if self.restricted {
            worker["securityContext"] = confined;
        }
        let small = json!({"cpu": "100m", "memory": "64Mi"});
        let mut pod = json!({
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "terminationGracePeriodSeconds": whole_seconds(self.drain + GIVE_BACK),
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [{
                "name": INSTALL,
                "image": self.program_image,
                "command": [PROGRAM, "install", VOLUME],
                "resources": {"requests": small, "limits": {"memory": "256Mi"}},
                "securityContext": install_context,
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": [{"name": VOLUME_NAME, "mountPath": VOLUME}],
            }],
            "containers": [worker],
            "volumes": [{"name": VOLUME_NAME, "emptyDir": {"sizeLimit": "1Gi"}}],
        });
        if self.restricted {
            pod["securityContext"]["runAsNonRoot"] = true.into();
        }
        if !self.tolerations.is_empty() {
            pod["tolerations"] = self.tolerations.iter().map(toleration).collect();
        }
        if !self.node_selector.is_empty() {
            let labels = self.node_selector.iter();
            let labels = labels.map(|label| (label.name.clone(), label.value.as_str().into()));
            pod["nodeSelector"] = labels.collect::<Map<_, _>>().into();
        }
        if let Some(account) = &self.service_account {
            pod["serviceAccountName"] = account.as_str().into();
        }
        if !self.pull_secrets.is_empty() {
            let all = self.pull_secrets.iter();
            pod["imagePullSecrets"] = all.map(|secret| json!({"name": secret})).collect();
        }
        pod
    }
}

/// What tells the Job of one start from those of others.
#[must_use]
pub fn fresh_suffix() -> String {
    use std::hash::{BuildHasher as _, Hasher as _, RandomState};
    let random = RandomState::new().build_hasher().finish();
    format!("{:08x}", random & 0xffff_ffff)
}

/// The flags that have a value, as words of a command line.
#[must_use]
pub fn given_flags<const N: usize>(flags: [(&str, Option<String>); N]) -> Vec<String> {
    let flags = flags.into_iter();
    let given = flags.filter_map(|(flag, value)| Some(format!("{flag}={}", value?)));
    given.collect()
}

/// The Job with the workers.
///
/// A worker ends with success only when its campaign is over, so that one success is the Job's, and a worker that finds no
/// node holds nobody up. What disrupts a Pod, such as a node that is drained, is no failure of its worker.
#[must_use]
pub fn manifest(pods: &WorkerPods) -> Value {
    let labels = pods.labels();
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": pods.name(), "namespace": pods.namespace, "labels": labels,
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": pods.workers,
            "parallelism": pods.workers,
            "backoffLimitPerIndex": pods.retries,
            "successPolicy": {"rules": [{"succeededCount": 1}]},
            "podFailurePolicy": {"rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {"action": "FailJob", "onExitCodes": {
                    "containerName": WORKER, "operator": "In", "values": [USAGE],
                }},
            ]},
            "activeDeadlineSeconds": whole_seconds(pods.deadline),
            "ttlSecondsAfterFinished": pods.keep.as_secs(),
            "template": {"metadata": {"labels": labels}, "spec": pods.pod()},
        },
    })
}

fn toleration(toleration: &PodToleration) -> Value {
    let mut written = json!({"key": toleration.key});
    match &toleration.value {
        Some(value) => {
            written["operator"] = "Equal".into();
            written["value"] = value.as_str().into();
        }
        None => written["operator"] = "Exists".into(),
    }
    if let Some(effect) = &toleration.effect {
        written["effect"] = effect.as_str().into();
    }
    written
}

/// At least one: nothing that is given no time does anything. The cluster's field has 32 bits in places.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs().clamp(1, i32::MAX as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(crate) fn pods() -> WorkerPods {
        WorkerPods {
            campaign: "Nightly, all models".to_owned(),
            suffix: "0a1b2c".to_owned(),
            namespace: "agents".to_owned(),
            image: "shop-agent:7".to_owned(),
            program_image: "proofhouse:0.1.0".to_owned(),
            workers: 5,
            jobs: 8,
            store_secret: "proofhouse-store".to_owned(),
            arguments: Vec::new(),
            secret_variables: vec!["OPENAI_API_KEY=models:openai".parse().unwrap()],
            secrets: vec!["more".to_owned()],
            environment: vec!["REGION=$(north)".parse().unwrap()],
            cpu: Some("2".parse().unwrap()),
            memory: Some("1Gi".parse().unwrap()),
            tolerations: vec!["spot:NoSchedule".parse().unwrap()],
            node_selector: vec!["pool=batch".parse().unwrap()],
            labels: vec!["team=red".parse().unwrap()],
            service_account: Some("agents".to_owned()),
            pull_secrets: vec!["registry".to_owned()],
            restricted: true,
            retries: 3,
            deadline: Duration::from_secs(3600),
            lease: Duration::from_secs(45),
            drain: Duration::from_secs(60),
            keep: Duration::from_secs(600),
        }
    }

    #[test]
    fn the_job_says_what_is_wanted() {
        let pods = pods();
        pods.check().unwrap();
        let job = manifest(&pods);
        assert_eq!(
            job["metadata"]["name"],
            "proofhouse-nightly-all-models-0a1b2c"
        );
        let spec = &job["spec"];
        assert_eq!(spec["completions"], 5);
        assert_eq!(spec["activeDeadlineSeconds"], 3600);
        let grace = &spec["template"]["spec"]["terminationGracePeriodSeconds"];
        assert_eq!(grace, 70);
        let template = &spec["template"];
        assert_eq!(template["metadata"]["labels"]["team"], "red");
        assert_eq!(
            template["metadata"]["labels"][CAMPAIGN],
            "nightly-all-models"
        );
        let worker = &template["spec"]["containers"][0];
        assert_eq!(worker["image"], "shop-agent:7");
        assert_eq!(
            worker["command"],
            json!([
                "/opt/proofhouse/proofhouse",
                "worker",
                "--name",
                "Nightly, all models",
                "--jobs",
                "8",
                "--lease",
                "45s",
                "--drain",
                "60s",
            ])
        );
        assert_eq!(worker["env"][0]["name"], "PROOFHOUSE_STORE");
        assert_eq!(worker["env"][2]["value"], "$$(north)");
        assert_eq!(worker["resources"]["limits"], json!({"memory": "1Gi"}));
        let text = job.to_string();
        assert!(!text.contains("postgres://"), "{text}");
    }

    #[test]
    fn workers_are_told_of_the_models_that_judge() {
        let mut pods = pods();
        let judge = Some("judge".to_owned());
        pods.arguments = given_flags([("--semantic", judge), ("--semantic-timeout", None)]);
        let job = manifest(&pods);
        let command = &job["spec"]["template"]["spec"]["containers"][0]["command"];
        assert_eq!(command[9], "60s");
        assert_eq!(command[10], "--semantic=judge");
        assert_eq!(command.as_array().unwrap().len(), 11);
    }

    #[test]
    fn names_fit_whatever_the_campaign_is_called() {
        let mut pods = pods();
        for campaign in ["", "---", "Ü", &"long ".repeat(100), "a/../b"] {
            pods.campaign = campaign.to_owned();
            let name = pods.name();
            assert!(proofhouse_tools::actions::is_dns_label(&name), "{name}");
            assert!(name.len() <= MAX_NAME, "{name}");
        }
    }

    #[test]
    fn what_the_cluster_would_refuse_is_told_before() {
        let changes: [fn(&mut WorkerPods); 5] = [
            |pods| pods.namespace = "A b".to_owned(),
            |pods| pods.image = "a b".to_owned(),
            |pods| pods.image = String::new(),
            |pods| pods.workers = 0,
            |pods| pods.store_secret = "postgres://hunter2@h/d".to_owned(),
        ];
        for change in changes {
            let mut pods = pods();
            change(&mut pods);
            let told = pods.check().unwrap_err().to_string();
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
}
