//! The sentences of a line: whose failure they tell of. A program tells of its model, a model tells of its tools.

use super::phrases;

/// What the sentences of a line come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentenceKind {
    /// Only that the program or its model failed.
    Error,
    /// Nothing: apologies, and what to do next.
    Filler,
    /// Something else.
    Said,
}

/// What the sentences of a line in small letters come to.
pub(super) fn read(line: &str) -> SentenceKind {
    let mut told = SentenceKind::Filler;
    let mut asks_to_retry = false;
    for sentence in split(line) {
        match one(sentence) {
            SentenceKind::Said => return SentenceKind::Said,
            SentenceKind::Error => told = SentenceKind::Error,
            SentenceKind::Filler => {
                asks_to_retry |= phrases::RETRY.iter().any(|word| sentence.contains(word));
            }
        }
    }
    // Who can only ask to be asked again has not answered.
    match told {
        SentenceKind::Filler if asks_to_retry => SentenceKind::Error,
        SentenceKind::Filler => SentenceKind::Said,
        SentenceKind::Error | SentenceKind::Said => told,
    }
}

/// The sentences of a line.
fn split(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let ends = rest.match_indices(['.', '!', '?', ';']);
        let mut ends = ends.map(|(at, end)| at + end.len());
        let end = ends.find(|end| rest[*end..].starts_with(char::is_whitespace));
        let (sentence, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(sentence.trim())
    })
}

fn one(sentence: &str) -> SentenceKind {
    let bare = without_apology(sentence);
    if bare.is_empty() {
        return SentenceKind::Filler;
    }
    if is_own_failure(bare) {
        return SentenceKind::Error;
    }
    let is_narrated = is_narrated(bare);
    if !is_narrated && phrases::FAILURES.iter().any(|words| bare.contains(words)) {
        return SentenceKind::Error;
    }
    let is_filler = phrases::FILLERS.iter().any(|start| bare.starts_with(start));
    if is_filler {
        SentenceKind::Filler
    } else {
        SentenceKind::Said
    }
}

/// A sentence without the apology before it.
fn without_apology(sentence: &str) -> &str {
    let mut rest = sentence;
    loop {
        let before = rest;
        rest = rest.trim_start_matches(|c: char| {
            c.is_whitespace() || (!c.is_alphanumeric() && !"`'\"{[(<".contains(c))
        });
        for apology in phrases::APOLOGIES {
            if let Some(after) = rest.strip_prefix(apology)
                && !after.starts_with(char::is_alphanumeric)
            {
                rest = after;
            }
        }
        if rest.len() == before.len() {
            return rest.trim_end_matches(['.', '!', ' ', ';']);
        }
    }
}

/// Whether a sentence is about what somebody else showed or did: a tool, a file, a page.
pub(super) fn is_narrated(sentence: &str) -> bool {
    phrases::NARRATED
        .iter()
        .any(|words| sentence.contains(words))
}

/// Whether a sentence says that the program, or the model it asks, failed.
fn is_own_failure(sentence: &str) -> bool {
    let mut rests = phrases::OWN_FAILURES
        .iter()
        .filter_map(|start| sentence.strip_prefix(start));
    // `I am unable to process your request because the account is closed` is an answer.
    let is_told = |rest: &str| {
        let is_whole = !rest.starts_with(char::is_alphanumeric) || sentence.contains("err_");
        is_whole && (sentence.starts_with("error") || !is_narrated(rest))
    };
    if rests.any(is_told) || is_unable(sentence) {
        return true;
    }
    // `Timeout`, `Connection error: …`, and not `Timeouts are set in the file`.
    let told = phrases::OWN_WORDS
        .iter()
        .filter_map(|words| sentence.strip_prefix(words));
    if told.clone().any(is_told_alone) {
        return true;
    }
    // `An error occurred while generating the response`, and nothing of files or tools.
    let vague = phrases::VAGUE_FAILURES
        .iter()
        .find_map(|start| sentence.strip_prefix(start));
    if let Some(rest) = vague {
        let rest = rest.trim_matches(|c: char| !c.is_alphanumeric());
        let is_own = phrases::OWN_WORK.iter().any(|word| rest.contains(word));
        if rest.is_empty() || (is_own && !is_narrated(rest)) {
            return true;
        }
    }
    is_model_state(sentence)
}

/// Whether a sentence says that the program could not do its own work: reach its model, or get an answer from it.
fn is_unable(sentence: &str) -> bool {
    let mut rest = sentence;
    while let Some(after) = phrases::SPEAKING
        .iter()
        .filter_map(|word| rest.strip_prefix(word))
        .find(|after| after.starts_with(' '))
    {
        rest = after.trim_start();
    }
    let unable = phrases::UNABLE
        .iter()
        .find_map(|start| rest.strip_prefix(start));
    let Some(rest) = unable
        .filter(|rest| rest.starts_with(' '))
        .map(str::trim_start)
    else {
        return false;
    };
    let (verb, object) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_request = verb.starts_with("process") || verb.starts_with("complet");
    phrases::WORK.contains(&verb)
        && (phrases::WORK_WITH.iter().any(|word| object.contains(word))
            || (is_request && object == "your request"))
        && !phrases::NARRATED_WORK
            .iter()
            .any(|word| object.contains(word))
}

/// Whether what follows the words for a failure leaves them what the sentence is about.
fn is_told_alone(rest: &str) -> bool {
    let next = rest.trim_start();
    let word = next.split_whitespace().next().unwrap_or_default();
    let word = word.trim_end_matches([',', '.', ':']);
    // `Timeout: 30 s` is a setting.
    let is_number = next
        .strip_prefix(':')
        .is_some_and(|after| after.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    next.is_empty()
        || (next.starts_with([':', '-']) && !is_number)
        || next.starts_with(['(', ',', '–', '—', '['])
        || (rest.starts_with(' ') && phrases::OWN_NEXT.contains(&word) && !is_narrated(next))
}

/// Whether a sentence says that the model, or what serves it, is not there: `the model is unavailable`. The tools of an
/// agent have other names: `the weather service is unavailable`.
fn is_model_state(sentence: &str) -> bool {
    let mut words = sentence.split_whitespace();
    let (mut is_model, mut is_server) = (false, false);
    let mut place = 0;
    for word in words.by_ref() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_id = word.starts_with(['`', '\'', '"'])
            || bare.contains(['-', '/', ':', '.'])
            || bare.contains(|c: char| c.is_ascii_digit());
        if phrases::MODEL_NOUNS.contains(&bare) {
            is_model = true;
        } else if phrases::SERVER_NOUNS.contains(&bare) {
            is_server = true;
        } else if !is_id && !phrases::MODEL_WORDS.contains(&bare) {
            break;
        }
        place += word.len() + 1;
    }
    let rest = sentence.get(place..).unwrap_or_default();
    let verb = rest.split_whitespace().next().unwrap_or_default();
    if !phrases::MODEL_VERBS.contains(&verb.trim_end_matches([':', ','])) {
        return false;
    }
    let is_in = |states: &[&str]| states.iter().any(|state| rest.contains(state));
    (is_model && is_in(phrases::MODEL_STATES)) || (is_server && is_in(phrases::SERVER_STATES))
}
