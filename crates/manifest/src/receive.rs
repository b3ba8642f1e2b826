//! Reads events and how they arrive.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use proofhouse_expr::{Compiler, ExprLimits};
use proofhouse_source::format::FormatReader;
use proofhouse_source::{NodeRef, PathSegment, did_you_mean};
use serde_json::Value;

use super::decode::ManifestDecoder;
use super::execute::http::{HTTP, HttpCall};
use super::fields;
use super::model::{EventParameters, Poll, Receive, Subscription, ToolEvent, Webhook};
use super::names::ReferenceSite;

/// How often a poll asks when it does not say.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(60);
/// How long a time is with milliseconds in UTC.
const WRITTEN: usize = "2026-01-01T00:00:00.000Z".len();
/// Where a number since 1970 counts milliseconds: as seconds, this is the year 5138.
const FIRST_MILLISECONDS: f64 = 1e11;

/// A time as `poll.last_fetched_at` is written, so that the two can be compared: a text with any offset, or seconds or
/// milliseconds since 1970. What is no time stays as it is.
fn instant(value: &Value) -> Value {
    let read = match value {
        // It is written so already, as most are.
        Value::String(text) if text.len() == WRITTEN && text.ends_with('Z') => None,
        Value::String(text) => text.parse::<Timestamp>().ok(),
        Value::Number(number) => number.as_f64().and_then(|count| {
            let seconds = if count.abs() < FIRST_MILLISECONDS {
                count
            } else {
                count / 1_000.0
            };
            SignedDuration::try_from_secs_f64(seconds)
                .ok()
                .and_then(|since| Timestamp::from_duration(since).ok())
        }),
        _ => None,
    };
    read.map_or_else(|| value.clone(), |read| format!("{read:.3}").into())
}

impl<'s> ManifestDecoder<'s> {
    pub(super) fn event(&mut self, node: NodeRef<'s>) -> Option<ToolEvent> {
        let outer = self.names.clone();
        let event = self.event_with_names(node);
        self.names = outer;
        event
    }

    fn event_with_names(&mut self, node: NodeRef<'s>) -> Option<ToolEvent> {
        let polled = node
            .get("receive")
            .is_some_and(|receive| receive.get("poll").is_some());
        let mut fields = self.fields(node, &fields::EVENT)?;
        let name = fields.text("name");
        let description = fields.text("description");
        let parameters = fields.read("parameters", |decoder, node| {
            decoder.event_parameters(node, if polled { "item" } else { "event" })
        });
        match &parameters {
            Some(EventParameters::Aliases(aliases)) => {
                let names: BTreeSet<String> =
                    aliases.iter().map(|(name, _)| name.clone()).collect();
                fields.reader.names.aliases = Some(names);
            }
            Some(EventParameters::Schema(schema)) => {
                let names = schema.properties().keys().cloned();
                fields
                    .reader
                    .names
                    .parameters
                    .get_or_insert_default()
                    .extend(names.clone());
                if let Some(called) = &mut fields.reader.names.called {
                    called.extend(names);
                }
                fields.reader.names.aliases = Some(BTreeSet::new());
            }
            None => fields.reader.names.aliases = Some(BTreeSet::new()),
        }
        let message = fields.read("message", |decoder, node| {
            decoder.template(node, ReferenceSite::Message)
        });
        let timeout = fields.read("timeout", ManifestDecoder::duration);
        let max_timeout = fields.read("max_timeout", ManifestDecoder::duration);
        if let (Some(timeout), Some(most)) = (timeout, max_timeout)
            && most < timeout
        {
            let message = "`max_timeout` is shorter than `timeout`".to_owned();
            fields
                .reader
                .within(PathSegment::Key("max_timeout"), |decoder| {
                    decoder.error("TM-016", message, None);
                });
        }
        let receive = fields.read("receive", Self::receive);
        Some(ToolEvent {
            name: name?,
            description,
            message: message?,
            timeout,
            max_timeout,
            parameters: parameters.unwrap_or(EventParameters::Aliases(Vec::new())),
            receive: receive?,
        })
    }

