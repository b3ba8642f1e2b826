//! How often a peer is asked whether something that it is at has ended.

use std::time::Duration;

/// The pauses between questions: short at first, for quick peers, and then longer. They have no end of their own: whoever asks
/// has a limit.
#[derive(Debug)]
pub struct PollPace(Duration);

impl PollPace {
    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(2);

    /// The pause before the next question.
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(Self::LONGEST);
        pause
    }
}

impl Default for PollPace {
    fn default() -> Self {
        Self(Self::FIRST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit() {
        let mut pace = PollPace::default();
        let pauses: Vec<u128> = (0..7).map(|_| pace.next_pause().as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1_600, 2_000, 2_000]);
    }
}
