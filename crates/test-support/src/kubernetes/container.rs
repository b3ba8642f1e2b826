//! One container: pulled, given its environment, run as a process, and started again where that is wanted.
//!
//! There are no mounts: where its command, its arguments or its environment name the path of a volume, they are given the
//! directory of the volume.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::images::{Image, NotStarted};
use super::logs;
use super::node::PAUSE;
use super::pod::{self, PodOrder, PodRun, PodStage};

/// Where a container writes its last words, unless it says another place.
const LAST_WORDS: &str = "/dev/termination-log";
/// How much of them is told.
const MAX_LAST_WORDS: usize = 4096;
/// What a runtime says of a program that it cannot start.
const CANNOT_START: i32 = 128;

/// A container of a Pod.
pub(super) struct ContainerRun {
    pod: Arc<PodRun>,
    stage: PodStage,
    index: usize,
    orders: watch::Receiver<PodOrder>,
    starts: u32,
}

impl ContainerRun {
    pub(super) fn new(pod: Arc<PodRun>, stage: PodStage, index: usize) -> Self {
        let orders = pod.orders.clone();
        Self {
            pod,
            stage,
            index,
            orders,
            starts: 0,
        }
    }

    /// Runs it, again where that is wanted. Says whether it went well.
    pub(super) async fn run_to_end(mut self) -> bool {
        loop {
            let Some(code) = self.once().await else {
                return false;
            };
            let shall_end = *self.orders.borrow() != PodOrder::Run;
            if shall_end || !self.pod.restarts(self.stage, code) {
                return code == 0;
            }
            self.starts += 1;
            let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
            self.tell(json!({"state": waiting, "restartCount": self.starts}))
                .await;
            if !self.pause(PAUSE * self.starts.min(10)).await {
                return false;
            }
        }
    }

    /// Runs it once. None if it was stopped before it began.
    async fn once(&mut self) -> Option<i32> {
        let image = self.pull().await?;
        let environment = self.environment().await?;
        let began = format!("{:.0}", Timestamp::now());
        let last_words = pod::termination_log(&self.pod.directory, self.name());
        let _ = std::fs::remove_file(&last_words);
        let code = match self.spawn(&image, &environment, &last_words) {
            Ok(mut child) => {
                let running = json!({"running": {"startedAt": began}});
                let is_main = self.stage == PodStage::Main;
                self.tell(json!({"state": running, "ready": is_main, "started": true}))
                    .await;
                self.wait(&mut child).await
            }
            Err(error) => {
                let _ = std::fs::write(&last_words, error.to_string());
                CANNOT_START
            }
        };
        let message = self.last_words(&last_words, code);
        let reason = match code {
            0 => "Completed",
            CANNOT_START => "StartError",
            _ => "Error",
        };
        let terminated = json!({"terminated": {
            "exitCode": code, "reason": reason, "message": message,
            "startedAt": began, "finishedAt": format!("{:.0}", Timestamp::now()),
        }});
        self.tell(json!({
            "state": terminated, "lastState": terminated, "ready": code == 0 && self.stage == PodStage::Before,
            "started": false,
        }))
        .await;
        Some(code)
    }

    fn name(&self) -> &str {
        let spec = self.pod.spec(self.stage, self.index);
        spec["name"].as_str().unwrap_or_default()
    }

    async fn tell(&self, change: Value) {
        self.pod.tell(self.stage, self.index, change).await;
    }

    async fn cannot(&self, reason: &str, message: &str) {
        let waiting = json!({"waiting": {"reason": reason, "message": message}});
        self.tell(json!({"state": waiting})).await;
    }

    /// Waits; says whether to go on.
    async fn pause(&mut self, time: Duration) -> bool {
        tokio::select! {
            () = tokio::time::sleep(time) => true,
            _ = self.orders.wait_for(|order| *order != PodOrder::Run) => false,
        }
    }

    /// Pulls the image, again and again. None if the Pod is stopped meanwhile.
    async fn pull(&mut self) -> Option<Image> {
        if *self.orders.borrow() != PodOrder::Run {
            return None;
        }
        let image = self.pod.spec(self.stage, self.index)["image"].clone();
        let image = image.as_str().unwrap_or_default().to_owned();
        loop {
            let why = match self.pod.node.images.pull(&image) {
                Ok(image) => return Some(image),
                Err(NotStarted(why)) => why,
            };
            self.cannot("ErrImagePull", &why).await;
            let told = format!("Failed to pull image \"{image}\": {why}");
            self.pod.warn("Failed", &told).await;
            if !self.pause(PAUSE).await {
                return None;
            }
            let told = format!("Back-off pulling image \"{image}\"");
            self.cannot("ImagePullBackOff", &told).await;
            if !self.pause(PAUSE).await {
                return None;
            }
        }
    }

