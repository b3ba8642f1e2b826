//! The `proofhouse.yaml` that `proofhouse init` writes: what was found, and comments that teach the rest.

use std::fmt::Write;

use proofhouse_source::{printable_line, to_inline_scalar};
use proofhouse_subjects::discover::{AgentFile, DiscoveredProject, Spoken};
use proofhouse_subjects::without_credentials;

/// How much of a text from outside a comment shows.
const MAX_COMMENT: usize = 80;
/// How much of a parameter's name is in the name of its variable.
const MAX_VARIABLE: usize = 40;

/// What goes into the file.
#[derive(Debug, Default)]
pub struct Draft {
    /// A command of the user's.
    pub command: Option<String>,
    /// Agents of manifests.
    pub agents: Vec<AgentFile>,
    /// Agents that run already.
    pub endpoints: Vec<Spoken>,
    /// Agents that nobody named or chose: they are not attacked until somebody says so.
    pub suggested: Vec<Spoken>,
    /// A simulation that was asked for by its name.
    pub simulation: Option<String>,
    /// The configuration of MCP servers that the command reads.
    pub mcp_config: Option<String>,
    /// Whether the command gets a copy of the project for every run, because it reads that configuration there.
    pub copies_project: bool,
    /// The model of agents of manifests.
    pub model: Option<String>,
    /// How often each attack is tried.
    pub repeats: u32,
}

impl Draft {
    /// Everything that was found.
    #[must_use]
    pub fn of_all(command: Option<String>, agents: Vec<AgentFile>, endpoints: Vec<Spoken>) -> Self {
        Self {
            command,
            agents,
            endpoints,
            repeats: 1,
            ..Self::default()
        }
    }

    /// The same, with agents that were only found running as suggestions.
    #[must_use]
    pub fn without_strangers(mut self) -> Self {
        self.suggested.append(&mut self.endpoints);
        self
    }

    /// Whether the only subject is a command that nobody said more of than where its MCP servers are.
    fn is_mcp_client(&self) -> bool {
        let is_command = |command: &String| {
            !["a2a_url", "port"]
                .iter()
                .any(|word| command.contains(&format!("{{{word}}}")))
        };
        self.command.as_ref().is_some_and(is_command)
            && self.agents.is_empty()
            && self.endpoints.is_empty()
            && self.suggested.is_empty()
            && self.simulation.is_none()
    }

    /// Whether there is nobody to test.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.command.is_none()
            && self.simulation.is_none()
            && self.agents.is_empty()
            && self.endpoints.is_empty()
    }
}

/// The text of the file.
#[must_use]
pub fn text(draft: &Draft, found: &DiscoveredProject) -> String {
    let mut names = SubjectNames::default();
    let mut out = String::from(
        "# Settings for `proofhouse run` in this directory. Command-line flags override them.\n\
         # Check it with: proofhouse validate proofhouse.yaml\n\
         proofhouse: 1\n\n\
         # The agents to attack. `proofhouse run --subject NAME` attacks only one of them.\n\
         subjects:\n",
    );
    if let Some(command) = &draft.command {
        command_block(&mut out, &mut names, command, draft);
    }
    for agent in &draft.agents {
        agent_block(&mut out, &mut names, agent, draft.model.as_deref());
    }
    for endpoint in &draft.endpoints {
        endpoint_block(&mut out, &mut names, endpoint, found);
    }
    if let Some(simulation) = &draft.simulation {
        let _ = write!(
            out,
            "  # A simulated agent. It says nothing about your own agent: replace it.\n  - {}\n\n",
            to_inline_scalar(simulation)
        );
    }
    for endpoint in &draft.suggested {
        let mut block = String::new();
        endpoint_block(&mut block, &mut names, endpoint, found);
        out.push_str(
            "  # Found running on this machine. If it is your agent, uncomment these lines:\n",
        );
        for line in block.lines().filter(|line| !line.is_empty()) {
            let _ = writeln!(out, "  # {}", line.strip_prefix("  ").unwrap_or(line));
        }
        out.push('\n');
    }
    if draft.command.is_none() {
        command_suggestion(&mut out, found);
    }
    documents(&mut out, draft, found);
    let _ = write!(
        out,
        "# How often to run each attack. Models do not always answer the same, so more repeats give a more reliable result.\n\
         # `proofhouse run --detect 0.2` prints how many repeats are needed to detect a rise of 20 percentage points.\n\
         repeats: {}\n\n\
         # When `proofhouse run` fails: exploited, partial (or worse), inconclusive, regression, tier=TIER,\n\
         # severity=LEVEL, utility<0.9, exposed<0.8.\n\
         fail_on: [partial]\n\n\
         # Where to write results; {{time}} makes a new directory for every campaign. Default: .proofhouse/results/{{time}}\n\
         # out: results/{{time}}\n\
         # reports: [html, markdown, junit, sarif]\n\n\
         # Findings that you accept until a date: they are reported, but do not fail the campaign.\n\
         # accepted:\n\
         #   - {{id: PROOF-001, subject: agent, until: 2027-01-31, reason: \"Fixed in the next release.\"}}\n\n\
         # Compare with an earlier result. With `fail_on: [regression]`, only a clear regression fails.\n\
         # baseline: baseline/result.json\n",
        draft.repeats
    );
    out
}

