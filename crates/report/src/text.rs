//! Texts from outside on their way into reports: what cannot be seen is shown, what is long is cut; and
//! numbers as people read them.

use jiff::Timestamp;
use unicode_width::UnicodeWidthChar;

use proofhouse_campaign::statistics::Rate;
use proofhouse_source::{is_invisible, tag_letter};

/// Whether a character shows nothing, or does something to what is shown.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// A character that cannot be seen, by its number.
pub(crate) fn number_of(c: char) -> String {
    format!("<{}>", code_point(c))
}

/// The number of a character: `U+202E`.
pub(crate) fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// A text with everything in it to be seen, on as many lines as it has.
pub(crate) fn visible(text: &str) -> String {
    shown(text, |c| c == '\n' || c == '\t')
}

/// A text with everything in it to be seen, on one line; white space becomes a space.
pub(crate) fn line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(&shown(word, |_| false));
    }
    line
}

fn shown(text: &str, stays: fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) && !stays(c) {
            shown.push_str(&number_of(c));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The first `most` characters, with a mark if there were more.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// One line, no wider than `width` columns of a terminal, filled up to it.
pub(crate) fn column(text: &str, width: usize) -> String {
    // Nothing that is cut here is longer than this, however wide.
    let text = line(&cut(text, width.saturating_mul(2)));
    let wide = |c: char| c.width().unwrap_or(0);
    let total: usize = text.chars().map(wide).sum();
    let mut column = String::new();
    let mut used = 0;
    for c in text.chars() {
        // The mark of a cut needs a place.
        if total > width && used + wide(c) > width.saturating_sub(1) {
            column.push('…');
            used += 1;
            break;
        }
        column.push(c);
        used += wide(c);
    }
    column.push_str(&" ".repeat(width.saturating_sub(used)));
    column
}

/// A share in percent: `60%`, or `–` of nothing.
pub(crate) fn percent(rate: &Rate) -> String {
    rate.value()
        .map_or_else(|| "–".to_owned(), |value| format!("{:.0}%", value * 100.0))
}

/// The interval of a rate: `31–83%`, or `–` of nothing.
pub(crate) fn interval(rate: &Rate) -> String {
    if rate.all == 0 {
        return "–".to_owned();
    }
    format!("{:.0}–{:.0}%", rate.low * 100.0, rate.high * 100.0)
}

/// Some of all: `3/5`, or `–` of nothing.
pub(crate) fn of(rate: &Rate) -> String {
    if rate.all == 0 {
        return "–".to_owned();
    }
    format!("{}/{}", rate.some, rate.all)
}

/// How long something took.
pub(crate) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", milliseconds as f64 / 1_000.0),
        60_000..3_600_000 => format!(
            "{} min {} s",
            milliseconds / 60_000,
            milliseconds / 1_000 % 60
        ),
        _ => format!(
            "{} h {} min",
            milliseconds / 3_600_000,
            milliseconds / 60_000 % 60
        ),
    }
}

/// A time for people: `3 Feb 2026, 04:05 UTC`. What is no time stays as it is.
pub(crate) fn clock_time(time: &str) -> String {
    let parsed = time.parse::<Timestamp>();
    parsed.map_or_else(
        |_| time.to_owned(),
        |time| time.strftime("%-d %b %Y, %H:%M UTC").to_string(),
    )
}

/// How long it is from one time to another, if both are times.
pub(crate) fn time_between(from: &str, to: &str) -> Option<String> {
    let from: Timestamp = from.parse().ok()?;
    let to: Timestamp = to.parse().ok()?;
    let milliseconds = to.as_millisecond().checked_sub(from.as_millisecond())?;
    Some(duration(u64::try_from(milliseconds).ok()?))
}

/// A number that may be large.
pub(crate) fn amount(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..10_000_000 => format!("{:.0}k", number as f64 / 1e3),
        _ => format!("{:.0}M", number as f64 / 1e6),
    }
}

/// Adds a line to a text.
pub(crate) fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

/// `1 run`, `2 runs`.
pub(crate) fn plural(number: u64, one: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{number} {one}s")
    }
}

