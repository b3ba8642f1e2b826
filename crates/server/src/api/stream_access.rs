//! Whether those who follow streams may still do so: one look for each key, however many streams it has, and one clock for all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use proofhouse_wire::sync::lock;
use tokio::sync::watch;

use super::{Api, Caller};
use crate::problem::Problem;

/// How often it is looked whether a key or a session is still good.
const CHECK: Duration = Duration::from_secs(3);

/// The keys and sessions that streams were opened with.
#[derive(Debug, Default)]
pub(crate) struct StreamAccess {
    followed: Mutex<FollowedKeys>,
}

#[derive(Debug, Default)]
struct FollowedKeys {
    keys: HashMap<String, FollowedKey>,
    /// Whether somebody looks.
    is_watched: bool,
}

#[derive(Debug)]
struct FollowedKey {
    caller: Caller,
    /// Why its streams end, once they do.
    end: watch::Sender<Option<Problem>>,
}

/// The right of one stream to go on.
#[derive(Debug)]
pub(crate) struct AccessWatch(Option<watch::Receiver<Option<Problem>>>);

impl AccessWatch {
    /// Why the stream must end, if it must.
    pub(crate) fn problem(&self) -> Option<Problem> {
        self.0.as_ref().and_then(|end| end.borrow().clone())
    }

    /// Waits until the stream must end.
    pub(crate) async fn ended(&mut self) {
        if let Some(end) = &mut self.0
            && end.wait_for(Option::is_some).await.is_ok()
        {
            return;
        }
        // Where nobody is asked who they are, nobody is sent away.
        std::future::pending::<()>().await;
    }
}

impl StreamAccess {
    /// Watches over the caller of a stream that was let in just now.
    pub(crate) fn watch(&self, api: &Arc<Api>, caller: &Caller) -> AccessWatch {
        let hash = caller.hash();
        if hash.is_empty() {
            return AccessWatch(None);
        }
        let mut followed = lock(&self.followed);
        let key = followed.keys.entry(hash).or_insert_with(|| FollowedKey {
            caller: caller.clone(),
            end: watch::channel(None).0,
        });
        let watch = AccessWatch(Some(key.end.subscribe()));
        if !std::mem::replace(&mut followed.is_watched, true) {
            tokio::spawn(look_again(Arc::downgrade(api)));
        }
        watch
    }

    /// Those that a stream still has; `None` when there are none, and nobody looks any more.
    fn still_followed(&self) -> Option<Vec<(String, Caller)>> {
        let mut followed = lock(&self.followed);
        followed.keys.retain(|_, key| key.end.receiver_count() > 0);
        followed.is_watched = !followed.keys.is_empty();
        let keys = followed.keys.iter();
        let keys = keys.map(|(hash, key)| (hash.clone(), key.caller.clone()));
        followed.is_watched.then(|| keys.collect())
    }

    /// Ends the streams of a key. Whoever comes with it again is looked at anew.
    fn end(&self, hash: &str, problem: Problem) {
        if let Some(key) = lock(&self.followed).keys.remove(hash) {
            key.end.send_replace(Some(problem));
        }
    }
}

/// Looks at each key again and again, for as long as it has streams.
async fn look_again(api: Weak<Api>) {
    loop {
        tokio::time::sleep(CHECK).await;
        let Some(api) = api.upgrade() else {
            return;
        };
        let Some(keys) = api.access.still_followed() else {
            return;
        };
        for (hash, caller) in keys {
            if let Err(problem) = caller.is_still_let_in(&api).await {
                api.access.end(&hash, problem);
            }
        }
    }
}