    /// Its environment, once everything that it refers to is there.
    async fn environment(&mut self) -> Option<BTreeMap<String, String>> {
        loop {
            match self.resolve().await {
                Ok(environment) => return Some(environment),
                Err(NotStarted(why)) => {
                    self.cannot("CreateContainerConfigError", &why).await;
                    self.pod.warn("Failed", &format!("Error: {why}")).await;
                }
            }
            if !self.pause(PAUSE).await {
                return None;
            }
        }
    }

    async fn resolve(&self) -> Result<BTreeMap<String, String>, NotStarted> {
        let spec = self.pod.spec(self.stage, self.index);
        let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
        let mut environment = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOSTNAME".to_owned(), self.pod.name.clone()),
            ("HOME".to_owned(), self.pod.directory.display().to_string()),
        ]);
        for source in list("envFrom") {
            for (key, kind, word) in REFERENCES {
                let Some(name) = source[format!("{key}Ref")]["name"].as_str() else {
                    continue;
                };
                match self.pod.values(kind, name).await {
                    Some(values) => environment.extend(values),
                    None if source[format!("{key}Ref")]["optional"] == true => {}
                    None => return Err(NotStarted(format!("{word} \"{name}\" not found"))),
                }
            }
        }
        for variable in list("env") {
            let name = variable["name"].as_str().unwrap_or_default().to_owned();
            let from = &variable["valueFrom"];
            let mut value = variable["value"].as_str().map(str::to_owned);
            if let Some(field) = from["fieldRef"]["fieldPath"].as_str() {
                value = Some(self.field(field));
            }
            for (key, kind, word) in REFERENCES {
                let reference = &from[format!("{key}KeyRef")];
                let Some(object) = reference["name"].as_str() else {
                    continue;
                };
                let wanted = reference["key"].as_str().unwrap_or_default();
                let values = self.pod.values(kind, object).await;
                let found = values.as_ref().and_then(|values| values.get(wanted));
                match (found, &values) {
                    (Some(found), _) => value = Some(found.clone()),
                    _ if reference["optional"] == true => {}
                    (None, Some(_)) => {
                        return Err(NotStarted(format!(
                            "couldn't find key {wanted} in {word} {object}"
                        )));
                    }
                    (None, None) => {
                        return Err(NotStarted(format!("{word} \"{object}\" not found")));
                    }
                }
            }
            let value = expand(&value.unwrap_or_default(), &environment);
            environment.insert(name, value);
        }
        Ok(environment)
    }

    /// A field of the Pod that a variable refers to, such as `metadata.labels['a']`.
    fn field(&self, path: &str) -> String {
        let mut value = &self.pod.pod;
        let (path, key) = match path.split_once("['") {
            Some((path, key)) => (path, key.strip_suffix("']")),
            None => (path, None),
        };
        for part in path.split('.').chain(key) {
            value = &value[part];
        }
        value.as_str().unwrap_or_default().to_owned()
    }

    fn spawn(
        &self,
        image: &Image,
        environment: &BTreeMap<String, String>,
        last_words: &Path,
    ) -> std::io::Result<Child> {
        let spec = self.pod.spec(self.stage, self.index);
        let mut paths = self.pod.mounts(self.stage, self.index);
        let told = spec["terminationMessagePath"].as_str();
        let told = told.unwrap_or(LAST_WORDS).to_owned();
        paths.insert(0, (told, last_words.to_path_buf()));
        let here = |text: &str| translate(text, &paths);
        let list = |key: &str| spec[key].as_array().cloned().unwrap_or_default();
        let words = list("command").into_iter().chain(list("args"));
        let mut words = words.filter_map(|word| Some(expand(word.as_str()?, environment)));
        let Some(program) = words.next() else {
            return Err(std::io::Error::other("the image has no command"));
        };
        let log = self
            .pod
            .directory
            .join(logs::file(self.name(), self.starts));
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(log)?;
        let mut command = Command::new(image.program(&here(&program)));
        command
            .args(words.map(|word| here(&word)))
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, here(value))))
            .current_dir(&self.pod.directory)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let child = command.spawn()?;
        if let Some(group) = child.id() {
            self.pod.node.add_group(group);
        }
        Ok(child)
    }

    /// Waits for its end, or ends it. Its exit code, as a shell tells it.
    async fn wait(&self, child: &mut Child) -> i32 {
        let group = child.id().unwrap_or_default();
        let mut orders = self.orders.clone();
        let mut grace = tokio::select! {
            ended = child.wait() => return self.ended(group, ended),
            order = orders.wait_for(|order| *order != PodOrder::Run) => match order.as_deref() {
                Ok(PodOrder::Stop(grace)) => *grace,
                Ok(PodOrder::Run | PodOrder::Kill) | Err(_) => Duration::ZERO,
            },
        };
        loop {
            if grace.is_zero() {
                pod::kill(group);
                let ended = child.wait().await;
                return self.ended(group, ended);
            }
            pod::terminate(group);
            tokio::select! {
                ended = child.wait() => return self.ended(group, ended),
                () = tokio::time::sleep(grace) => {}
                _ = orders.wait_for(|order| *order == PodOrder::Kill) => {}
            }
            grace = Duration::ZERO;
        }
    }

    fn ended(&self, group: u32, ended: std::io::Result<std::process::ExitStatus>) -> i32 {
        // Whatever it left behind ends with it.
        pod::kill(group);
        self.pod.node.remove_group(group);
        ended.map_or(CANNOT_START, |status| {
            let signal = status.signal().map(|signal| 128 + signal);
            status.code().or(signal).unwrap_or(CANNOT_START)
        })
    }

    fn last_words(&self, file: &Path, code: i32) -> String {
        let spec = self.pod.spec(self.stage, self.index);
        let read = |file: PathBuf| {
            #[expect(clippy::disallowed_methods, reason = "a file of our own")]
            let text = std::fs::read(file).unwrap_or_default();
            let from = text.len().saturating_sub(MAX_LAST_WORDS);
            String::from_utf8_lossy(&text[from..]).into_owned()
        };
        let words = read(file.to_path_buf());
        let falls_back = spec["terminationMessagePolicy"] == "FallbackToLogsOnError";
        if words.is_empty() && falls_back && code != 0 {
            let log = logs::file(self.name(), self.starts);
            return read(self.pod.directory.join(log));
        }
        words
    }
}

