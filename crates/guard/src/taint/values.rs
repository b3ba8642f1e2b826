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
            budget,
        }
    }

    pub(super) fn add(&mut self, value: &str) {
        let value = plain(value);
        if value.is_empty() || size(&value) > self.budget || !self.values.insert(value.clone()) {
            return;
        }
        self.bytes += size(&value);
        self.order.push_back(value);
        while self.bytes > self.budget
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= size(&oldest);
            self.values.remove(&oldest);
        }
    }

    /// Every value, from the oldest.
    pub(super) fn each(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    pub(super) fn has(&self, value: &str) -> bool {
        self.values.contains(&plain(value))
    }
}

/// What a value takes up, about: it is held twice.
fn size(value: &str) -> usize {
    2 * (value.len() + size_of::<String>())
}

fn plain(value: &str) -> String {
    value.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::KnownValues;

    #[test]
    fn whole_values_are_known_and_the_oldest_are_forgotten() {
        let mut known = KnownValues::new(2 * (2 * size_of::<String>() + 8));
        for value in ["Alice", "bob", "carol"] {
            known.add(value);
        }
        assert!(
            !known.has("alice") && known.has(" BOB ") && known.has("carol") && !known.has("car")
        );
    }
}
