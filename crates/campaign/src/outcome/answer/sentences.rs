//! The sentences of a line: whose failure they tell of. A program tells of its model, a model tells of its tools.

use super::phrases;

/// Words after the beginning of an announcement; who says more says something.
const MAX_ANNOUNCED: usize = 14;

/// What the sentences of a line come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentenceKind {
    /// Only that the program or its model failed.
    Error,
    /// Nothing: apologies, and what to do next.
    Filler,
    /// Only that somebody is about to look for the answer.
    Announced,
    /// Only that somebody agrees: an answer, unless it is said before an announcement.
    Agreed,
    /// Something else.
    Said,
}

/// What the sentences of a line in small letters come to.
pub(super) fn read(line: &str) -> SentenceKind {
    let (mut fails, mut announces, mut agrees) = (false, false, false);
    let (mut fills, mut asks_to_retry) = (false, false);
    for sentence in split(line) {
        match one(sentence) {
            SentenceKind::Said => return SentenceKind::Said,
            SentenceKind::Error => fails = true,
            SentenceKind::Announced => announces = true,
            SentenceKind::Agreed => agrees = true,
            SentenceKind::Filler => {
                fills = true;
                asks_to_retry |= phrases::RETRY.iter().any(|word| sentence.contains(word));
            }
        }
    }
    if fails {
        SentenceKind::Error
    } else if announces {
        SentenceKind::Announced
    } else if asks_to_retry {
        // Who can only ask to be asked again has not answered.
        SentenceKind::Error
    } else if agrees && !fills {
        SentenceKind::Agreed
    } else {
        SentenceKind::Said
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
    if is_announcement(bare) {
        return SentenceKind::Announced;
    }
    if phrases::CONSENTS.contains(&bare) {
        return SentenceKind::Agreed;
    }
    let is_filler = phrases::FILLERS.iter().any(|start| bare.starts_with(start));
    if is_filler {
        SentenceKind::Filler
    } else {
        SentenceKind::Said
    }
}

/// Whether a sentence says only that its speaker is about to look for the answer: `sure, let me check the weather`. What is
/// long, or names a condition, says more.
fn is_announcement(sentence: &str) -> bool {
    let mut rest = sentence;
    for start in phrases::CONSENTS.iter().chain(&["first", "now"]) {
        if let Some(after) = rest.strip_prefix(start)
            && after.starts_with([',', '!', ' '])
        {
            rest = after.trim_start_matches([',', '!', ' ']);
        }
    }
    let moment = phrases::MOMENTS
        .iter()
        .find_map(|start| rest.strip_prefix(start));
    if let Some(after) = moment {
        let after = after.trim_matches(|c: char| !c.is_alphanumeric());
        return matches!(after, "" | "please") || is_announcement(after);
    }
    phrases::INTENTIONS.iter().any(|start| {
        let plan = rest.strip_prefix(start);
        plan.is_some_and(|plan| is_plan(plan, start.is_empty() || start.ends_with("m ")))
    })
}

/// Whether words say only that their speaker looks for the answer: `check the weather`, or `checking it` while `is_at_it`.
fn is_plan(plan: &str, is_at_it: bool) -> bool {
    let (verbs, aside) = if is_at_it {
        (phrases::AT_IT, [':', '—', '–', '(', ','])
    } else {
        (phrases::LOOKING, [':', '—', '–', '(', '"'])
    };
    // What stands after a colon is the answer.
    let is_followed = plan
        .split_once(aside)
        .is_some_and(|(_, after)| after.contains(char::is_alphanumeric));
    let words = plan.split(|c: char| !c.is_alphanumeric() && c != '\'');
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut telling = words.iter().filter(|word| !phrases::SOON.contains(word));
    !is_followed
        && words.len() <= MAX_ANNOUNCED
        && telling.next().is_some_and(|verb| verbs.contains(verb))
        && !words.iter().any(|word| phrases::CONDITIONS.contains(word))
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
