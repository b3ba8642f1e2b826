//! The documents of the probes, and what is said to the subject in them.

use proofhouse_detect::EXTENSION_FIELD;
use proofhouse_oatf::{Mode, load};
use proofhouse_range::{CarrierKind, PayloadField};
use serde_json::Value;

use super::nonce::Nonce;
use crate::canaries::{CanariesError, CanaryValues, replace};
use crate::document::{Script, UnreadableDocument};

/// What stands for the halves of the code, and for what a client says, in the documents.
/// How the sentence with the code begins: what is to stand before it is put there.
const BEGIN: &str = "First half: ";
const FIRST: &str = "NONCE-FIRST";
const SECOND: &str = "NONCE-SECOND";
const SAID: &str = "PROBE-PROMPT";

/// A channel that can be probed.
struct ProbeTemplate {
    mode: Mode,
    kind: CarrierKind,
    field: PayloadField,
    /// What people call it.
    name: &'static str,
    /// The document of its probe.
    document: &'static str,
}

macro_rules! templates {
    ($($mode:ident $kind:ident $field:ident $name:literal $file:literal,)*) => {
        /// Every channel that can be probed.
        static TEMPLATES: &[ProbeTemplate] = &[
            $(ProbeTemplate {
                mode: Mode::$mode,
                kind: CarrierKind::$kind,
                field: PayloadField::$field,
                name: $name,
                document: include_str!(concat!("templates/", $file, ".yaml")),
            },)*
        ];
    };
}

templates! {
    McpServer Instructions Text "server instructions" "mcp_server_instructions",
    McpServer ToolListed Text "tool descriptions" "mcp_server_tool_listed",
    McpServer ToolListed InputSchema "input schemas of tools" "mcp_server_tool_schema",
    McpServer ToolListed Title "titles of tools" "mcp_server_tool_title",
    McpServer ToolListed Annotations "annotations of tools" "mcp_server_tool_annotations",
    McpServer ToolListed Meta "metadata of tools" "mcp_server_tool_meta",
    McpServer ToolResponse Text "tool results" "mcp_server_tool_response",
    McpServer ToolResponse Structured "structured tool results" "mcp_server_structured_result",
    McpServer ResourceListed Text "resource descriptions" "mcp_server_resource_listed",
    McpServer Resource Text "resources" "mcp_server_resource",
    McpServer PromptListed Text "prompt descriptions" "mcp_server_prompt_listed",
    McpServer Prompt Text "prompts" "mcp_server_prompt",
    McpServer Elicitation Text "elicitations" "mcp_server_elicitation",
    McpServer Sampling Text "sampling requests" "mcp_server_sampling",
    McpServer Notification Text "notifications" "mcp_server_notification",
    A2aServer Card Text "agent cards" "a2a_server_card",
    A2aServer Card Description "descriptions in agent cards" "a2a_server_card_description",
    A2aServer TaskResponse Text "answers of other agents" "a2a_server_task_response",
    A2aClient Message Text "A2A messages" "a2a_client_message",
    McpClient Message Text "MCP calls of the agent" "mcp_client_message",
    AgUiClient Message Text "AG-UI messages" "ag_ui_client_message",
    AgUiClient Context Text "AG-UI context" "ag_ui_client_context",
    AgUiClient State Text "AG-UI state" "ag_ui_client_state",
    AgUiClient ToolListed Text "frontend tool descriptions" "ag_ui_client_tool_listed",
    AgUiClient ToolListed InputSchema "parameters of frontend tools" "ag_ui_client_tool_parameters",
    AgUiClient FrontendToolResult Text "frontend tool results" "ag_ui_client_frontend_tool_result",
}

/// The template of a channel.
fn template(mode: &Mode, kind: CarrierKind, field: PayloadField) -> Option<&'static ProbeTemplate> {
    let mut known = TEMPLATES.iter();
    known
        .find(|template| template.mode == *mode && template.kind == kind && template.field == field)
}

/// What people call a channel that can be probed.
pub(super) fn channel_name(
    mode: &Mode,
    kind: CarrierKind,
    field: PayloadField,
) -> Option<&'static str> {
    template(mode, kind, field).map(|template| template.name)
}

/// How often a subject is asked: a model may be clumsy once.
pub(super) const ATTEMPTS: [&str; 2] = ["ask", "ask_again"];

