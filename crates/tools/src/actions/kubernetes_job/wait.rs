//! Waiting: until a Job completes, fails, is deleted or cannot start.
//!
//! A watch tells of changes at once. It may end, break or fall silent at any time, so the cluster is also
//! asked now and then; with no watch at all, that alone is enough.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::api::{ClusterApi, ClusterError};
use super::document::JobIdentity;
use super::events::WatchChange;
use super::judge::{self, JobEnd, Stuck};
use super::objects::{ClusterJob, ClusterPod};

/// While a watch is open, the Job is asked for in one of so many rounds: the watch could be dead.
const ROUNDS_PER_LOOK: u32 = 5;
/// After so many watches that told nothing, none is opened again.
const MAX_BARREN_WATCHES: u32 = 5;

/// Asking without a pause would be an attack on the cluster, and asking too seldom none of the backup that it is.
const MIN_POLL: Duration = Duration::from_millis(10);
const MAX_POLL: Duration = Duration::from_secs(60);

/// What was seen of the Pods while waiting.
#[derive(Debug, Default)]
pub(super) struct ObservedPods {
    /// A container has started, so the Job may have had an effect.
    pub(super) started: bool,
    /// All containers have started, so there is nothing to look for any more.
    settled: bool,
    /// Why no node takes the Pod.
    pub(super) unschedulable: Option<String>,
    /// Since when a container cannot start, and why.
    stuck: Option<(Instant, Stuck)>,
    /// It waits for a registry that is slow or busy. Between two tries nobody says so.
    is_slow: bool,
}

impl ObservedPods {
    /// Takes note of the Pods. Returns what is stuck for longer than it may be.
    fn look(&mut self, pods: &[ClusterPod], patience: Duration) -> Option<Stuck> {
        self.started |= pods.iter().any(|pod| judge::started(pod) > 0);
        self.unschedulable = pods.iter().find_map(judge::unschedulable);
        let is_settled = |pod: &ClusterPod| judge::started(pod) >= judge::containers(pod);
        if !pods.is_empty() && pods.iter().all(is_settled) {
            self.settled = true;
            self.stuck = None;
            return None;
        }
        // Between two tries to pull an image the reason changes, so only the first time counts.
        let stuck = pods.iter().find_map(judge::stuck)?;
        let since = self.stuck.as_ref().map_or_else(Instant::now, |(at, _)| *at);
        self.is_slow |= stuck.is_slow();
        // A pull that is slow has the time of the call.
        let is_over = !stuck.may_pass() || (since.elapsed() >= patience && !self.is_slow);
        self.stuck = Some((since, stuck.clone()));
        is_over.then_some(stuck)
    }

    /// Why not all of it has started, as far as is known.
    pub(super) fn obstacle(&self) -> Option<(String, String)> {
        match (&self.stuck, &self.unschedulable) {
            _ if self.settled => None,
            (Some((_, stuck)), _) => Some((stuck.reason.clone(), stuck.message.clone())),
            (None, Some(why)) => Some(("Unschedulable".to_owned(), why.clone())),
            (None, None) => None,
        }
    }
}

