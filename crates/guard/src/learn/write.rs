//! The draft as text.

use serde_json::Value;

use super::{LearnedSessions, LearnedTool};

/// What names of tools begin with that only read.
const READING: &[&str] = &[
    "get", "list", "read", "search", "find", "check", "fetch", "query", "show", "describe",
    "count", "look", "view", "lookup", "download", "browse", "resolve", "status", "help",
];

/// What names of tools begin with that cost money or cannot be taken back.
const BINDING: &[&str] = &[
    "book",
    "buy",
    "cancel",
    "charge",
    "checkout",
    "close",
    "delete",
    "destroy",
    "drop",
    "erase",
    "hire",
    "order",
    "pay",
    "purchase",
    "purge",
    "remove",
    "rent",
    "reserve",
    "revoke",
    "sell",
    "sign",
    "subscribe",
    "terminate",
    "transfer",
    "truncate",
    "uninstall",
    "wipe",
    "withdraw",
];

const RULES: &str = "\
# The first rule that matches decides. `t.decides`: the argument is one that `decides` lists. `t.address`: a text names a host
# or a mail address that somebody else wrote. `taint.unnamed`: a result had the value before anybody used it. A list says which
# things there are, not which of them the user means.
rules:
  - id: untrusted-value-decides
    when: size(call.effects) > 0 && taint.untrusted.exists(t, t.decides || t.address)
    decision: ask
    message: A value in this call came from a text that somebody else wrote. Ask the user to confirm it.
    on_error: block

  - id: nobody-named-the-value
    when: '\"binding\" in call.effects && taint.unnamed.exists(t, t.decides)'
    decision: ask
    message: This call costs money or cannot be taken back, and nobody named a value of it before a result did. Ask the user to confirm it.
    on_error: block
";

pub(super) fn policy(learned: &LearnedSessions, name: &str) -> String {
    let mut out = format!(
        "# A draft, learned from sessions in which nothing bad happened (calls: {}, tools: {}). Read every entry: what a tool\n\
         # returns and does was guessed from names and shapes. `binding`: it costs money or cannot be taken back.\npolicy: 1\nname: {}\n\n\
         taint:\n  # Ids are short.\n  min_value: 2\n",
        learned.calls,
        learned.tools.len(),
        quoted(name),
    );
    if learned.left_out > 0 {
        out.push_str(&format!(
            "# {} tools are missing: there were too many.\n",
            learned.left_out
        ));
    }
    out.push_str("\ntools:\n");
    for (name, tool) in &learned.tools {
        entry(name, tool, &mut out);
    }
    if learned.tools.is_empty() {
        out.push_str("  []\n");
    }
    out.push('\n');
    out.push_str(RULES);
    out
}

fn entry(name: &str, tool: &LearnedTool, out: &mut String) {
    out.push_str(&format!("  - tool: {}\n", quoted(name)));
    if tool.calls == 0 {
        out.push_str("    # Never called: what it returns is not known.\n");
    }
    // Whatever a tool returns may be written by others, until a person says otherwise. Fields that are no text are told apart.
    if tool.is_text || tool.results == 0 {
        out.push_str("    returns: untrusted\n");
    } else if tool.has_values {
        out.push_str(&format!(
            "    returns: untrusted\n    free_text: {}\n",
            list(tool.free_text.iter())
        ));
    }
    // A tool that says that it changes something is believed; that it only reads, anybody could say.
    let reads = tool.read_only != Some(false) && is_reading(name);
    if !reads {
        if tool.read_only == Some(true) {
            out.push_str(
                "    # It says of itself that it only reads. If you know that it does, remove `effects` and `decides`.\n",
            );
        }
        let verb = first_word(name);
        let binding = if BINDING.contains(&verb.as_str()) {
            ", binding"
        } else {
            ""
        };
        out.push_str(&format!("    effects: [{}{binding}]\n", quoted(&verb)));
        let deciding = tool.deciding();
        if deciding.is_empty() {
            out.push_str(
                "    # No argument seems to decide where the effect goes, so all of them count.\n",
            );
        } else {
            out.push_str(&format!("    decides: {}\n", list(deciding.into_iter())));
        }
    }
}

/// Whether the name begins with a word for reading. A word elsewhere says nothing: `mark_read` and `update_status` change
/// something.
fn is_reading(name: &str) -> bool {
    READING.contains(&first_word(name).as_str())
}

/// `sendEmail`, `send-email` and `send_email` begin with `send`.
fn first_word(name: &str) -> String {
    let name = name.rsplit(['/', '.', ':']).next().unwrap_or(name);
    let end = name.char_indices().skip(1).find(|(_, c)| !c.is_lowercase());
    name[..end.map_or(name.len(), |(at, _)| at)].to_lowercase()
}

fn list<'t>(items: impl Iterator<Item = &'t String>) -> String {
    let items: Vec<String> = items.map(|item| quoted(item)).collect();
    format!("[{}]", items.join(", "))
}

/// A text as YAML: plain where that is safe, otherwise as JSON, which YAML reads. Names come from servers.
fn quoted(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_plain {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::{first_word, is_reading, quoted};

    #[test]
    fn the_first_word_of_a_name_is_its_verb() {
        for name in [
            "send_email",
            "sendEmail",
            "send-email",
            "mail/send_email",
            "Send",
        ] {
            assert_eq!(first_word(name), "send", "{name}");
        }
    }

    #[test]
    fn only_the_first_word_says_that_a_tool_reads() {
        for (name, reads) in [
            ("get_mail", true),
            ("fetchMail", true),
            ("mark_read", false),
            ("update_status", false),
        ] {
            assert_eq!(is_reading(name), reads, "{name}");
        }
    }

    #[test]
    fn names_of_servers_do_not_end_the_line() {
        assert_eq!(quoted("a\nrules: []"), "\"a\\nrules: []\"");
        assert_eq!(
            (quoted("send_mail"), quoted("on"), quoted("*")),
            (
                "send_mail".to_owned(),
                "\"on\"".to_owned(),
                "\"*\"".to_owned()
            )
        );
    }
}
