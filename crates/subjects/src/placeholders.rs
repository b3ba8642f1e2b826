//! The placeholders of commands, such as `{mcp_url}`, and what is wrong with others.

use proofhouse_source::did_you_mean;

/// All there are. One that has no value in a run, such as `{mcp_url}` where the attack has no MCP server, is empty.
pub const KNOWN: [&str; 10] = [
    "mcp_url",
    "mcp_urls",
    "a2a_url",
    "a2a_urls",
    "prompt",
    "port",
    "mcp_config",
    "directory",
    "run",
    "canary",
];

/// What is wrong with the placeholders of a word, in words, if something is. Braces with something else than a name in
/// them are no placeholders, nor are variables of a shell; and in a longer text, such as a script, only what is
/// nearly a placeholder is one.
#[must_use]
pub fn problem(word: &str) -> Option<String> {
    let is_text = word.contains(char::is_whitespace);
    for (start, _) in word.match_indices('{') {
        let Some((name, _)) = word[start + 1..].split_once('}') else {
            continue;
        };
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !is_name || word[..start].ends_with(['$', '{']) || KNOWN.contains(&name) {
            continue;
        }
        match did_you_mean(name, KNOWN) {
            Some(near) => {
                return Some(format!(
                    "`{{{name}}}` is not a placeholder; did you mean `{{{near}}}`?"
                ));
            }
            None if is_text => {}
            None => {
                let known = KNOWN.map(|name| format!("{{{name}}}"));
                return Some(format!(
                    "`{{{name}}}` is not a placeholder; there are {}",
                    known.join(", ")
                ));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_braces_are_not() {
        for (word, near) in [
            ("{promt}", "{prompt}"),
            ("--mcp={mcp-url}", "{mcp_url}"),
            ("Answer this: {prompts}", "{prompt}"),
            ("{completely_else}", "there are"),
        ] {
            assert!(
                problem(word).is_some_and(|said| said.contains(near)),
                "{word}"
            );
        }
        for word in [
            "{prompt}",
            "{\"a\": 1}",
            "${HOME}",
            "awk '{print}' x",
            "{",
            "{}",
            "{{x}}",
            "",
        ] {
            assert_eq!(problem(word), None, "{word}");
        }
    }
}
