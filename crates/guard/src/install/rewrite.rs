//! Puts the guard in front of the servers of a configuration, and takes it away again, without touching anything else.

use std::ops::Range;

use serde_json::json;

use super::jsonc::{ConfigSyntax, JsonNode, parse};

/// How deep servers are looked for: some clients keep those of each project in one file.
const MAX_DEPTH: usize = 8;

/// Names of the section with the servers, wherever it stands.
const SECTIONS: [&str; 2] = ["mcpServers", "mcp_servers"];
/// Its name where it stands at the top, or under `mcp`.
const SECTION_AT_TOP: &str = "servers";

/// What comes first in the arguments of a guarded server.
const GUARD: &str = "guard";
/// What comes before its own command.
const SEPARATOR: &str = "--";

/// How the guard is started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardCommandLine {
    /// The program.
    pub program: String,
    /// Flags after `guard`, such as `--policy`.
    pub flags: Vec<String>,
}

/// What became of the servers of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// The configuration.
    pub text: String,
    /// Servers that changed.
    pub changed: Vec<String>,
    /// Servers that did not, and why.
    pub left: Vec<(String, &'static str)>,
}

/// Puts the guard in front of every server that is started by a command.
///
/// # Errors
///
/// Returns an error when the configuration cannot be read.
///
/// ```
/// use proofhouse_guard::install::{GuardCommandLine, unwrapped, wrapped};
///
/// let text = "{\"mcpServers\": {\"files\": {\"command\": \"npx\", \"args\": [\"-y\", \"files\"]}}} // mine\n";
/// let guard = GuardCommandLine { program: "proofhouse".into(), flags: vec![] };
/// let guarded = wrapped(text, &guard).unwrap();
/// assert_eq!(guarded.text, "{\"mcpServers\": {\"files\": {\"command\": \"proofhouse\", \
///     \"args\": [\"guard\",\"--server\",\"files\",\"--\",\"npx\",\"-y\",\"files\"]}}} // mine\n");
/// assert_eq!(unwrapped(&guarded.text).unwrap().changed, ["files"]);
/// ```
pub fn wrapped(text: &str, guard: &GuardCommandLine) -> Result<Rewritten, ConfigSyntax> {
    rewrite(text, |name, entry| {
        let Some(command) = entry.get("command") else {
            return Err("it is reached over HTTP");
        };
        let Some(program) = command.text() else {
            return Err("its command is no text");
        };
        let own = match entry.get("args") {
            Some(args) => args.texts().ok_or("its arguments are not all texts")?,
            None => Vec::new(),
        };
        if is_guarded(&own) {
            return Err("it is guarded already");
        }
        let mut args = vec![GUARD.to_owned(), "--server".to_owned(), name.to_owned()];
        args.extend(guard.flags.iter().cloned());
        args.extend([SEPARATOR.to_owned(), program.to_owned()]);
        args.extend(own);
        let program = json!(guard.program).to_string();
        Ok(edits(entry, command, &program, &json!(args).to_string()))
    })
}

/// Takes the guard away from every server that has it.
///
/// # Errors
///
/// Returns an error when the configuration cannot be read.
pub fn unwrapped(text: &str) -> Result<Rewritten, ConfigSyntax> {
    rewrite(text, |_, entry| {
        const NOT_GUARDED: &str = "it is not guarded";
        let command = entry.get("command").ok_or(NOT_GUARDED)?;
        let args = entry
            .get("args")
            .and_then(JsonNode::texts)
            .ok_or(NOT_GUARDED)?;
        if !is_guarded(&args) {
            return Err(NOT_GUARDED);
        }
        let own = args.iter().skip_while(|arg| *arg != SEPARATOR).skip(1);
        let own: Vec<&String> = own.collect();
        let (program, rest) = own.split_first().ok_or(NOT_GUARDED)?;
        Ok(edits(
            entry,
            command,
            &json!(program).to_string(),
            &json!(rest).to_string(),
        ))
    })
}

/// Whether arguments are those of a guard with a server behind it.
fn is_guarded(args: &[String]) -> bool {
    args.first().is_some_and(|first| first == GUARD) && args.iter().any(|arg| arg == SEPARATOR)
}

type TextEdit = (Range<usize>, String);

/// The edits that give an entry another command and other arguments.
fn edits(entry: &JsonNode, command: &JsonNode, program: &str, args: &str) -> Vec<TextEdit> {
    match entry.get("args") {
        Some(old) => vec![
            (command.span.clone(), program.to_owned()),
            (old.span.clone(), args.to_owned()),
        ],
        None => vec![(command.span.clone(), format!("{program}, \"args\": {args}"))],
    }
}

fn rewrite(
    text: &str,
    each: impl Fn(&str, &JsonNode) -> Result<Vec<TextEdit>, &'static str>,
) -> Result<Rewritten, ConfigSyntax> {
    let root = parse(text)?;
    let mut rewritten = Rewritten::default();
    let mut edits: Vec<TextEdit> = Vec::new();
    let mut sections = Vec::new();
    for node in [Some(&root), root.get("mcp")].into_iter().flatten() {
        sections.extend(node.get(SECTION_AT_TOP));
    }
    find(&root, 0, &mut sections);
    for section in sections {
        for (name, entry) in section.members().unwrap_or_default() {
            match each(name, entry) {
                Ok(more) => {
                    edits.extend(more);
                    rewritten.changed.push(name.clone());
                }
                Err(reason) => rewritten.left.push((name.clone(), reason)),
            }
        }
    }
    edits.sort_by_key(|(span, _)| span.start);
    let mut at = 0;
    for (span, new) in edits {
        rewritten
            .text
            .push_str(text.get(at..span.start).unwrap_or_default());
        rewritten.text.push_str(&new);
        at = span.end;
    }
    rewritten.text.push_str(text.get(at..).unwrap_or_default());
    Ok(rewritten)
}

/// The sections with servers, wherever they stand.
fn find<'n>(node: &'n JsonNode, depth: usize, found: &mut Vec<&'n JsonNode>) {
    if depth > MAX_DEPTH {
        return;
    }
    for (key, value) in node.members().unwrap_or_default() {
        if SECTIONS.contains(&key.as_str()) {
            found.push(value);
        } else {
            find(value, depth + 1, found);
        }
    }
}
