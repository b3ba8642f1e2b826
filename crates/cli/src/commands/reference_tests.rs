//! Makes docs/reference/cli.md from the definitions of the commands, and fails when the page says something else.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use proofhouse_test_support::workspace;

use super::Cli;

/// Where a command is explained. The rest of its section comes from its help.
const GUIDES: &[(&str, &str)] = &[
    (
        "run",
        "[How a campaign goes](campaigns.md), [how to test your own agent](../how-to/your-agent.md), \
         [details of the flags](commands.md#run), [report formats](reports.md)",
    ),
    (
        "worker",
        "[Run a campaign on several machines](../how-to/fleet.md)",
    ),
    (
        "campaigns",
        "[Run a campaign on several machines](../how-to/fleet.md), [details](commands.md#campaigns)",
    ),
    (
        "replay",
        "[What is kept for a replay](campaigns.md#replay), [details and JSON](commands.md#replay)",
    ),
    (
        "drive",
        "[The protocol](drive.md), [pytest](../how-to/python.md), [vitest](../how-to/typescript.md)",
    ),
    (
        "init",
        "[Which agents it recognises](commands.md#init), [the file it writes](configuration.md)",
    ),
    (
        "ci",
        "[Run campaigns in CI](../how-to/ci.md), [what the workflow does](ci.md)",
    ),
    (
        "attack",
        "[How an attack goes](attack.md), [details and JSON](commands.md#attack)",
    ),
    (
        "scan",
        "[What a trace is](traces.md), [scan traffic you already have](../how-to/scan-traces.md), \
         [details, SARIF and JSON](commands.md#scan)",
    ),
    (
        "guard",
        "[How the guard decides](guard.md), [set it up](../how-to/guard.md), \
         [what it does not stop](../explanation/guard.md)",
    ),
    ("learn", "[Policies of the guard](guard.md)"),
    ("scenarios", "[The threat library](scenarios.md)"),
    (
        "explain-verdict",
        "[What a verdict means](../explanation/verdicts.md), [JSON](commands.md#explain-verdict)",
    ),
    (
        "tool",
        "[Tools](tools.md), [settings of the operator](running-tools.md), [details and JSON](commands.md#tool)",
    ),
    (
        "agent",
        "[Agents](agents.md), [models](models.md), [details and JSON](commands.md#agent)",
    ),
    (
        "serve",
        "[The server](server.md), [deploy it](../how-to/deployment.md), [details](commands.md#serve)",
    ),
    ("keys", "[Who may do what](server.md#who-may-do-what)"),
    ("audit", "[The audit log](server.md#audit-log)"),
    ("model", "[Models](models.md#serving-a-model)"),
    (
        "demo-service",
        "[The example tools](../../examples/tools/README.md), [what it serves](commands.md#demo-service)",
    ),
    (
        "validate",
        "[What is checked, and the JSON](commands.md#validate), [diagnostic codes](diagnostics.md)",
    ),
    (
        "fmt",
        "[Threat documents](documents.md), [details](commands.md#fmt)",
    ),
    ("explain", "[Diagnostic codes](diagnostics.md)"),
    ("lsp", "[Set up your editor](../how-to/editor.md)"),
    (
        "new",
        "[Write your own scenarios](../how-to/own-scenarios.md)",
    ),
    (
        "schema",
        "[JSON Schemas](schemas.md), [set up your editor](../how-to/editor.md)",
    ),
];

#[test]
fn the_page_of_the_command_line_is_generated() {
    let mut root = Cli::command();
    root.build();
    let commands: Vec<&Command> = visible(&root).collect();
    for (name, _) in GUIDES {
        assert!(
            commands.iter().any(|command| command.get_name() == *name),
            "there is no command {name}"
        );
    }
    let mut page = opening(&root, &commands);
    for command in commands {
        section(&mut page, command, "", 2);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    if workspace::setting("PROOFHOUSE_UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("the page can be written");
    }
    #[expect(clippy::disallowed_methods, reason = "our own page")]
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/reference/cli.md is not what the commands say; update it: \
         PROOFHOUSE_UPDATE_DOCS=1 cargo test -p proofhouse --bins reference"
    );
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    let parts = command.get_subcommands();
    parts.filter(|part| !part.is_hide_set() && part.get_name() != "help")
}