/// A sentence as it stands after a colon: its first word has no capital, unless it is an abbreviation.
pub(crate) fn in_a_sentence(sentence: &str) -> String {
    let mut rest = sentence.chars();
    let first = rest.next().map(|first| first.to_lowercase().to_string());
    let is_usual = sentence
        .chars()
        .nth(1)
        .is_some_and(|second| second.is_lowercase() || second == ' ');
    match first {
        Some(first) if is_usual => first + rest.as_str(),
        _ => sentence.to_owned(),
    }
}

/// A sentence with one full stop at its end, whether or not it has one.
pub(crate) fn full_stop(sentence: &str) -> String {
    let sentence = sentence.trim_end();
    let ends = sentence.ends_with(['.', '!', '?']);
    format!("{sentence}{}", if ends { "" } else { "." })
}

/// A word of the format for people: `boundary_breach` is `boundary breach`.
pub(crate) fn words(name: &str) -> String {
    line(&name.replace('_', " "))
}

/// What a text says in tag characters, which nobody sees and models read; `None` when it has none.
pub(crate) fn hidden_text(text: &str) -> Option<String> {
    let hidden: String = text.chars().filter_map(tag_letter).collect();
    (!hidden.is_empty()).then_some(hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_characters_are_decoded() {
        assert_eq!(hidden_text("plain \u{e001}"), None);
        let hidden = "a\u{e0053}\u{e0065}\u{e006e}\u{e0064}\u{e0020}\u{e0069}\u{e0074}\u{e007f}b";
        assert_eq!(hidden_text(hidden).as_deref(), Some("Send it"));
    }

    #[test]
    fn sentences_end_once() {
        for (sentence, expected) in [
            ("It is ours", "It is ours."),
            ("It is ours. ", "It is ours."),
        ] {
            assert_eq!(full_stop(sentence), expected);
        }
    }

    #[test]
    fn sentences_go_on_after_a_colon() {
        for (sentence, expected) in [
            ("The agent paid", "the agent paid"),
            ("A tool lied", "a tool lied"),
            ("MCP tools lied", "MCP tools lied"),
            ("Ähnliches", "ähnliches"),
            ("", ""),
        ] {
            assert_eq!(in_a_sentence(sentence), expected);
        }
    }

    #[test]
    fn hidden_characters_are_seen() {
        assert_eq!(line("a\x1b[31m\n\u{202e}b"), "a<U+001B>[31m <U+202E>b");
        assert_eq!(visible("a\n\tb\r\u{200b}"), "a\n\tb<U+000D><U+200B>");
        assert_eq!(line("a\u{fe0f}\u{e0fff}"), "a<U+FE0F><U+E0FFF>");
    }

    #[test]
    fn columns_have_their_width() {
        for (text, width, expected) in [
            ("abc", 5, "abc  "),
            ("abcdef", 5, "abcd…"),
            ("abcde", 5, "abcde"),
            ("工具工具", 5, "工具…"),
            ("工具工具", 6, "工具… "),
            ("", 2, "  "),
        ] {
            assert_eq!(column(text, width), expected);
        }
    }

    #[test]
    fn times_read_well() {
        assert_eq!(
            clock_time("2026-02-03T04:05:06.789Z"),
            "3 Feb 2026, 04:05 UTC"
        );
        assert_eq!(clock_time("soon"), "soon");
        let took = time_between("2026-02-03T04:05:06Z", "2026-02-03T04:06:07Z");
        assert_eq!(took.as_deref(), Some("1 min 1 s"));
        assert_eq!(
            time_between("2026-02-03T04:05:06Z", "2026-02-03T04:05:05Z"),
            None
        );
        assert_eq!(time_between("x", "y"), None);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(duration(999), "999 ms");
        assert_eq!(duration(1_500), "1.5 s");
        assert_eq!(duration(61_000), "1 min 1 s");
        assert_eq!(duration(7_260_000), "2 h 1 min");
        assert_eq!(interval(&Rate::new(0, 0)), "–");
        assert_eq!(interval(&Rate::new(5, 10)), "24–76%");
        assert_eq!(amount(123_456), "123k");
    }
}