fn command_block(out: &mut String, names: &mut SubjectNames, command: &str, draft: &Draft) {
    let _ = write!(
        out,
        "  # A command that is started for every run. {{mcp_url}}, {{a2a_url}}, {{prompt}} and {{port}} are replaced, and are\n  \
         # also in its environment as PROOFHOUSE_MCP_URL and so on.\n  \
         - name: {}\n    command: {}\n",
        names.new_one("agent"),
        to_inline_scalar(command),
    );
    if let Some(config) = &draft.mcp_config {
        let file = to_inline_scalar(config);
        let _ = if draft.copies_project {
            write!(
                out,
                "    # The command reads this file in the directory where it runs. So each run gets a copy of the project, in which\n    \
                 # the file names the attack's servers.\n    \
                 copy_of: .\n    \
                 mcp_config: {file}\n"
            )
        } else {
            write!(
                out,
                "    # {{mcp_config}} is a copy of this file with the attack's servers. If the command reads only the file itself,\n    \
             # let it be changed and restored for each run: mcp_config: {{file: {file}, in_place: true}}\n    \
             mcp_config: {file}\n"
            )
        };
    }
    out.push_str(
        "    # Do not put secrets into this file. This reads one from an environment variable:\n    \
         # environment:\n    \
         #   MY_API_KEY: ${MY_API_KEY}\n    \
         # serves: ag-ui   # if the command is a server at {port}: ag-ui, a2a or mcp\n    \
         # deadline: 3m\n\n",
    );
}

fn agent_block(out: &mut String, names: &mut SubjectNames, agent: &AgentFile, given: Option<&str>) {
    let model = match &agent.model {
        Some(model) => format!("Its manifest names the model {}.", comment(model)),
        None => "Its manifest names no model.".to_owned(),
    };
    let _ = write!(
        out,
        "  # An agent described by a manifest. {model}\n  \
         - name: {}\n    manifest: {}\n",
        names.new_one(&agent.agent),
        to_inline_scalar(&agent.file),
    );
    out.push_str(&match given {
        Some(model) => format!("    model: {}\n\n", to_inline_scalar(model)),
        None => {
            "    # model: openai:MODEL   # another model; its key is read from OPENAI_API_KEY\n\n"
                .to_owned()
        }
    });
}

fn endpoint_block(
    out: &mut String,
    names: &mut SubjectNames,
    endpoint: &Spoken,
    found: &DiscoveredProject,
) {
    let _ = write!(
        out,
        "  # A running agent that speaks {}. Runs are made one at a time.\n  \
         - name: {}\n    endpoint:\n",
        endpoint.protocols(),
        names.new_one("running"),
    );
    for (key, url) in [
        ("ag_ui", &endpoint.ag_ui),
        ("a2a", &endpoint.a2a),
        ("mcp", &endpoint.mcp),
    ] {
        if let Some(url) = url {
            let (url, left_out) = without_secrets(url);
            let _ = writeln!(out, "      {key}: {}", to_inline_scalar(&url));
            for line in left_out {
                let _ = writeln!(out, "      # {line}");
            }
        }
    }
    let listens = found.mcp_configs.iter().find_map(|config| {
        let address = config.listens?;
        Some((
            address.to_string(),
            format!(", as {} says", comment(&config.file)),
        ))
    });
    let (address, why) = listens.unwrap_or_else(|| ("127.0.0.1:8080".to_owned(), String::new()));
    let _ = write!(
        out,
        "    # The address where the agent expects its MCP server{why}. The attack listens there. Without it, attacks\n    \
         # that come from servers are skipped.\n    \
         # listen:\n    \
         #   mcp: {address}\n    \
         # headers:\n    \
         #   Authorization: Bearer ${{MY_TOKEN}}\n\n"
    );
}

