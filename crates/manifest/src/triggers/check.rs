//! What is wrong between a trigger or a schedule and the agent it names.

use proofhouse_source::{Diagnostic, DiagnosticSeverity, Span, did_you_mean};
use serde_json::{Map, Value};

use super::model::{EventTrigger, Schedule};
use crate::{Agent, Catalog};

impl Catalog {
    /// What is wrong between a trigger and its agent.
    #[must_use]
    pub fn check_trigger(&self, trigger: &EventTrigger) -> Vec<Diagnostic> {
        let span = trigger.agent_span;
        match self.agent_of(&trigger.namespace, &trigger.agent, span) {
            Ok(agent) => input_problems(agent, &trigger.inputs, span),
            Err(finding) => vec![*finding],
        }
    }

    /// What is wrong between a schedule and its agent.
    #[must_use]
    pub fn check_schedule(&self, schedule: &Schedule) -> Vec<Diagnostic> {
        let span = schedule.agent_span;
        let agent = match self.agent_of(&schedule.namespace, &schedule.agent, span) {
            Ok(agent) => agent,
            Err(finding) => return vec![*finding],
        };
        let mut findings = input_problems(agent, &schedule.inputs, span);
        let parameters = agent.parameters.properties();
        let default = parameters.get("message").and_then(|of| of.get("default"));
        if !schedule.inputs.contains_key("message") && default.is_none() {
            let message = "nobody says what the task is told".to_owned();
            let help =
                "give `inputs.message`, or a default for `message` in the agent's parameters";
            findings.push(error(span, message, Some(help.to_owned())));
        }
        findings
    }

    fn agent_of(&self, namespace: &str, name: &str, span: Span) -> Result<&Agent, Box<Diagnostic>> {
        let here = || self.agents().filter(|agent| agent.namespace == namespace);
        let found = here().find(|agent| agent.name == name);
        found.map(AsRef::as_ref).ok_or_else(|| {
            let near = did_you_mean(name, here().map(|agent| agent.name.as_str()));
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "give the file that has it, too".to_owned(),
            };
            let message = format!("there is no agent `{name}` in the namespace `{namespace}`");
            Box::new(Diagnostic {
                code: "TM-020",
                ..error(span, message, Some(help))
            })
        })
    }
}

/// Inputs that the agent needs and that are not there, or that do not fit.
fn input_problems(agent: &Agent, inputs: &Map<String, Value>, span: Span) -> Vec<Diagnostic> {
    let mut given = inputs.clone();
    let declared = agent.parameters.properties();
    // The message is an input of every agent, declared or not.
    if !declared.contains_key("message") {
        given.shift_remove("message");
    } else if !given.contains_key("message") {
        // A trigger may start a task without one, and a schedule is checked for it above.
        given.insert("message".to_owned(), Value::Null);
    }
    let problems = agent.parameters.complete(given).err().unwrap_or_default();
    let of_message = |problem: &String| problem.starts_with("message:");
    let problems = problems.into_iter().filter(|problem| !of_message(problem));
    let finding = |problem: String| {
        let message = format!("the inputs do not fit `{}`: {problem}", agent.name);
        error(span, message, None)
    };
    problems.map(finding).collect()
}

fn error(span: Span, message: String, help: Option<String>) -> Diagnostic {
    Diagnostic {
        severity: DiagnosticSeverity::Error,
        code: "TM-030",
        path: None,
        span: Some(span),
        message,
        help,
    }
}
