//! Takes out of a text what may be secret before its lines are shown beside findings.

/// The keys whose values may be secret.
const BLOCKS: [&str; 2] = ["headers", "environment"];

/// The text with stars for the values of headers and variables and for passwords in URLs. Every line keeps
/// its length, so that places stay what they are. It works on lines, not on the tree: a text that cannot be
/// read is shown, too.
pub(super) fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // How far the block is indented that is being left out.
    let mut block: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        if !line.trim().is_empty() && block.is_some_and(|block| indent <= block) {
            block = None;
        }
        let opened = BLOCKS.iter().filter_map(|word| {
            let at = line.find(word)? + word.len();
            let colon = line[at..].find(':')?;
            Some(at + colon + 1)
        });
        let from = match (block, opened.min()) {
            (None, Some(from)) => {
                // In a list, `- headers:` is as deep as what stands after the dash.
                block = Some(indent + usize::from(line.trim_start().starts_with("- ")) * 2);
                Some(from)
            }
            (None, None) => None,
            (Some(_), _) => Some(line.find(':').map_or(indent, |colon| colon + 1)),
        };
        match from {
            Some(from) => {
                out.push_str(&line[..from]);
                out.extend(line[from..].chars().flat_map(stars));
            }
            None => out.push_str(&without_passwords(line)),
        }
    }
    out
}

/// As many stars as a character has bytes; blanks stay.
fn stars(c: char) -> impl Iterator<Item = char> {
    let (c, count) = if c.is_whitespace() && c.len_utf8() == 1 {
        (c, 1)
    } else {
        ('*', c.len_utf8())
    };
    std::iter::repeat_n(c, count)
}

fn without_passwords(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let end = after
            .find(['/', ' ', '"', '\'', '\n'])
            .unwrap_or(after.len());
        let user = after[..end].rfind('@').unwrap_or(0);
        out.extend(after[..user].chars().flat_map(stars));
        rest = &after[user..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_stars_and_places_stay() {
        for (text, expected) in [
            ("a: b\n", "a: b\n"),
            (
                "x:\n  headers:\n    Authorization: Bearer ü\n  b: c\n",
                "x:\n  headers:\n    Authorization: ****** **\n  b: c\n",
            ),
            ("- headers: {A: b}\n  c: d\n", "- headers: *** **\n  c: d\n"),
            (
                "- {name: x, environment: {K: v}}\n",
                "- {name: x, environment: *** ***\n",
            ),
            (
                "  environment:\n    K: |\n      ab\n",
                "  environment:\n    K: *\n      **\n",
            ),
            ("url: http://u:p@h/x\n", "url: http://***@h/x\n"),
            (
                "url: http://h/x@y http://a@b",
                "url: http://h/x@y http://*@b",
            ),
            ("\"headers\": {\"A\": \"b", "\"headers\": ***** **"),
        ] {
            assert_eq!(masked(text), expected);
            assert_eq!(masked(text).len(), text.len());
        }
    }
}