/// What values come from: the start of the key that refers to it, its collection, and its name in messages.
const REFERENCES: [(&str, &str, &str); 2] = [
    ("secret", "secrets", "secret"),
    ("configMap", "configmaps", "configmap"),
];

/// Puts values for `$(NAME)`.
fn expand(text: &str, environment: &BTreeMap<String, String>) -> String {
    let mut expanded = text.to_owned();
    for (name, value) in environment {
        expanded = expanded.replace(&format!("$({name})"), value);
    }
    expanded
}

/// Puts directories of this machine for paths in the Pod.
fn translate(text: &str, paths: &[(String, PathBuf)]) -> String {
    let mut translated = text.to_owned();
    for (path, here) in paths {
        let mut from = 0;
        while let Some(at) = translated[from..].find(path.as_str()) {
            let (start, end) = (from + at, from + at + path.len());
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            let before = translated[..start].bytes().last();
            let after = translated[end..].bytes().next();
            if before.is_some_and(is_name) || after.is_some_and(is_name) {
                from = end;
                continue;
            }
            let here = here.display().to_string();
            translated.replace_range(start..end, &here);
            from = start + here.len();
        }
    }
    translated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_volumes_become_directories() {
        let paths = [("/opt/p".to_owned(), PathBuf::from("/tmp/v"))];
        for (text, expected) in [
            ("/opt/p/bin/p", "/tmp/v/bin/p"),
            ("--file=/opt/p", "--file=/tmp/v"),
            ("echo a > '/opt/p/x'", "echo a > '/tmp/v/x'"),
            ("/opt/pp", "/opt/pp"),
            ("/a/opt/p", "/a/opt/p"),
        ] {
            assert_eq!(translate(text, &paths), expected);
        }
        let values = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        assert_eq!(expand("$(A) $(B) $A", &values), "1 $(B) $A");
    }
}