fn opening(root: &Command, commands: &[&Command]) -> String {
    let mut page = String::from(
        "# Command line\n\n\
         <!-- Made by the test `the_page_of_the_command_line_is_generated` from the definitions of the commands. Change those instead. -->\n\n\
         Every command with its flags, examples and exit codes, as `proofhouse COMMAND --help` prints them. Results go to stdout;\n\
         messages go to stderr, and errors begin with `error:`. [Commands in detail](commands.md) describes output formats and what\n\
         does not fit into help texts.\n\n\
         | command | what it does |\n|---|---|\n",
    );
    for command in commands {
        let name = command.get_name();
        let _ = writeln!(
            page,
            "| [`{name}`](#{name}) | {} |",
            inline(&about(command)).replace('|', "\\|")
        );
    }
    page.push_str("\n## Options of every command\n\n");
    for option in root.get_arguments().filter(|option| option.is_global_set()) {
        option_row(&mut page, option);
    }
    page.push_str(
        "- `-h`, `--help`: Print help; `-h` prints a summary\n\n\
         ## Exit codes\n\n\
         0 means success, 1 problems found, 2 inconclusive, 3 could not run, 64 invalid arguments, and 130 interrupted.\n\
         [Exit codes](exit-codes.md) has the whole table and how to treat the codes in scripts. Where a command needs more words, its section has a\n\
         table of its own.\n",
    );
    page
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .expect("every command says what it does")
        .to_string()
}

