//! Which of the agents that were found are written down: those that could be started, and nobody else.

use std::io;

use proofhouse_source::printable_line;
use proofhouse_subjects::discover::{
    AgentFile, DiscoveredProject, NotStartable, ProjectPrograms, Spoken, Startable,
};
use proofhouse_subjects::without_credentials;

use super::ask::Prompter;
use crate::config::Draft;

/// Agents that could be tested, and why others cannot be.
#[derive(Debug, Default)]
pub struct Candidates {
    /// Agents of manifests.
    pub agents: Vec<AgentFile>,
    /// Agents that run.
    pub endpoints: Vec<Spoken>,
    /// Agents that a command starts.
    pub commands: Vec<Startable>,
    /// What was found and cannot be started, each with what to do.
    pub unfit: Vec<String>,
}

impl Candidates {
    /// Sorts what was found. `model` is what agents of manifests run on that name none.
    #[must_use]
    pub fn new(
        found: &mut DiscoveredProject,
        endpoints: Vec<Spoken>,
        programs: &ProjectPrograms<'_>,
        model: Option<&str>,
    ) -> Self {
        let mut candidates = Self {
            endpoints,
            ..Self::default()
        };
        for agent in std::mem::take(&mut found.agents) {
            if agent.model.is_some() || model.is_some() {
                candidates.agents.push(agent);
            } else {
                candidates.unfit.push(format!(
                    "{} has the agent {}, but names no model. Add `model:` to it, or name one: proofhouse init --model \
                     openai:MODEL",
                    agent.file, agent.agent
                ));
            }
        }
        for framework in &found.frameworks {
            candidates.note(programs.framework(framework));
        }
        for config in &found.mcp_configs {
            if let Some(client) = programs.mcp_client(&config.file, &config.names) {
                candidates.note(client);
            }
        }
        candidates
    }

    fn note(&mut self, found: Result<Startable, NotStartable>) {
        match found {
            Ok(command) => self.commands.push(command),
            Err(why) => self.unfit.push(why.to_string()),
        }
    }

    /// What is written when nobody is asked: agents of manifests, or else the first command. Agents that were only found
    /// running are suggested; they may be somebody else's.
    #[must_use]
    pub fn without_asking(self) -> (Draft, Option<Startable>) {
        let mut draft = Draft {
            agents: self.agents,
            suggested: self.endpoints,
            repeats: 1,
            ..Draft::default()
        };
        let command = if draft.agents.is_empty() {
            self.commands.into_iter().next()
        } else {
            None
        };
        if let Some(command) = &command {
            draft.command = Some(command.command.clone());
            draft.mcp_config.clone_from(&command.mcp_config);
            draft.copies_project = command.copies_project;
        }
        (draft, command)
    }

    /// Lets somebody choose among what was found. `None` when the input ends before all is answered.
    pub fn ask<R: io::BufRead, W: io::Write>(
        self,
        asked: &mut Prompter<R, W>,
        hint: Option<&str>,
    ) -> Option<(Draft, Option<Startable>)> {
        let mut draft = Draft::default();
        let mut choices: Vec<String> = Vec::new();
        let commands = self.commands.iter();
        choices.extend(commands.map(|command| printable_line(&command.what)));
        for agent in &self.agents {
            let text = format!("the agent {} of {}", agent.agent, agent.file);
            choices.push(printable_line(&text));
        }
        for endpoint in &self.endpoints {
            let place = without_credentials(endpoint.place());
            choices.push(printable_line(&format!("the agent at {place}")));
        }
        choices.push("another agent, started by a command".to_owned());
        let chosen = asked.choice("Which agent do you want to test?", &choices)?;
        let agents = self.commands.len();
        let endpoints = agents + self.agents.len();
        let mut start = None;
        if chosen < agents {
            start = self.commands.into_iter().nth(chosen);
        } else if chosen < endpoints {
            draft
                .agents
                .extend(self.agents.into_iter().nth(chosen - agents));
        } else if chosen < choices.len() - 1 {
            let endpoint = self.endpoints.into_iter().nth(chosen - endpoints);
            draft.endpoints.extend(endpoint);
        } else {
            let default = hint.unwrap_or("python agent.py --mcp {mcp_url} {prompt}");
            let question =
                "Which command starts it? {mcp_url}, {a2a_url} and {prompt} are replaced:";
            draft.command = Some(asked.text(question, default, super::is_command)?);
        }
        if let Some(start) = &start {
            draft.command = Some(start.command.clone());
            draft.mcp_config.clone_from(&start.mcp_config);
            draft.copies_project = start.copies_project;
        }
        let repeats = asked.text("How often should each attack run?", "1", |text| match text
            .parse::<u32>()
        {
            Ok(1..=10_000) => Ok(()),
            _ => Err("write a number from 1 to 10000".to_owned()),
        })?;
        draft.repeats = repeats.parse().unwrap_or(1);
        Some((draft, start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Candidates {
        let agent = AgentFile {
            file: "a.yaml".to_owned(),
            agent: "clerk".to_owned(),
            model: Some("openai:x".to_owned()),
        };
        let running = Spoken {
            mcp: Some("http://127.0.0.1:1/mcp".to_owned()),
            ..Spoken::default()
        };
        let command = Startable {
            what: "agent of agent.py".to_owned(),
            command: "python3 proofhouse_agent.py {prompt}".to_owned(),
            adapter: None,
            mcp_config: None,
            copies_project: false,
            notes: Vec::new(),
        };
        Candidates {
            agents: vec![agent],
            endpoints: vec![running],
            commands: vec![command],
            unfit: Vec::new(),
        }
    }

    #[test]
    fn answers_decide_what_is_written() {
        let after = |input: &str| {
            let mut asked = Prompter {
                input: input.as_bytes(),
                output: Vec::new(),
            };
            let (draft, start) = all().ask(&mut asked, Some("npm start"))?;
            let (agents, endpoints) = (draft.agents.len(), draft.endpoints.len());
            Some((
                agents,
                endpoints,
                draft.command,
                draft.repeats,
                start.is_some(),
            ))
        };
        let adapter = Some("python3 proofhouse_agent.py {prompt}".to_owned());
        assert_eq!(after("\n\n"), Some((0, 0, adapter, 1, true)));
        assert_eq!(after("2\n\n"), Some((1, 0, None, 1, false)));
        assert_eq!(after("3\n5\n"), Some((0, 1, None, 5, false)));
        let hinted = Some("npm start".to_owned());
        assert_eq!(after("4\n\n0\n3\n"), Some((0, 0, hinted, 3, false)));
        assert_eq!(
            after("4\n'x\nx y\n\n"),
            Some((0, 0, Some("x y".to_owned()), 1, false))
        );
        for cut in ["", "4\n", "4\n\n", "9\n"] {
            assert_eq!(after(cut), None, "{cut:?} ends before the last answer");
        }
    }

    #[test]
    fn nobody_who_was_not_named_is_attacked_without_asking() {
        let (draft, start) = all().without_asking();
        assert_eq!((draft.agents.len(), draft.suggested.len()), (1, 1));
        assert!(draft.endpoints.is_empty() && draft.command.is_none() && start.is_none());
        let mut candidates = all();
        candidates.agents.clear();
        let (draft, start) = candidates.without_asking();
        assert!(draft.command.is_some() && start.is_some());
        let mut candidates = all();
        candidates.agents.clear();
        candidates.commands.clear();
        assert!(candidates.without_asking().0.is_empty());
    }
}
