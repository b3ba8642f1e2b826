//! "Did you mean": the known word nearest to one that was mistyped.

/// The candidate most like `word`, if one is near enough to be a plausible slip.
///
/// ```
/// use proofhouse_source::did_you_mean;
/// assert_eq!(did_you_mean("indicatrs", ["indicators", "impact"]), Some("indicators"));
/// assert_eq!(did_you_mean("zebra", ["indicators", "impact"]), None);
/// ```
#[must_use]
pub fn did_you_mean<'c>(
    word: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<&'c str> {
    // A hostile document may hold a key of a megabyte; no known word is longer than this.
    if word.len() > 64 {
        return None;
    }
    let folded = word.to_lowercase().replace(['-', ' '], "_");
    let length = folded.chars().count();
    candidates
        .into_iter()
        // A word cannot be nearer than the difference in length; most are ruled out by it.
        .filter(|candidate| {
            let known = candidate.chars().count();
            length.abs_diff(known) <= (known / 3).max(1)
        })
        .map(|candidate| {
            let known = candidate.to_lowercase().replace(['-', ' '], "_");
            (strsim::damerau_levenshtein(&folded, &known), candidate)
        })
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_slips_but_not_strangers() {
        for (word, expected) in [
            ("serverity", Some("severity")),
            ("Severity", Some("severity")),
            ("grace-period", Some("grace_period")),
            ("mpact", Some("impact")),
            ("completely_else", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(
                did_you_mean(word, ["severity", "grace_period", "impact"]),
                expected,
                "{word}"
            );
        }
        assert_eq!(did_you_mean(&"s".repeat(1_000_000), ["severity"]), None);
    }
}
