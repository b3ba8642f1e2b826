//! Follows the recipes of CONTRIBUTING.md: a unit of each kind is named in its own files and in the lines of its recipe,
//! and nowhere else. So adding one touches no more than the recipe says.

use std::fs;

use crate::sources::{CodeLine, code_of, root};

const PAGE: &str = include_str!("../../../../CONTRIBUTING.md");

/// A recipe, and a unit that exists to follow it by.
struct Recipe {
    /// Its heading in CONTRIBUTING.md.
    heading: &'static str,
    /// The unit.
    unit: &'static str,
    /// The words that name it in code; also parts of longer texts, but not of longer words.
    words: &'static [&'static str],
    /// Its own files and folders from `crates/`, where it may be named as often as it likes.
    own: &'static [&'static str],
    /// The tables it stands in, and how many lines of each name it. Where it has a file of its own, one is its `mod`.
    tables: &'static [(&'static str, usize)],
    /// Places that name it for another reason, each with the number of lines.
    also: &'static [(&'static str, usize, &'static str)],
    /// The tests that name it, from the root, as it is called here or by any of these words.
    tests: &'static [&'static str],
    /// The pages that name it as it is called here, from the root.
    pages: &'static [&'static str],
}

const RECIPES: [Recipe; 10] = [
    Recipe {
        heading: "A validation rule",
        unit: "V-033",
        words: &["V-033", "one_fallback"],
        own: &["oatf/src/validate/bindings.rs"],
        tables: &[("oatf/src/validate/mod.rs", 1)],
        also: &[],
        tests: &["crates/oatf/tests/it/rules/bindings.rs"],
        // Its page is the doc comment of its row, which `explain` prints.
        pages: &[],
    },
    Recipe {
        heading: "A command",
        unit: "fmt",
        words: &["Fmt", "mod fmt"],
        own: &["cli/src/commands/fmt.rs"],
        tables: &[("cli/src/commands/mod.rs", 2)],
        also: &[],
        tests: &["crates/cli/tests/it/commands.rs"],
        pages: &["docs/reference/cli.md", "README.md"],
    },
    Recipe {
        heading: "A driver",
        unit: "ag_ui_client",
        words: &["ag_ui_client", "AgUiClient", "AgUiClientDriver"],
        own: &["range/src/drivers/ag_ui_client/"],
        tables: &[
            ("range/src/drivers/mod.rs", 2),
            // Only for modes that the format lists: the line, and the lists in its state.
            ("oatf/src/model/open.rs", 2),
            ("campaign/src/matchable/roots.rs", 1),
            // One per channel, with the document of its probe.
            ("campaign/src/probes/templates.rs", 6),
        ],
        also: &[
            ("oatf/src/fields.rs", 1, "an example in the schema"),
            ("cli/src/commands/new.rs", 1, "a template to start from"),
        ],
        tests: &["crates/range/tests/it/ag_ui_client.rs"],
        pages: &["docs/reference/attack.md", "docs/reference/range-ag-ui.md"],
    },
    // The same for a mode that serves, which subjects must be told of.
    Recipe {
        heading: "A driver",
        unit: "a2a_server",
        words: &["a2a_server", "A2aServer", "A2aServerDriver"],
        own: &["range/src/drivers/a2a_server/"],
        tables: &[
            // The third shows callers the cards that a document offers.
            ("range/src/drivers/mod.rs", 3),
            ("oatf/src/model/open.rs", 2),
            ("campaign/src/matchable/roots.rs", 1),
            ("campaign/src/probes/templates.rs", 3),
            ("campaign/src/document.rs", 1),
            // How each kind of subject connects to it.
            ("subjects/src/host.rs", 2),
            ("subjects/src/agent.rs", 1),
            ("subjects/src/command/variables.rs", 1),
            ("subjects/src/endpoint.rs", 3),
            ("subjects/src/guarded.rs", 1),
        ],
        also: &[
            (
                "cli/src/commands/new.rs",
                2,
                "a template to start from, and an example",
            ),
            ("cli/src/commands/scenarios.rs", 1, "an example in the help"),
        ],
        tests: &["crates/range/tests/it/a2a_server.rs"],
        pages: &["docs/reference/attack.md", "docs/reference/range-a2a.md"],
    },
    Recipe {
        heading: "A protocol revision",
        unit: "2025-11-25",
        words: &["2025-11-25", "V2025_11_25"],
        own: &["protocol/src/mcp/revision.rs"],
        // Both only for what the revision added.
        tables: &[
            ("protocol/src/mcp/method.rs", 1),
            ("protocol/src/mcp/notification.rs", 1),
        ],
        also: &[],
        tests: &["crates/range/tests/it/mcp_server_legacy.rs"],
        pages: &["docs/reference/range-mcp.md"],
    },
    Recipe {
        heading: "A trace format",
        unit: "otlp",
        words: &["otlp", "Otlp", "OtlpLines", "OTLP"],
        own: &[
            "detect/src/import/otlp.rs",
            "detect/src/import/otlp_walk.rs",
        ],
        tables: &[("detect/src/import/mod.rs", 2)],
        also: &[
            (
                "cli/src/telemetry.rs",
                6,
                "the flag that sends our own spans",
            ),
            (
                "cli/src/commands/guard/mod.rs",
                2,
                "the same for the spans of the guard",
            ),
        ],
        tests: &["crates/detect/tests/it/hiding.rs"],
        pages: &["docs/reference/traces.md"],
    },
    Recipe {
        heading: "A report format of campaigns",
        unit: "junit",
        words: &["junit", "Junit", "quick_junit"],
        own: &["report/src/junit.rs"],
        tables: &[
            ("campaign/src/report_format.rs", 1),
            ("report/src/lib.rs", 2),
        ],
        also: &[("campaign/src/config/write.rs", 1, "an example for `init`")],
        tests: &["crates/report/tests/it/report_schemas.rs"],
        pages: &["docs/reference/reports.md"],
    },
    Recipe {
        heading: "An action runtime",
        unit: "stateless_http",
        words: &["stateless_http", "StatelessHttp"],
        own: &[
            "manifest/src/execute/stateless_http.rs",
            "tools/src/actions/stateless_http.rs",
        ],
        tables: &[
            ("manifest/src/execute/mod.rs", 2),
            ("tools/src/actions/mod.rs", 2),
        ],
        also: &[(
            "tools/src/receive/calls.rs",
            1,
            "calls of events are made as such actions are",
        )],
        tests: &["crates/tools/tests/it/stateless_http.rs"],
        pages: &["docs/reference/tools.md", "docs/reference/tool.md"],
    },
    Recipe {
        heading: "A signature scheme of webhooks",
        unit: "slack",
        words: &["slack", "Slack"],
        own: &[],
        // Its row, which has the names of its headers.
        tables: &[("wire/src/webhook/scheme.rs", 3)],
        also: &[],
        tests: &["crates/tools/tests/it/receive_webhook.rs"],
        pages: &["docs/reference/events.md"],
    },
    Recipe {
        heading: "A model provider",
        unit: "anthropic",
        words: &["anthropic", "Anthropic", "ANTHROPIC"],
        own: &["agent/src/model/providers/anthropic.rs"],
        tables: &[("agent/src/model/providers/mod.rs", 2)],
        also: &[
            (
                "cli/src/commands/agent/chat.rs",
                1,
                "an example in the help",
            ),
            (
                "campaign/src/outcome/answer/phrases.rs",
                7,
                "words of errors, whoever runs the model",
            ),
            (
                "subjects/src/discover/frameworks.rs",
                1,
                "how programs of others name it",
            ),
        ],
        tests: &["crates/agent/tests/it/providers.rs"],
        pages: &["docs/reference/models.md"],
    },
];

