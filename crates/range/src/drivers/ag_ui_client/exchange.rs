//! One exchange: an input, the agent's events, and follow-up runs for what the agent asks back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use proofhouse_detect::read_lenient;
use proofhouse_oatf::Direction;
use proofhouse_protocol::EVENT_STREAM;
use proofhouse_protocol::ag_ui::{AgUiEventType, complete_input};
use proofhouse_wire::client::{ClientError, StreamedResponse};
use serde_json::{Value, json};

use crate::actor::ActorContext;
use crate::branches;
use crate::driver::{ActorError, ActorErrorKind};
use crate::drivers::client::dispatch;
use crate::drivers::client::post::Poster;
use crate::exposure::CarrierKind;
use crate::facts::UnseenKind;
use crate::phases::PhaseView;

use super::INPUT;
use super::input::{AgUiClientState, allows, carriers, follow_up, tool_message, tool_schemas};
use super::names::EventNames;
use super::reader::{AgUiEventReader, AgUiOutcome, SeenEvent, text};

/// Runs that follow an input, so that an agent that always asks back comes to an end.
const MAX_FOLLOW_UPS: usize = 10;

/// Calls whose start is remembered for the answer.
const MAX_STARTS: usize = 1_000;

/// After the run has ended, the stream has so long to end, too.
const TAIL: Duration = Duration::from_millis(200);

/// What is kept of an answer that is no stream of events.
const MAX_BODY_TEXT: usize = 64 << 10;

/// The agent, as a frontend knows it.
pub(super) struct AgUiAgent {
    context: ActorContext,
    poster: Poster,
    names: EventNames,
    /// Whether it ever answered.
    met: bool,
}

/// The start of a call, and the phase that answers it.
type CallStart = (Value, Arc<PhaseView>);

/// The starts of the calls with an id, in their order.
type Starts = HashMap<String, Vec<CallStart>>;

/// The start of a call, of those with its id the one with this number; the last where it started once and goes on.
fn start_of<'s>(starts: &'s Starts, call: &str, number: usize) -> Option<&'s CallStart> {
    let starts = starts.get(call)?;
    starts.get(number).or(starts.last())
}

/// A tool whose result an input carries, and what of the document it is.
struct AnsweredTool {
    name: String,
    phase: Arc<PhaseView>,
    branch: Value,
}

/// An input that was posted.
struct SentInput<'i> {
    /// Its number in the trace: what it carries went out with it, whatever was recorded until the agent answers.
    message: u64,
    phase: &'i PhaseView,
    input: &'i Value,
    tools: &'i [AnsweredTool],
}

/// What an agent waits for after a run.
struct PendingToolCalls {
    messages: Vec<Value>,
    /// Calls, with their tool's name.
    calls: Vec<(String, String)>,
    interrupts: Vec<Value>,
    state: Option<Value>,
    starts: Starts,
}

impl AgUiAgent {
    pub(super) fn new(context: ActorContext, poster: Poster) -> Self {
        let names = EventNames::of(context.document());
        Self {
            context,
            poster,
            names,
            met: false,
        }
    }

    /// Posts an input and goes on until the agent asks for nothing more.
    pub(super) async fn exchange(
        &mut self,
        phase: &Arc<PhaseView>,
        input: Value,
    ) -> Result<(), ActorError> {
        let mut first = complete_input(input);
        if let Some(Value::String(thread)) = first.get_mut("threadId") {
            *thread = self.context.thread(thread);
        }
        let mut input = first.clone();
        let mut tools: Vec<AnsweredTool> = Vec::new();
        for round in 0..=MAX_FOLLOW_UPS {
            let phase = if round == 0 {
                Arc::clone(phase)
            } else {
                self.context.phase()
            };
            let Some(waiting) = self.run(&phase, &input, round, &tools).await? else {
                return Ok(());
            };
            if round == MAX_FOLLOW_UPS {
                let warning = format!("the agent asks back for ever; left after {round} times");
                self.context.warn(&warning);
                // Nobody knows what it would have done with an answer.
                self.context.run_ended(Some(&warning));
                break;
            }
            (input, tools) = self.answer(&first, round + 1, waiting).await;
        }
        Ok(())
    }

    /// Posts one input and reads the events that it brings.
    async fn run(
        &mut self,
        phase: &Arc<PhaseView>,
        input: &Value,
        round: usize,
        tools: &[AnsweredTool],
    ) -> Result<Option<PendingToolCalls>, ActorError> {
        // The first input is an event of its own; those that follow belong to it.
        let context = &self.context;
        let (message, turn) = if round == 0 {
            let turn = context.received(INPUT, Direction::Request, input, None);
            (turn.message, Some(turn.of_ours()))
        } else {
            let direction = Direction::Request;
            let message = context.sent_numbered(phase, INPUT, direction, input, None);
            (message, None)
        };
        let response = match self.post(phase, input).await {
            Ok(response) => response,
            Err(error @ ClientError::Connect { .. }) if !self.met => {
                let message = error.to_string();
                return Err(self.context.error(ActorErrorKind::Unreachable, message));
            }
            Err(error) => {
                let warning = format!("the input came to nothing: {error}");
                self.context.run_refused(&warning);
                self.context.warn(&warning);
                return Ok(None);
            }
        };
        self.met = true;
        drop(turn);
        if !response.status.is_success() || !response.is_event_stream() {
            self.refused(response).await;
            return Ok(None);
        }
        let sent = SentInput {
            message,
            phase,
            input,
            tools,
        };
        Ok(self.read(&sent, response).await)
    }