fn section(page: &mut String, command: &Command, parent: &str, level: usize) {
    let name = format!("{parent}{}", command.get_name());
    let _ = write!(page, "\n{} {name}\n\n", "#".repeat(level));
    let text = command.get_long_about().or_else(|| command.get_about());
    let text = text.expect("every command says what it does").to_string();
    for paragraph in text.split("\n\n") {
        let _ = write!(page, "{}\n\n", inline(&sentence(paragraph)));
    }
    let guide = GUIDES.iter().find(|(command, _)| *command == name);
    if let Some((_, links)) = guide {
        let _ = write!(page, "More: {links}.\n\n");
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").lines().map(str::trim);
    let _ = write!(
        page,
        "```text\n{}\n```\n",
        usage.collect::<Vec<_>>().join("\n")
    );
    let arguments = command.get_arguments();
    let arguments: Vec<&Arg> = arguments
        .filter(|one| !one.is_hide_set() && !one.is_global_set())
        .filter(|one| !matches!(one.get_id().as_str(), "help" | "version"))
        .collect();
    let mut headings: Vec<&str> = vec!["Arguments", "Options"];
    for heading in arguments.iter().filter_map(|one| one.get_help_heading()) {
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        let own = arguments.iter().filter(|one| {
            let place = if one.is_positional() {
                "Arguments"
            } else {
                one.get_help_heading().unwrap_or("Options")
            };
            place == heading
        });
        let own: Vec<&&Arg> = own.collect();
        if !own.is_empty() {
            let _ = write!(page, "\n**{heading}**\n\n");
        }
        for one in own {
            option_row(page, one);
        }
    }
    if let Some(after) = command.get_after_help() {
        after_help(page, &after.to_string());
    }
    let prefix = format!("{name} ");
    for part in visible(command) {
        section(page, part, &prefix, level + 1);
    }
}

/// One argument or flag as an item of a list: how it is written, what it is for, its values.
fn option_row(page: &mut String, option: &Arg) {
    let names = option.get_value_names().unwrap_or_default();
    let takes_value = option.get_num_args().is_none_or(|many| many.takes_values());
    let is_optional = option
        .get_num_args()
        .is_some_and(|many| many.min_values() == 0);
    let mut value = String::new();
    if takes_value && !names.is_empty() {
        let shown: Vec<String> = names.iter().map(ToString::to_string).collect();
        value = shown.join(" ");
    }
    let written = if option.is_positional() {
        let many = option
            .get_num_args()
            .is_some_and(|many| many.max_values() > 1);
        format!("`{value}{}`", if many { "..." } else { "" })
    } else {
        let value = match (value.is_empty(), is_optional) {
            (true, _) => String::new(),
            (false, true) => format!("[={value}]"),
            (false, false) => format!(" {value}"),
        };
        let short = option.get_short().map(|short| format!("`-{short}`"));
        let long = option.get_long().map(|long| format!("`--{long}{value}`"));
        let all: Vec<String> = short.into_iter().chain(long).collect();
        all.join(", ")
    };
    let help = option.get_long_help().or_else(|| option.get_help());
    let help = help.unwrap_or_else(|| panic!("{written} is not described"));
    let mut help = inline(&help.to_string().replace("\n\n", " "));
    let values = option.get_possible_values();
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    let is_described = values.iter().any(|value| value.get_help().is_some());
    if takes_value && !values.is_empty() && !is_described {
        let names: Vec<String> = values
            .iter()
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        let _ = write!(help, ". One of {}", names.join(", "));
    }
    let defaults = option.get_default_values().iter();
    let defaults: Vec<String> = defaults
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    if takes_value && !defaults.is_empty() && !option.is_hide_default_value_set() {
        let _ = write!(help, " [default: {}]", inline(&defaults.join(", ")));
    }
    let _ = writeln!(page, "- {written}: {help}");
    if takes_value && is_described {
        for value in values {
            let help = value.get_help().map(ToString::to_string);
            let help = help.map_or(String::new(), |help| format!(": {}", inline(&help)));
            let _ = writeln!(page, "  - `{}`{help}", value.get_name());
        }
    }
}

/// What stands below the flags in the help: examples, exit codes, and other paragraphs.
fn after_help(page: &mut String, text: &str) {
    for paragraph in text.split("\n\n") {
        let (first, rest) = paragraph.split_once('\n').unwrap_or((paragraph, ""));
        match first {
            "Example:" | "Examples:" => {
                let lines: Vec<&str> = rest.lines().map(str::trim).collect();
                let _ = write!(page, "\n{first}\n\n```sh\n{}\n```\n", lines.join("\n"));
            }
            "Exit codes:" => {
                page.push_str("\n| exit code | when |\n|---|---|\n");
                let mut rows: Vec<(&str, String)> = Vec::new();
                for line in rest.lines() {
                    let (word, meaning) = line.trim().split_once(' ').expect("several words");
                    match rows.last_mut() {
                        // A meaning may take several lines.
                        Some((_, row)) if line.starts_with("   ") => {
                            let _ = write!(row, " {}", line.trim());
                        }
                        _ => rows.push((word, meaning.trim().to_owned())),
                    }
                }
                for (code, meaning) in rows {
                    assert!(code.parse::<u8>().is_ok(), "no exit code: {code:?}");
                    let meaning = inline(&meaning).replace('|', "\\|");
                    let _ = writeln!(page, "| {code} | {meaning} |");
                }
            }
            _ => {
                let lines: Vec<&str> = paragraph.lines().map(str::trim).collect();
                let _ = write!(page, "\n{}\n", inline(&sentence(&lines.join(" "))));
            }
        }
    }
}

/// A text with a full stop at its end.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', ':', '!', '?']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// A help text as Markdown: what stands in backticks stays, and nothing else is markup.
fn inline(text: &str) -> String {
    let text = text.replace('\n', " ");
    let mut written = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            written.push('`');
        }
        if index % 2 == 1 {
            written.push_str(part);
        } else {
            for character in part.chars() {
                if matches!(character, '<' | '*' | '\\') {
                    written.push('\\');
                }
                written.push(character);
            }
        }
    }
    written
}