/// The code of every crate but the one that only tests use.
fn all_code() -> Vec<(String, Vec<CodeLine>)> {
    let entries = fs::read_dir(root().join("crates")).expect("the crates are there");
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "test-support").collect();
    names.sort();
    names.iter().flat_map(|name| code_of(name)).collect()
}

/// Whether a text has a word that is no part of a longer one.
fn names(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

impl Recipe {
    fn is_named_in(&self, text: &str) -> bool {
        self.words.iter().any(|word| names(text, word))
    }

    /// How many lines of a file may name the unit; `None` is any number but none.
    fn allowed(&self, file: &str) -> Option<usize> {
        if self.own.iter().any(|own| file.starts_with(own)) {
            return None;
        }
        let also = self.also.iter().map(|(path, lines, _)| (path, lines));
        let tables = self.tables.iter().map(|(path, lines)| (path, lines));
        let mut listed = tables.chain(also);
        let found = listed.find(|(path, _)| **path == file);
        Some(found.map_or(0, |(_, lines)| *lines))
    }

    /// What differs from the recipe in the code.
    fn differences(&self, code: &[(String, Vec<CodeLine>)], problems: &mut Vec<String>) {
        let listed = self.tables.iter().map(|(path, _)| path);
        let listed = listed.chain(self.also.iter().map(|(path, ..)| path));
        for path in listed.chain(self.own) {
            let names_it = |(file, lines): &(String, Vec<CodeLine>)| {
                file.starts_with(path) && lines.iter().any(|(_, line)| self.is_named_in(line))
            };
            if !code.iter().any(names_it) {
                problems.push(format!("crates/{path} does not name {}", self.unit));
            }
        }
        for (file, lines) in code {
            let Some(allowed) = self.allowed(file) else {
                continue;
            };
            let named: Vec<_> = lines
                .iter()
                .filter(|(_, line)| self.is_named_in(line))
                .collect();
            if named.len() != allowed {
                let heading = self.heading;
                problems.push(format!(
                    "“{heading}”: {} lines of crates/{file} name {}, not {allowed}:",
                    named.len(),
                    self.unit
                ));
                let places = named.iter();
                problems.extend(
                    places.map(|(number, line)| {
                        format!("    crates/{file}:{number}: {}", line.trim())
                    }),
                );
            }
        }
        let tests = self.tests.iter();
        let tests = tests.map(|path| {
            let text = read(path);
            (path, names(&text, self.unit) || self.is_named_in(&text))
        });
        let pages = self.pages.iter();
        let pages = pages.map(|path| (path, names(&read(path), self.unit)));
        let silent = tests.chain(pages).filter(|(_, is_named)| !is_named);
        problems.extend(silent.map(|(path, _)| format!("{path} does not name {}", self.unit)));
    }
}

fn read(path: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "a file of this project")]
    let text = fs::read_to_string(root().join(path));
    text.unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_unit_is_named_where_its_recipe_says() {
    let code = all_code();
    assert!(code.len() > 300, "only {} files were found", code.len());
    let mut problems = Vec::new();
    for recipe in &RECIPES {
        recipe.differences(&code, &mut problems);
    }
    assert!(
        problems.is_empty(),
        "mend the seam, or the recipe:\n{}",
        problems.join("\n")
    );
}

