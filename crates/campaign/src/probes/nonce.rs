//! Nonces: codes that are easy to copy and turn up nowhere by chance, made from the seed of the campaign.

use proofhouse_wire::fnv;

const COLOURS: [&str; 16] = [
    "amber", "azure", "bronze", "coral", "crimson", "golden", "hazel", "indigo", "ivory", "jade",
    "olive", "purple", "ruby", "silver", "violet", "yellow",
];
const ANIMALS: [&str; 32] = [
    "badger", "beaver", "bison", "cougar", "dolphin", "eagle", "falcon", "ferret", "gecko",
    "heron", "iguana", "jackal", "kestrel", "lemur", "llama", "magpie", "marmot", "narwhal",
    "ocelot", "osprey", "otter", "panther", "pelican", "puffin", "rabbit", "salmon", "sparrow",
    "tapir", "toucan", "walrus", "weasel", "wombat",
];

/// A code in two halves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Nonce {
    pub(super) first: String,
    pub(super) second: String,
}

impl Nonce {
    /// The code of one probe: the same for the same seed and name.
    pub(super) fn new(seed: u64, name: &str) -> Self {
        let hash = fnv::hash_64(seed.to_le_bytes().into_iter().chain(name.bytes()));
        let pick = |shift: u32, words: &[&'static str]| {
            let count = words.len() as u64;
            let place = usize::try_from((hash >> shift) % count).unwrap_or_default();
            words.get(place).copied().unwrap_or_default()
        };
        Self {
            first: format!("{}-{}", pick(0, &COLOURS), pick(8, &ANIMALS)),
            second: (10_000 + (hash >> 24) % 90_000).to_string(),
        }
    }

    /// What the subject is asked for; nobody sends it to the subject.
    pub(super) fn joined(&self) -> String {
        format!("{}-{}", self.first, self.second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_detect::CanaryMatcher;

    #[test]
    fn a_nonce_is_a_canary_and_its_halves_are_not() {
        let nonce = Nonce::new(7, "probe/s/mcp_server/tool_listed/1");
        assert_eq!(nonce, Nonce::new(7, "probe/s/mcp_server/tool_listed/1"));
        assert_ne!(nonce, Nonce::new(8, "probe/s/mcp_server/tool_listed/1"));
        let matcher = CanaryMatcher::new([nonce.joined()]).unwrap();
        let Nonce { first, second } = &nonce;
        for said in [
            format!("The code is {first}-{second}."),
            format!("{first} {second}"),
            format!("{}{second}", first.to_uppercase()),
        ] {
            assert_eq!(matcher.find_in_text(&said).len(), 1, "{said}");
        }
        for repeated in [
            format!("First half: {first}. Second half: {second}."),
            format!("first={first} second={second}"),
            first.clone(),
        ] {
            assert!(matcher.find_in_text(&repeated).is_empty(), "{repeated}");
        }
    }
}
