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
        "# What `proofhouse run` does in this project. Flags of the command win over this file.\n\
         # Check it with: proofhouse validate proofhouse.yaml\n\
         proofhouse: 1\n\n\
         # Who is attacked. `proofhouse run --subject NAME` picks some of them.\n\
         subjects:\n",
    );
    if let Some(command) = &draft.command {
        command_block(&mut out, &mut names, command, draft.mcp_config.as_deref());
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
            "  # A simulated agent. It says nothing about yours: put your own in its place.\n  - {}\n\n",
            to_inline_scalar(simulation)
        );
    }
    for endpoint in &draft.suggested {
        let mut block = String::new();
        endpoint_block(&mut block, &mut names, endpoint, found);
        out.push_str(
            "  # Found on this machine. If it is yours, take the first `#` of these lines away:\n",
        );
        for line in block.lines().filter(|line| !line.is_empty()) {
            let _ = writeln!(out, "  # {}", line.strip_prefix("  ").unwrap_or(line));
        }
        out.push('\n');
    }
    if draft.command.is_none() {
        command_suggestion(&mut out, found);
    }
    documents(&mut out, found);
    let _ = write!(
        out,
        "# How often each attack is tried. Models are not the same twice: more repeats make the answer surer.\n\
         # `proofhouse run --detect 0.2` says how many find a rise by 20 points.\n\
         repeats: {}\n\n\
         # What makes `proofhouse run` fail: exploited, partial, inconclusive, regression, tier=TIER, severity=LEVEL,\n\
         # utility<0.9, exposed<0.8.\n\
         fail_on: [partial]\n\n\
         # Where results go; {{time}} makes a new directory for every campaign. Without it: .proofhouse/results/{{time}}\n\
         # out: results/{{time}}\n\
         # reports: [html, markdown, junit, sarif]\n\n\
         # Findings that you accept for a while: they are reported and do not fail the campaign until the date.\n\
         # accepted:\n\
         #   - {{id: PROOF-001, subject: agent, until: 2027-01-31, reason: \"Fixed in the next release.\"}}\n\n\
         # Compare with an earlier result. With `fail_on: [regression]`, only what clearly got worse is a failure.\n\
         # baseline: baseline/result.json\n",
        draft.repeats
    );
    out
}

fn command_block(
    out: &mut String,
    names: &mut SubjectNames,
    command: &str,
    mcp_config: Option<&str>,
) {
    let _ = write!(
        out,
        "  # A command that is started for every run. {{mcp_url}}, {{a2a_url}}, {{prompt}} and {{port}} are filled in, and\n  \
         # stand in its environment as PROOFHOUSE_MCP_URL and so on.\n  \
         - name: {}\n    command: {}\n",
        names.new_one("agent"),
        to_inline_scalar(command),
    );
    if let Some(config) = mcp_config {
        let _ = write!(
            out,
            "    # {{mcp_config}} is a copy of this file that names the attack's servers. For a command that reads only the\n    \
             # file itself, which is then rewritten and put back: mcp_config: {{file: {file}, in_place: true}}\n    \
             mcp_config: {file}\n",
            file = to_inline_scalar(config)
        );
    }
    out.push_str(
        "    # Secrets do not stand here; this takes one from the environment.\n    \
         # environment:\n    \
         #   MY_API_KEY: ${MY_API_KEY}\n    \
         # serves: ag-ui   # when it is a server: ag-ui, a2a or mcp, at {port}\n    \
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
        "  # The agent of a manifest. {model}\n  \
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
        "  # An agent that runs already and speaks {}. It is attacked one run at a time.\n  \
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
        "    # Where it looks for its MCP server{why}: attacks listen there. Without it, attacks by servers cannot\n    \
         # reach this agent.\n    \
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
        said.push("Its user and password are left out; say with `headers` who you are.".to_owned());
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

fn documents(out: &mut String, found: &DiscoveredProject) {
    out.push_str(
        "# Which attacks. Without `documents` it is the threat library that comes along.\n",
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
    out.push_str(
        "# filters:\n\
         #   protocols: [mcp]\n\
         #   severities: [high, critical]\n\n",
    );
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
