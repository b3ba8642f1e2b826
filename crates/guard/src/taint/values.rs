//! Whole values that are remembered within a budget; the oldest are forgotten first.

use std::collections::{HashSet, VecDeque};

#[derive(Debug)]
pub(super) struct KnownValues {
    values: HashSet<String>,
    order: VecDeque<String>,
    bytes: usize,
    budget: usize,
}

impl KnownValues {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            values: HashSet::new(),
            order: VecDeque::new(),
            bytes: 0,
            // Every value is held twice.
            budget: budget / 2,
        }
    }

    pub(super) fn add(&mut self, value: &str) {
        let value = plain(value);
        if value.is_empty() || value.len() > self.budget || !self.values.insert(value.clone()) {
            return;
        }
        self.bytes += value.len();
        self.order.push_back(value);
        while self.bytes > self.budget
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= oldest.len();
            self.values.remove(&oldest);
        }
    }

    pub(super) fn has(&self, value: &str) -> bool {
        self.values.contains(&plain(value))
    }
}

fn plain(value: &str) -> String {
    value.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::KnownValues;

    #[test]
    fn whole_values_are_known_and_the_oldest_are_forgotten() {
        let mut known = KnownValues::new(20);
        for value in ["Alice", "bob", "carol"] {
            known.add(value);
        }
        assert!(
            !known.has("alice") && known.has(" BOB ") && known.has("carol") && !known.has("car")
        );
    }
}
