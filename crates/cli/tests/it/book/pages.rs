//! The pages of the book as a test sees them: their headings, links, code and commands.
#![allow(clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

/// A Markdown file, by its path from the root of the repository.
pub(super) struct BookPage {
    pub(super) path: String,
    pub(super) text: String,
}

/// A command as a page shows it, and the lines that are shown as its output.
#[derive(Debug)]
pub(super) struct ShownCommand {
    pub(super) text: String,
    pub(super) output: Vec<String>,
}

/// A fenced block of code.
pub(super) struct CodeBlock {
    pub(super) language: String,
    pub(super) lines: Vec<String>,
}

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl BookPage {
    pub(super) fn read(path: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "our own documents")]
        let text = fs::read_to_string(root().join(path));
        let text = text.unwrap_or_else(|error| panic!("{path}: {error}"));
        Self {
            path: path.to_owned(),
            text,
        }
    }

    /// Every page below a directory, in the order of their paths.
    pub(super) fn below(directory: &str) -> Vec<Self> {
        let mut pages = Vec::new();
        for entry in fs::read_dir(root().join(directory)).expect("the directory is there") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("a name in UTF-8");
            let path = format!("{directory}/{name}");
            if entry.path().is_dir() {
                pages.extend(Self::below(&path));
            } else if path.ends_with(".md") {
                pages.push(Self::read(&path));
            }
        }
        pages.sort_by(|one, other| one.path.cmp(&other.path));
        pages
    }

    /// The lines that are no code.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut is_code = false;
        self.text.lines().filter(move |line| {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            !is_code && !is_fence
        })
    }

    /// The targets of all links and pictures.
    pub(super) fn links(&self) -> Vec<String> {
        let prose: Vec<&str> = self.prose().collect();
        let text = prose.join("\n");
        // What stands in backticks is no link.
        let text: String = text.split('`').step_by(2).collect();
        text.split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
            .map(str::to_owned)
            .collect()
    }

    /// The anchors of the headings, as GitHub and mdBook make them.
    pub(super) fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for line in self.prose().filter(|line| line.starts_with('#')) {
            let heading = line.trim_start_matches('#').trim();
            let mut anchor = String::new();
            for character in heading.to_lowercase().chars() {
                if character.is_alphanumeric() || character == '_' || character == '-' {
                    anchor.push(character);
                } else if character == ' ' {
                    anchor.push('-');
                }
            }
            let again = anchors.iter().filter(|other| **other == anchor).count();
            if again > 0 {
                anchors.push(format!("{anchor}-{again}"));
            } else {
                anchors.push(anchor);
            }
        }
        anchors
    }

    pub(super) fn blocks(&self) -> Vec<CodeBlock> {
        let mut blocks = Vec::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                blocks.push(CodeBlock {
                    language: language.to_owned(),
                    lines: lines
                        .by_ref()
                        .take_while(|line| !line.trim_start().starts_with("```"))
                        .map(str::to_owned)
                        .collect(),
                });
            }
        }
        blocks
    }

    /// The commands of all blocks of `console`, after `$ `, and of `sh`, which are commands only.
    pub(super) fn commands(&self) -> Vec<ShownCommand> {
        let mut commands = Vec::new();
        for block in self.blocks() {
            match block.language.as_str() {
                "console" => from_console(&block.lines, &mut commands),
                "sh" => from_script(&block.lines, &mut commands),
                _ => {}
            }
        }
        commands
    }
}

fn from_console(lines: &[String], commands: &mut Vec<ShownCommand>) {
    let mut goes_on = false;
    for line in lines {
        if let Some(text) = line.strip_prefix("$ ") {
            commands.push(ShownCommand {
                text: text.to_owned(),
                output: Vec::new(),
            });
            goes_on = text.ends_with('\\');
        } else if let Some(command) = commands.last_mut() {
            if goes_on {
                goes_on = line.ends_with('\\');
                append(&mut command.text, line);
            } else {
                command.output.push(line.trim_end().to_owned());
            }
        }
    }
}

fn from_script(lines: &[String], commands: &mut Vec<ShownCommand>) {
    let mut goes_on = false;
    for line in lines {
        // A comment stands alone or after two blanks, never in the middle of a word.
        let text = line.split("  #").next().unwrap_or_default().trim_end();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match commands.last_mut() {
            Some(command) if goes_on => append(&mut command.text, text),
            _ => commands.push(ShownCommand {
                text: text.to_owned(),
                output: Vec::new(),
            }),
        }
        goes_on = text.ends_with('\\');
    }
}

/// Puts a line to the one before it, which ended with a backslash.
fn append(command: &mut String, line: &str) {
    command.truncate(command.trim_end_matches('\\').trim_end().len());
    command.push(' ');
    command.push_str(line.trim());
}
