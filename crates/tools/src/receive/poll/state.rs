//! The state of a poll: what is stored between its steps.

use std::collections::{BTreeSet, VecDeque};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::PollItem;

/// How many ids are remembered. Twice what one answer may hold, so that an answer never pushes its own items
/// out.
pub const MAX_SEEN: usize = 2 * super::MAX_DETECTED;

/// What a poll knows from its earlier steps. It belongs to the task and the event, not to the text of the
/// manifest: an edit keeps it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollState {
    /// When the last step that found everything began.
    pub last_fetched_at: Option<Timestamp>,
    /// The endpoint's tag of its last answer.
    pub etag: Option<String>,
    /// When the endpoint says that its last answer changed.
    pub last_modified: Option<String>,
    /// The ids of items that fired or were there from the start, oldest first; of a poll that has a `key`.
    pub seen: VecDeque<String>,
    /// How many steps in a row went wrong.
    pub failures: u32,
}

impl PollState {
    /// Whether the first step is done: what it finds is remembered, and nothing fires.
    #[must_use]
    pub fn has_baseline(&self) -> bool {
        self.last_fetched_at.is_some()
    }

    pub(super) fn unchanged(&mut self, now: Timestamp) {
        self.last_fetched_at = Some(now);
        self.failures = 0;
    }

    pub(super) fn fetched(
        &mut self,
        now: Timestamp,
        etag: Option<String>,
        last_modified: Option<String>,
    ) {
        self.unchanged(now);
        self.etag = etag;
        self.last_modified = last_modified;
    }

    /// Takes what was detected: which items fire, at most so many, and whether there are more.
    pub(super) fn take(&mut self, detected: Vec<PollItem>, most: usize) -> (Vec<PollItem>, bool) {
        let known: BTreeSet<String> = self.seen.iter().cloned().collect();
        let listed: BTreeSet<String> = detected.iter().filter_map(|item| item.id.clone()).collect();
        let fires = self.has_baseline();
        let mut current: Vec<String> = Vec::new();
        let mut kept: BTreeSet<String> = BTreeSet::new();
        let mut items = Vec::new();
        let mut more = false;
        for item in detected {
            let Some(id) = item.id.clone() else {
                if fires {
                    items.push(item);
                }
                continue;
            };
            let is_new = !known.contains(&id);
            if kept.contains(&id) {
                continue;
            }
            if is_new && fires && items.len() >= most {
                more = true;
                continue;
            }
            kept.insert(id.clone());
            current.push(id);
            if is_new && fires {
                items.push(item);
            }
        }
        // What the endpoint still lists is the newest that is known, whenever it was first seen.
        self.seen.retain(|id| !listed.contains(id));
        self.seen.extend(current);
        while self.seen.len() > MAX_SEEN {
            self.seen.pop_front();
        }
        (items, more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn items(ids: impl IntoIterator<Item = usize>) -> Vec<PollItem> {
        let item = |id: usize| PollItem {
            id: Some(id.to_string()),
            item: Value::Null,
        };
        ids.into_iter().map(item).collect()
    }

    fn started() -> PollState {
        PollState {
            last_fetched_at: Some(Timestamp::UNIX_EPOCH),
            ..PollState::default()
        }
    }

    #[test]
    fn the_first_step_remembers_and_nothing_fires() {
        let mut state = PollState::default();
        assert_eq!(state.take(items(0..3), 10), (vec![], false));
        assert_eq!(state.seen.len(), 3);
        state.unchanged(Timestamp::UNIX_EPOCH);
        let (fired, more) = state.take(items(0..5), 10);
        assert_eq!((fired, more), (items(3..5), false));
        assert_eq!(state.take(items(0..5), 10).0, vec![]);
    }

    #[test]
    fn what_is_too_much_for_one_step_comes_in_the_next() {
        let mut state = started();
        let mut fired = Vec::new();
        for _ in 0..4 {
            let (items, more) = state.take(items(0..10), 3);
            fired.extend(items);
            assert_eq!(more, fired.len() < 10);
        }
        assert_eq!(fired, items(0..10));
        assert_eq!(state.take(items(0..10), 3), (vec![], false));
    }

    #[test]
    fn without_a_key_everything_fires_but_at_the_first_step() {
        let same = || {
            let (id, item) = (None, Value::Null);
            vec![PollItem { id, item }; 3]
        };
        assert_eq!(PollState::default().take(same(), 2), (vec![], false));
        let mut state = started();
        for _ in 0..2 {
            assert_eq!(state.take(same(), 2), (same(), false));
        }
        assert!(state.seen.is_empty());
    }

    #[test]
    fn an_item_that_is_listed_twice_fires_once() {
        assert_eq!(started().take(items([1, 1, 2, 1]), 10).0, items([1, 2]));
        assert_eq!(
            started().take(items([1, 2, 2, 3]), 2),
            (items([1, 2]), true)
        );
    }

    #[test]
    fn what_is_still_listed_is_never_forgotten() {
        let mut state = started();
        for round in 1..10 {
            let newer = 1 + round * super::super::MAX_DETECTED / 2;
            let listed = std::iter::once(0).chain(newer..newer + super::super::MAX_DETECTED - 1);
            let (fired, _) = state.take(items(listed), usize::MAX);
            assert_eq!(
                fired.iter().any(|item| item.id.as_deref() == Some("0")),
                round == 1
            );
            assert!(state.seen.len() <= MAX_SEEN);
        }
    }
}