    /// Aliases are names with CEL texts behind them; a schema has `properties` that is a mapping.
    fn event_parameters(
        &mut self,
        node: NodeRef<'s>,
        variable: &'static str,
    ) -> Option<EventParameters> {
        if node
            .get("properties")
            .is_some_and(|properties| properties.entries().is_some())
        {
            return self.parameters(node).map(EventParameters::Schema);
        }
        let Some(entries) = node.entries() else {
            let message = "`parameters` must be a mapping of names to CEL, or a schema".to_owned();
            self.error("TM-003", message, None);
            return None;
        };
        let mut aliases = Vec::new();
        for (key, value) in entries {
            let program = self.within(PathSegment::Key(key), |decoder| {
                decoder.cel(value, &["event", variable])
            });
            aliases.extend(program.map(|program| (key.to_owned(), program)));
        }
        Some(EventParameters::Aliases(aliases))
    }

    fn receive(&mut self, node: NodeRef<'s>) -> Option<Receive> {
        let mut block = self.fields(node, &fields::RECEIVE)?;
        match block.only()? {
            "webhook" => block.read("webhook", |decoder, node| {
                let mut fields = decoder.fields(node, &fields::WEBHOOK)?;
                Some(Receive::Webhook(Webhook {
                    filter: fields.read("filter", Self::filter),
                    secret: fields.read("secret", |decoder, node| {
                        decoder.template(node, ReferenceSite::Secret)
                    }),
                }))
            }),
            "subscription" => block.read("subscription", |decoder, node| {
                let mut fields = decoder.fields(node, &fields::SUBSCRIPTION)?;
                let filter = fields.read("filter", Self::filter);
                let subscribe = fields.read("subscribe", |decoder, node| {
                    decoder.whole_call(node, ReferenceSite::Subscribe)
                });
                let unsubscribe = fields.read("unsubscribe", |decoder, node| {
                    decoder.whole_call(node, ReferenceSite::Unsubscribe)
                });
                Some(Receive::Subscription(Subscription {
                    filter,
                    subscribe: subscribe?,
                    unsubscribe,
                }))
            }),
            _ => block.read("poll", Self::poll),
        }
    }

    fn filter(&mut self, node: NodeRef<'s>) -> Option<proofhouse_expr::Program> {
        let program = self.cel(node, &["event", "parameters"])?;
        let Some(called) = self.names.called.clone() else {
            return Some(program);
        };
        for name in program.fields_of("parameters") {
            if !called.contains(name) {
                let near = did_you_mean(name, called.iter().map(String::as_str));
                let help = match near {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        "declare it in `parameters` of the tool, an action or the event".to_owned()
                    }
                };
                let message = format!("no call has a `{name}`, so the filter discards every event");
                self.warn("TM-031", message, Some(help));
            }
        }
        Some(program)
    }

    fn whole_call(&mut self, node: NodeRef<'s>, site: ReferenceSite) -> Option<HttpCall> {
        let before = self.walk.findings().len();
        let call = self.http(node, site, &HTTP)?;
        self.complete(&call, before).then_some(call)
    }

    fn poll(&mut self, node: NodeRef<'s>) -> Option<Receive> {
        let site = ReferenceSite::Execute;
        let mut fields = self.fields(node, &fields::POLL)?;
        let filter = fields.read("filter", Self::filter);
        let call = HttpCall {
            method: fields.read("method", |decoder, node| decoder.method(node, site)),
            url: fields.read("url", |decoder, node| decoder.url(node, site)),
            headers: fields
                .read("headers", |decoder, node| decoder.headers(node, site))
                .unwrap_or_default(),
            body: fields.read("body", |decoder, node| decoder.body(node, site)),
            response_path: None,
            base_url: None,
        };
        let detect = fields.read("detect", |decoder, node| {
            let compiler = Compiler::new(ExprLimits::default());
            let compiler = compiler.comparing("poll", "last_fetched_at", instant);
            decoder.cel_with(node, &["response", "poll", "parameters"], &compiler)
        });
        let key = fields.read("key", |decoder, node| decoder.cel(node, &["item"]));
        if let (None, Some(detect)) = (&key, &detect)
            && detect.variables().eq(["response"])
        {
            let message = "`detect` does not ask what is newer than `poll.last_fetched_at`, so what is listed fires at \
                           every poll"
                .to_owned();
            let help = "compare with `poll.last_fetched_at`, or add `key`, such as `key: item.id`";
            fields.reader.warn("TM-034", message, Some(help.to_owned()));
        }
        let interval = fields
            .read("interval", ManifestDecoder::duration)
            .unwrap_or(DEFAULT_INTERVAL);
        call.method.as_ref()?;
        call.url.as_ref()?;
        Some(Receive::Poll(Poll {
            filter,
            call,
            detect: detect?,
            key,
            interval,
        }))
    }
}