/// The text of every recipe, by its heading.
fn recipes() -> Vec<(&'static str, &'static str)> {
    let (_, all) = PAGE.split_once("\n## How to add\n").expect("the section");
    let all = all.split("\n## ").next().unwrap_or_default();
    let recipes = all.split("\n### ").skip(1);
    recipes
        .map(|recipe| recipe.split_once('\n').expect("a heading and its text"))
        .collect()
}

#[test]
fn every_kind_of_unit_has_a_recipe_that_names_its_tables() {
    let recipes = recipes();
    for Recipe {
        heading, tables, ..
    } in &RECIPES
    {
        let (_, text) = recipes
            .iter()
            .find(|(known, _)| known == heading)
            .unwrap_or_else(|| panic!("CONTRIBUTING.md has no recipe “{heading}”"));
        for (table, _) in *tables {
            assert!(
                text.contains(&format!("`crates/{table}`")),
                "“{heading}” does not name crates/{table}"
            );
        }
    }
}

/// The paths among the words in backticks. Commands have spaces; what `<…>` stands for, the reader chooses.
fn paths(text: &str) -> Vec<&str> {
    let words = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let is_file = word.contains('/') || word.ends_with(".rs") || word.ends_with(".md");
        is_file && !word.contains([' ', '(', '=', '$'])
    };
    words.filter(is_path).collect()
}

#[test]
fn the_paths_in_recipes_exist() {
    let mut count = 0;
    for (heading, text) in recipes() {
        for path in paths(text) {
            let known = path.split('<').next().unwrap_or_default();
            let known = match known.rsplit_once('/') {
                Some((folder, _)) if known.len() < path.len() => folder,
                _ => known,
            };
            assert!(
                root().join(known).exists(),
                "“{heading}” names {path}, which is not there; paths are written from the root"
            );
            count += 1;
        }
    }
    assert!(count > 50, "only {count} paths were found");
}

#[test]
fn words_are_found_whole() {
    for (text, word, found) in [
        ("mod fmt;", "mod fmt", true),
        ("mod fmt_all;", "mod fmt", false),
        ("x-slack-signature", "slack", true),
        ("Slacker", "Slack", false),
        ("a_slack slack", "slack", true),
        ("", "slack", false),
    ] {
        assert_eq!(names(text, word), found, "{word} in {text}");
    }
    assert_eq!(
        paths("see `crates/a/<x>.rs`, `cargo run -- a/b` and `mod x;` or `b.md`"),
        ["crates/a/<x>.rs", "b.md"]
    );
}