/// A URL as it may stand in the file, and what to say of what was left out. The values of a query are often
/// keys, so variables stand for them; who one is belongs into a header.
fn without_secrets(url: &str) -> (String, Vec<String>) {
    let mut said = Vec::new();
    let whole = url.split('#').next().unwrap_or_default();
    let (place, query) = match whole.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (whole, None),
    };
    let mut written = without_credentials(place);
    if written != place && place.contains('@') {
        said.push("User name and password are left out; use `headers` to authenticate.".to_owned());
    }
    let parameters = query.into_iter().flat_map(|query| query.split('&'));
    for (number, parameter) in parameters.filter(|one| !one.is_empty()).enumerate() {
        let (name, is_named) = match parameter.split_once('=') {
            Some((name, _)) => (name, true),
            None => ("QUERY", false),
        };
        // With a word before it, so that it is none that everybody has, such as PATH.
        let upper = name.chars().take(MAX_VARIABLE);
        let upper = upper.map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        });
        let variable = format!("AGENT_{}", upper.collect::<String>());
        written.push(if number == 0 { '?' } else { '&' });
        if is_named {
            let _ = write!(written, "{}=${{{variable}}}", name.replace("${", "$${"));
        } else {
            let _ = write!(written, "${{{variable}}}");
        }
        said.push(format!(
            "Set {variable} where proofhouse runs: what stands in a query may be a secret."
        ));
    }
    (written, said)
}

/// How a command of one's own would be written.
fn command_suggestion(out: &mut String, found: &DiscoveredProject) {
    out.push_str(
        "  # A command of yours, started for every run, with the attack's addresses in place of {mcp_url} and so on:\n  \
         # - name: agent\n",
    );
    match found.commands.as_slice() {
        [] => out.push_str("  #   command: python agent.py --mcp {mcp_url} {prompt}\n"),
        commands => {
            for (place, hint) in commands.iter().enumerate() {
                let or = if place == 0 { "" } else { "or " };
                let command = to_inline_scalar(&hint.command);
                let _ = writeln!(
                    out,
                    "  #   command: {}   # {or}from {}",
                    comment(&command),
                    comment(&hint.file)
                );
            }
        }
    }
    for config in &found.mcp_configs {
        let _ = writeln!(
            out,
            "  #   mcp_config: {}   # then {{mcp_config}} is a copy that names the attack's servers",
            comment(&to_inline_scalar(&config.file))
        );
    }
    out.push('\n');
}

fn documents(out: &mut String, draft: &Draft, found: &DiscoveredProject) {
    out.push_str(
        "# The attacks to run. Without `documents`, these are the attacks of the built-in library.\n",
    );
    match found.documents.as_slice() {
        [] => out.push_str("# documents: [attacks/]\n"),
        directories => {
            for (place, directory) in directories.iter().enumerate() {
                if place == 0 {
                    out.push_str("# documents:\n");
                }
                let _ = writeln!(out, "#   - {}", comment(&to_inline_scalar(directory)));
            }
        }
    }
    out.push_str(if draft.is_mcp_client() {
        "filters:\n  \
           # Only attacks by MCP servers: the command does not use {a2a_url}.\n  \
           protocols: [mcp]\n  \
           # severities: [high, critical]\n\n"
    } else {
        "# filters:\n\
         #   protocols: [mcp]\n\
         #   severities: [high, critical]\n\n"
    });
}

/// A text from outside that ends neither its line nor the comment.
fn comment(text: &str) -> String {
    let text: String = text.chars().take(MAX_COMMENT).collect();
    printable_line(&text)
}

/// Names of subjects, each of them once.
#[derive(Default)]
struct SubjectNames(Vec<String>);

impl SubjectNames {
    fn new_one(&mut self, wanted: &str) -> String {
        let plain: String = wanted
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_')
            .take(40)
            .collect();
        let plain = plain.trim_start_matches(['-', '_']);
        let plain = if plain.is_empty() { "agent" } else { plain };
        let mut name = plain.to_owned();
        let mut count = 1;
        while self.0.contains(&name) {
            count += 1;
            name = format!("{plain}-{count}");
        }
        self.0.push(name.clone());
        to_inline_scalar(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, ConfigVariables};
    use proofhouse_subjects::discover::{Hint, McpConfigFile};

    /// The findings about a text, with no file of it there.
    fn codes(text: &str) -> Vec<&'static str> {
        let nowhere = std::path::Path::new("/nowhere");
        let (_, findings) = config::read(text, nowhere, ConfigVariables::Unread, &|_| true);
        let mut codes: Vec<&'static str> = findings.iter().map(|finding| finding.code).collect();
        codes.retain(|code| *code != "PC-011");
        codes
    }