    async fn post(
        &self,
        phase: &PhaseView,
        input: &Value,
    ) -> Result<StreamedResponse, ClientError> {
        let headers = self.poster.headers([
            ("content-type", "application/json"),
            ("accept", EVENT_STREAM),
        ]);
        let body = phase.delivery.shape(input.to_string());
        if phase.delivery.duplicate_ids {
            // The first copy is not listened to.
            let copy = self
                .poster
                .post(&phase.delivery, headers.clone(), body.clone());
            drop(copy.await?);
        }
        self.poster.post(&phase.delivery, headers, body).await
    }

    /// The agent answered with something else than events: it is recorded as it came.
    async fn refused(&self, response: StreamedResponse) {
        let (status, is_success) = (response.status.as_u16(), response.status.is_success());
        let kind = response.header("content-type").unwrap_or("none").to_owned();
        let body = match response.bytes().await {
            Ok(bytes) => {
                let cut = &bytes[..bytes.len().min(MAX_BODY_TEXT)];
                let json = serde_json::from_slice(&bytes).ok();
                if json.is_some() && !is_success {
                    self.context
                        .answered_with_error(&format!("status {status}"));
                }
                json.unwrap_or_else(|| String::from_utf8_lossy(cut).into_owned().into())
            }
            Err(error) => {
                self.unread(&error);
                self.context
                    .warn(&format!("the answer cannot be read: {error}"));
                Value::Null
            }
        };
        let warning = format!("no events: status {status}, content type {kind}");
        self.context.spoke_otherwise(&warning);
        self.context.run_refused(&warning);
        self.context.warn(&warning);
        let content = json!({"status": status, "contentType": kind, "body": body});
        self.context
            .overheard(INPUT, Direction::Response, &content, None);
    }

    /// An answer could not be read to its end.
    fn unread(&self, error: &ClientError) {
        if let Some(kind) = UnseenKind::of_answer(error) {
            self.context.unparsed(kind, Direction::Response, b"", 0);
        }
    }

    /// Counts what the agent was told, once it shows that it has listened.
    fn count(&self, sent: &SentInput<'_>) {
        let (context, message) = (&self.context, Some(sent.message));
        for (kind, name) in carriers(sent.input) {
            context.counted_in(sent.phase, kind, name, message);
        }
        for AnsweredTool {
            name,
            phase,
            branch,
        } in sent.tools
        {
            let kind = CarrierKind::FrontendToolResult;
            context.counted_branch(phase, kind, name, branch, message);
        }
    }

    async fn read(
        &self,
        sent: &SentInput<'_>,
        response: StreamedResponse,
    ) -> Option<PendingToolCalls> {
        let messages = sent.input.get("messages");
        let messages = messages.and_then(Value::as_array).cloned();
        let schemas = tool_schemas(sent.input);
        let mut reader = AgUiEventReader::new(&self.names, messages.unwrap_or_default())
            .with_tools(schemas.keys().map(ToString::to_string));
        let mut starts = Starts::new();
        let mut events = response.events();
        let (mut first, mut heard) = (true, false);
        loop {
            let next = if reader.outcome.is_some() {
                match tokio::time::timeout(TAIL, events.next()).await {
                    Ok(next) => next,
                    Err(_) => break,
                }
            } else {
                events.next().await
            };
            let event = match next {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(error) => {
                    self.unread(&error);
                    self.context.warn(&format!("the events break off: {error}"));
                    break;
                }
            };
            if event.data.is_empty() {
                continue;
            }
            let data = event.data.as_bytes();
            let parsed = match read_lenient(data) {
                Ok((parsed @ Value::Object(_), _)) if !text(&parsed, "type").is_empty() => parsed,
                other => {
                    let start: String = event.data.chars().take(100).collect();
                    self.context.warn(&format!("not an AG-UI event: {start}"));
                    let kind = match other {
                        Ok(_) => UnseenKind::NotAMessage,
                        Err(_) => UnseenKind::NotJson,
                    };
                    let length = data.len() as u64;
                    self.context
                        .unparsed(kind, Direction::Response, data, length);
                    continue;
                }
            };
            let kind = text(&parsed, "type");
            // An agent that only says that it cannot run has not looked at what it was told.
            let opens = AgUiEventType::parse(kind).is_some_and(AgUiEventType::may_come_first);
            if !heard && !opens {
                heard = true;
                self.count(sent);
            }
            if std::mem::take(&mut first) && !opens {
                self.context.warn("the run begins without RUN_STARTED");
            }
            if reader.outcome.is_some() {
                let warning = format!("`{}` after the end of the run", self.names.operation(kind));
                self.context.warn(&warning);
            }
            for seen in reader.read(parsed) {
                self.see(seen, &mut starts);
            }
        }
        for seen in reader.end() {
            self.see(seen, &mut starts);
        }
        for (tool, arguments) in reader.history.calls() {
            // Others are the agent's own.
            if let Some(schema) = schemas.get(tool) {
                self.context.called(tool, allows(schema, arguments));
            }
        }
        self.waits_for(reader, starts)
    }