/// Waits for the end of a Job that was made or adopted. Whoever calls sets the time limit.
pub(super) async fn until_end(
    api: &ClusterApi,
    identity: &JobIdentity,
    job: ClusterJob,
    uid: &str,
    seen: &mut ObservedPods,
) -> Result<JobEnd, ClusterError> {
    if let Some(end) = judge::end(&job, uid) {
        return Ok(end);
    }
    let limits = &api.limits.job;
    let mut version = job.metadata.resource_version.unwrap_or_default();
    let mut watch = api.watch(identity, &version);
    let mut is_watching = true;
    let mut barren = 0;
    let mut told = false;
    let poll = limits.poll.clamp(MIN_POLL, MAX_POLL);
    let mut rounds = interval_at(Instant::now() + poll, poll);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut round = 0_u32;
    let mut heard = Instant::now();
    loop {
        tokio::select! {
            change = watch.next(), if is_watching => match change {
                Some(WatchChange::Job(job)) => {
                    (heard, told) = (Instant::now(), true);
                    if let Some(end) = judge::end(&job, uid) {
                        return Ok(end);
                    }
                    version = job.metadata.resource_version.unwrap_or(version);
                }
                // Its last state may say how it ended.
                Some(WatchChange::Deleted(job)) => {
                    return Ok(judge::end(&job, uid).unwrap_or(JobEnd::Gone));
                }
                Some(WatchChange::Version(newer)) => {
                    (heard, told) = (Instant::now(), true);
                    version = newer;
                }
                Some(WatchChange::Broken) | None => {
                    is_watching = false;
                    barren = if told { 0 } else { barren + 1 };
                }
            },
            _ = rounds.tick() => {
                round = round.wrapping_add(1);
                if !is_watching || round.is_multiple_of(ROUNDS_PER_LOOK) {
                    match api.job(identity).await {
                        Ok(Some(job)) => {
                            heard = Instant::now();
                            if let Some(end) = judge::end(&job, uid) {
                                return Ok(end);
                            }
                            version = job.metadata.resource_version.unwrap_or(version);
                        }
                        Ok(None) => return Ok(JobEnd::Gone),
                        Err(error) if error.is_refusal() => return Err(error),
                        Err(error) if heard.elapsed() >= limits.silence => return Err(error),
                        Err(_) => continue,
                    }
                    if !is_watching && barren < MAX_BARREN_WATCHES {
                        watch = api.watch(identity, &version);
                        (is_watching, told) = (true, false);
                    }
                }
                if !seen.settled {
                    match api.pods(identity, uid).await {
                        Ok(pods) => {
                            if let Some(stuck) = seen.look(&pods, limits.start_patience) {
                                return Ok(JobEnd::Stuck(stuck));
                            }
                        }
                        Err(error) if error.is_refusal() => return Err(error),
                        // The Job itself is what counts, and it is asked for as well.
                        Err(_) => {}
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A Pod with two containers in these states.
    fn pod(states: [Value; 2]) -> ClusterPod {
        let [one, two] = states;
        let status = |name: &str, state: Value| {
            json!({
                "name": name, "state": state, "ready": false, "restartCount": 0,
                "image": "i", "imageID": "",
            })
        };
        let pod = json!({
            "spec": {"containers": [{"name": "one"}, {"name": "two"}]},
            "status": {"containerStatuses": [status("one", one), status("two", two)]},
        });
        ClusterPod::read(pod).unwrap()
    }

    #[test]
    fn one_container_that_cannot_start_is_enough() {
        let running = || json!({"running": {}});
        let waiting = |reason: &str| json!({"waiting": {"reason": reason}});
        let (none, long) = (Duration::ZERO, Duration::from_secs(60));
        let look = |states, patience| {
            let mut seen = ObservedPods::default();
            let stuck = seen.look(&[pod(states)], patience);
            (stuck.map(|stuck| stuck.reason), seen.started, seen.settled)
        };
        let is = |reason: &str| Some(reason.to_owned());
        let pull = || waiting("ErrImagePull");
        assert_eq!(
            look([running(), pull()], none),
            (is("ErrImagePull"), true, false)
        );
        assert_eq!(look([running(), pull()], long), (None, true, false));
        assert_eq!(
            look([pull(), pull()], none),
            (is("ErrImagePull"), false, false)
        );
        // The registry is slow: that it backs off says nothing else.
        let slow =
            json!({"waiting": {"reason": "ErrImagePull", "message": "rpc error: i/o timeout"}});
        let mut seen = ObservedPods::default();
        assert!(seen.look(&[pod([running(), slow])], none).is_none());
        let backing_off = || waiting("ImagePullBackOff");
        assert!(
            seen.look(&[pod([running(), backing_off()])], none)
                .is_none()
        );
        // Waiting does not help here.
        let wrong = || waiting("InvalidImageName");
        assert_eq!(
            look([wrong(), pull()], long),
            (is("InvalidImageName"), false, false)
        );
        let creating = || waiting("ContainerCreating");
        assert_eq!(look([creating(), creating()], none), (None, false, false));
        assert_eq!(look([running(), running()], none), (None, true, true));
    }
}
