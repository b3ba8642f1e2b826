//! Takes out of a text what may be secret before its lines are shown beside findings.

use proofhouse_source::starred;

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
                out.push_str(&without_values(&line[from..]));
            }
            None => out.push_str(&without_passwords(line)),
        }
    }
    out
}

/// Stars for everything but `${NAME}`: the name of a variable is not its value.
fn without_values(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, after) = rest.split_at(at);
        out.push_str(&starred(before));
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = after[2..]
            .find(|c: char| !is_of_name(c))
            .map_or(2, |end| end + 2);
        // `$${` is the text `${`.
        let is_name = !before.ends_with('$') && name > 2 && after[name..].starts_with('}');
        let end = if is_name { name + 1 } else { 2 };
        let shown = &after[..end];
        out.push_str(&if is_name {
            shown.to_owned()
        } else {
            starred(shown)
        });
        rest = &after[end..];
    }
    out.push_str(&starred(rest));
    out
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
        out.push_str(&starred(&after[..user]));
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
            (
                "  environment:\n    K: x${OPENAI_API_KEY}y $${z} ${\n",
                "  environment:\n    K: *${OPENAI_API_KEY}* ***** **\n",
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