    fn see(&self, seen: SeenEvent, starts: &mut Starts) {
        let SeenEvent {
            operation,
            content,
            raw,
        } = seen;
        let turn = self
            .context
            .received(&operation, Direction::Response, &content, raw);
        if operation == "tool_call_start" && starts.len() < MAX_STARTS {
            let call = text(&content, "toolCallId").to_owned();
            let starts = starts.entry(call).or_default();
            if starts.len() < MAX_STARTS {
                starts.push((content, turn.phase));
            }
        }
    }

    fn waits_for(&self, reader: AgUiEventReader<'_>, starts: Starts) -> Option<PendingToolCalls> {
        let (mut named, mut interrupts) = (None, Vec::new());
        self.context.run_ended(match &reader.outcome {
            Some(AgUiOutcome::Failed(why)) if why.is_empty() => Some("the run failed"),
            Some(AgUiOutcome::Failed(why)) => Some(why),
            Some(AgUiOutcome::Stopped) => Some("the agent cancelled the run"),
            Some(AgUiOutcome::Finished(_) | AgUiOutcome::Interrupted(_)) | None => None,
        });
        match reader.outcome {
            Some(AgUiOutcome::Finished(calls)) => named = calls,
            Some(AgUiOutcome::Interrupted(all)) => interrupts = all,
            Some(AgUiOutcome::Stopped | AgUiOutcome::Failed(_)) => return None,
            None => {
                self.context
                    .warn("the run has no end: the stream stopped before RUN_FINISHED");
                self.context
                    .unparsed(UnseenKind::CutOff, Direction::Response, b"", 0);
                return None;
            }
        }
        // An interrupt that asks about a call answers for it.
        let asked: Vec<&str> = interrupts.iter().map(|i| text(i, "toolCallId")).collect();
        let waiting = reader.history.waiting(named.as_deref());
        let calls: Vec<(String, String)> = waiting
            .into_iter()
            .filter(|call| !asked.contains(&call.id.as_str()))
            .map(|call| (call.id.clone(), call.name.clone()))
            .collect();
        if calls.is_empty() && interrupts.is_empty() {
            return None;
        }
        let state = reader.history.state.clone();
        Some(PendingToolCalls {
            messages: reader.history.into_messages(),
            calls,
            interrupts,
            state,
            starts,
        })
    }

    /// The input that gives the agent what it waits for, and the tools whose results it carries.
    async fn answer(
        &self,
        first: &Value,
        round: usize,
        waiting: PendingToolCalls,
    ) -> (Value, Vec<AnsweredTool>) {
        let mut messages = waiting.messages;
        let mut tools = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        for (call, tool) in waiting.calls {
            let next = numbers.entry(call.clone()).or_default();
            let start = start_of(&waiting.starts, &call, *next);
            *next += 1;
            let answer = self.tool_answer(start).await;
            let (branch, answer) = answer.unwrap_or_default();
            let phase = start.map(|(_, phase)| Arc::clone(phase));
            let message = tool_message(&call, round, answer.unwrap_or_default());
            let mut event = json!({"type": "TOOL_CALL_RESULT", "toolCallName": tool});
            for (from, to) in [
                ("id", "messageId"),
                ("toolCallId", "toolCallId"),
                ("role", "role"),
                ("content", "content"),
            ] {
                event[to] = message.get(from).cloned().unwrap_or_default();
            }
            let name = "tool_call_result";
            let turn = self
                .context
                .received(name, Direction::Request, &event, None);
            drop(turn);
            messages.push(Value::Object(message));
            tools.push(AnsweredTool {
                name: tool,
                phase: phase.unwrap_or_else(|| self.context.phase()),
                branch,
            });
        }
        let mut resume = Vec::new();
        for interrupt in waiting.interrupts {
            let call = text(&interrupt, "toolCallId");
            let mut entry = json!({"interruptId": interrupt["id"], "status": "cancelled"});
            let answer = self.tool_answer(start_of(&waiting.starts, call, 0)).await;
            if let Some((_, Some(payload))) = answer {
                entry["status"] = "resolved".into();
                entry["payload"] = payload;
            }
            resume.push(entry);
        }
        let input = follow_up(first, round, messages, waiting.state, resume);
        (input, tools)
    }

    /// What the document answers to a call, if it says anything, and the branch that it is.
    async fn tool_answer(&self, start: Option<&CallStart>) -> Option<(Value, Option<Value>)> {
        let (start, phase) = start?;
        let state = phase.prepared(AgUiClientState::new);
        let operation = AgUiEventType::ToolCallStart.as_str();
        let entry = self
            .context
            .select(operation, &state.tool_responses, start)?;
        let content = dispatch::content(&self.context, entry, start, |_| true).await;
        Some((branches::of_entry(entry), content))
    }
}