    fn agent(name: &str, file: &str) -> AgentFile {
        AgentFile {
            file: file.to_owned(),
            agent: name.to_owned(),
            model: None,
        }
    }

    #[test]
    fn keys_in_urls_are_not_written() {
        for (url, written) in [
            ("http://h:1/a", "http://h:1/a"),
            ("http://h/?api_key=S3", "http://h/?api_key=${AGENT_API_KEY}"),
            (
                "http://h/?a=S3&b&#S3",
                "http://h/?a=${AGENT_A}&${AGENT_QUERY}",
            ),
            ("http://u:S3@h/x", "http://h/x"),
        ] {
            let (found, said) = without_secrets(url);
            assert_eq!(found, written);
            assert_eq!(said.is_empty(), url == written, "{said:?}");
            assert!(!said.concat().contains("S3"), "{said:?}");
        }
    }

    #[test]
    fn a_simulation_that_was_asked_for_is_written() {
        let mut draft = Draft::of_all(None, Vec::new(), Vec::new());
        assert!(draft.is_empty());
        draft.simulation = Some("sim:careful".to_owned());
        assert!(!draft.is_empty());
        let text = text(&draft, &DiscoveredProject::default());
        assert_eq!(codes(&text), [""; 0]);
        insta::assert_snapshot!("init-simulation", text);
    }

    #[test]
    fn everything_that_was_found_is_in_it() {
        let found = DiscoveredProject {
            mcp_configs: vec![McpConfigFile {
                file: ".mcp.json".to_owned(),
                servers: 2,
                names: Vec::new(),
                listens: "127.0.0.1:8931".parse().ok(),
            }],
            documents: vec!["attacks".to_owned()],
            commands: vec![Hint {
                file: "pyproject.toml".to_owned(),
                command: "my-agent {prompt}".to_owned(),
            }],
            ..DiscoveredProject::default()
        };
        let running = Spoken {
            a2a: Some("http://127.0.0.1:9999/".to_owned()),
            ..Spoken::default()
        };
        let agents = vec![
            agent("clerk", "agents/clerk.yaml"),
            agent("clerk", "b/clerk.yaml"),
        ];
        let suggested = Spoken {
            mcp: Some("http://127.0.0.1:8000/mcp".to_owned()),
            ..Spoken::default()
        };
        let mut draft = Draft::of_all(None, agents, vec![running]);
        draft.suggested.push(suggested);
        let whole = text(&draft, &found);
        let uncommented = whole.replace("  # - name: running-2\n", "  - name: running-2\n");
        let uncommented = uncommented.replace("  #   endpoint:\n", "    endpoint:\n");
        let uncommented = uncommented.replace("  #     mcp: http", "      mcp: http");
        assert_ne!(uncommented, whole);
        assert_eq!(codes(&uncommented), [""; 0], "{uncommented}");
        assert_eq!(codes(&whole), [""; 0]);
        insta::assert_snapshot!("init-everything", whole);
        let mut command = Draft::of_all(
            Some("my-agent \"{prompt}\" # x".to_owned()),
            Vec::new(),
            Vec::new(),
        );
        command.mcp_config = Some(".mcp.json".to_owned());
        let whole = text(&command, &found);
        assert_eq!(codes(&whole), [""; 0]);
        insta::assert_snapshot!("init-command", whole);
        command.copies_project = true;
        let whole = text(&command, &found);
        assert_eq!(codes(&whole), [""; 0]);
        insta::assert_snapshot!("init-command-in-a-copy", whole);
    }

    #[test]
    fn names_from_outside_stay_where_they_are_put() {
        let hostile = "x\nfail_on: []\n# \"': {y}\u{2028}";
        let found = DiscoveredProject {
            mcp_configs: vec![McpConfigFile {
                file: hostile.to_owned(),
                servers: 1,
                names: Vec::new(),
                listens: None,
            }],
            documents: vec![hostile.to_owned()],
            commands: vec![Hint {
                file: hostile.to_owned(),
                command: hostile.to_owned(),
            }],
            ..DiscoveredProject::default()
        };
        let mut odd = agent(hostile, hostile);
        odd.model = Some(hostile.to_owned());
        let draft = Draft::of_all(None, vec![odd], Vec::new());
        let whole = text(&draft, &found);
        assert_eq!(codes(&whole), [""; 0], "{whole}");
        assert!(!whole.lines().any(|line| line == "fail_on: []"), "{whole}");
    }
}