/// Why a probe cannot be played.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeTemplateError {
    #[error("no probe is known for it")]
    None,
    #[error(transparent)]
    Unreadable(#[from] UnreadableDocument),
    #[error(transparent)]
    Values(#[from] CanariesError),
    #[error("the probe has no `{0}`")]
    NothingAsked(&'static str),
    #[error("a payload stands behind {0} characters, which no probe has")]
    TooDeep(usize),
}

/// The most text that stands before a code.
const MAX_DEPTH: usize = 500_000;

/// A text without meaning that has so many characters, or a few more.
fn preface(depth: usize) -> String {
    let mut text = String::new();
    let mut number = 1;
    while text.len() < depth {
        text.push_str(&format!("Line {number} of the preface says nothing. "));
        number += 1;
    }
    text
}

/// The probe of a channel with this code in it, behind so many characters of other text, in one of the [`ATTEMPTS`].
pub(super) fn script(
    mode: &Mode,
    (kind, field): (CarrierKind, PayloadField),
    depth: usize,
    nonce: &Nonce,
    attempt: &'static str,
) -> Result<Script, ProbeTemplateError> {
    let template = template(mode, kind, field).ok_or(ProbeTemplateError::None)?;
    let document = load(template.document).map_err(|errors| match errors.into_iter().next() {
        Some(error) => UnreadableDocument::Invalid(Box::new(error)),
        None => UnreadableDocument::Told,
    })?;
    if depth > MAX_DEPTH {
        return Err(ProbeTemplateError::TooDeep(depth));
    }
    let begin = format!("{}{BEGIN}", preface(depth));
    let values = [
        (BEGIN, &begin),
        (FIRST, &nonce.first),
        (SECOND, &nonce.second),
    ];
    let values = values.map(|(literal, value)| (literal.to_owned(), value.clone()));
    let document = replace(&document.document, &CanaryValues::from(values))?;
    let ours = document.attack.extensions.get(EXTENSION_FIELD);
    let asked = ours.and_then(|ours| ours.get("probe")?.get(attempt));
    let asked = asked.and_then(Value::as_str).map(str::to_owned);
    let asked = asked.ok_or(ProbeTemplateError::NothingAsked(attempt))?;
    let said = CanaryValues::from([(SAID.to_owned(), asked.clone())]);
    Ok(Script {
        document: replace(&document, &said)?,
        // A client says it itself.
        prompts: if mode.is_client() {
            Vec::new()
        } else {
            vec![asked]
        },
        success: None,
        twin: None,
        canaries: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofhouse_detect::CanaryMatcher;
    use proofhouse_oatf::to_value;
    use proofhouse_range::payload_channels;

    #[test]
    fn every_probe_has_its_code_in_the_field_it_is_about_and_nowhere_joined() {
        let nonce = Nonce::new(1, "test");
        let other = Nonce::new(2, "test");
        let joined = CanaryMatcher::new([nonce.joined()]).unwrap();
        for template in TEMPLATES {
            let ProbeTemplate {
                mode, kind, field, ..
            } = template;
            let place = (*kind, *field);
            for attempt in ATTEMPTS {
                let script = script(mode, place, 0, &nonce, attempt).unwrap();
                let text = to_value(&script.document).to_string();
                assert!(!text.contains("NONCE") && !text.contains(SAID), "{text}");
                for half in [&nonce.first, &nonce.second] {
                    assert!(text.contains(half.as_str()), "{mode} {kind:?}");
                }
                assert!(joined.find_in_text(&text).is_empty(), "{text}");
                let same = script_of(mode, place, &other, attempt);
                // What the range counts as a carrier says where the code is.
                let found = payload_channels(&script.document, Some(&same.document));
                if !found.is_empty() {
                    assert!(
                        found.contains(&(mode.clone(), *kind, *field)),
                        "{found:?} for {place:?}"
                    );
                    assert_eq!(found.len(), 1, "{found:?} for {place:?}");
                }
                let asked = script.prompts.concat();
                assert_eq!(asked.is_empty(), mode.is_client());
                assert!(!asked.contains(&nonce.first), "{asked}");
            }
        }
    }

    fn script_of(
        mode: &Mode,
        place: (CarrierKind, PayloadField),
        nonce: &Nonce,
        attempt: &'static str,
    ) -> Script {
        script(mode, place, 0, nonce, attempt).unwrap()
    }

    #[test]
    fn a_code_stands_as_deep_as_the_payload() {
        let nonce = Nonce::new(1, "test");
        for template in TEMPLATES {
            let place = (template.kind, template.field);
            let deep = script(&template.mode, place, 700, &nonce, "ask").unwrap();
            let text = to_value(&deep.document).to_string();
            let line = text.find("Line 1 of the preface").unwrap();
            let code = text.find(&nonce.first).unwrap();
            assert!(code >= line + 700, "{text}");
        }
        let place = (CarrierKind::ToolResponse, PayloadField::Text);
        let deep = script(&Mode::McpServer, place, MAX_DEPTH + 1, &nonce, "ask");
        assert!(matches!(deep, Err(ProbeTemplateError::TooDeep(_))));
    }

    #[test]
    fn what_has_no_probe_is_told() {
        let nonce = Nonce::new(1, "test");
        let none = script(
            &Mode::A2aServer,
            (CarrierKind::Notification, PayloadField::Text),
            0,
            &nonce,
            "ask",
        );
        assert_eq!(none.unwrap_err().to_string(), "no probe is known for it");
    }
}
