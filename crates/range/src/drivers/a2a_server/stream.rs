//! Streams: each item is an event whose data is a JSON-RPC response.

use proofhouse_oatf::Direction;
use proofhouse_protocol::a2a::A2aShape;
use proofhouse_protocol::rpc;
use proofhouse_wire::server::{ReaderGone, Reply, StreamWriter};
use proofhouse_wire::sse::SseEvent;
use serde_json::{Value, json};

use super::answers::{A2aAnswer, ServedEntry};
use super::handler::{A2aServer, PendingA2aRequest};
use super::replies::{self, TextPlace};
use crate::actor::ActorContext;
use crate::delivery_note::DeliveryNote;
use crate::drivers::a2a::complete::Ids;
use crate::exposure::CarrierKind;

impl A2aServer {
    /// Answers a call with a stream; `served` is what the exposure calls the answer.
    pub(super) async fn stream(
        &self,
        call: PendingA2aRequest,
        items: Vec<A2aAnswer>,
        served: Option<ServedEntry>,
    ) -> Reply {
        if !replies::delay(&call.phase.delivery, self.context.over()).await {
            return Reply::cut();
        }
        let (reply, writer) = Reply::events();
        let context = self.context.clone();
        self.go_on(Box::pin(async move {
            match write(&context, &call, &writer, &items, served.as_ref()).await {
                Ok(()) if call.phase.delivery.abrupt_close => writer.cut().await,
                Ok(()) => {}
                Err(ReaderGone) => context.warn("the reader of a stream left before its end"),
            }
            drop(call.advance);
        }));
        reply
    }
}

async fn write(
    context: &ActorContext,
    call: &PendingA2aRequest,
    writer: &StreamWriter,
    items: &[A2aAnswer],
    served: Option<&ServedEntry>,
) -> Result<(), ReaderGone> {
    let delivery = &call.phase.delivery;
    if let Some(count) = delivery.notification_flood {
        context.warn(&format!(
            "x-delivery: {count} status updates go before the stream"
        ));
        let event = event(call, &flood_item(call, items), false);
        for _ in 0..count {
            writer.write(event.clone()).await?;
        }
    }
    for (index, item) in items.iter().enumerate() {
        let wire = item.wire(call.generation);
        let raw = (wire != *item.content()).then(|| rpc::response(&call.id, wire));
        let (phase, content) = (&call.phase, item.content());
        context.sent(phase, &call.event, Direction::Response, content, raw);
        let event = event(call, item, true);
        let is_last = index + 1 == items.len();
        let nothing = DeliveryNote::default();
        if delivery.abrupt_close && is_last {
            let place = TextPlace::Cut;
            return replies::write(writer, delivery, &event, &nothing, place, context.over()).await;
        }
        if delivery.duplicate_ids {
            let place = TextPlace::Middle;
            replies::write(writer, delivery, &event, &nothing, place, context.over()).await?;
        }
        let note = match served {
            Some(ServedEntry { name, branch }) if index == 0 => {
                let (kind, branch) = (CarrierKind::TaskResponse, branch.clone());
                DeliveryNote::of_branch(context, &call.phase, kind, name, branch)
            }
            _ => nothing,
        };
        let place = if is_last {
            TextPlace::Last
        } else {
            TextPlace::Middle
        };
        replies::write(writer, delivery, &event, &note, place, context.over()).await?;
    }
    Ok(())
}

fn event(call: &PendingA2aRequest, item: &A2aAnswer, shaped: bool) -> String {
    let text = rpc::to_text(&rpc::response(&call.id, item.wire(call.generation)));
    let text = if shaped {
        call.phase.delivery.shape(text)
    } else {
        text
    };
    SseEvent::data(text).encode()
}

/// What a flood is made of: word that the task is being worked on.
fn flood_item(call: &PendingA2aRequest, items: &[A2aAnswer]) -> A2aAnswer {
    let task = items.first().and_then(A2aAnswer::task);
    let ids = Ids::of_request(&call.params);
    let told = |key: &str| task.and_then(|task| task.get(key)).cloned();
    let id = told("id").unwrap_or_else(|| Value::from(ids.task));
    let context = told("contextId").unwrap_or_else(|| Value::from(ids.context));
    A2aAnswer::Known(
        A2aShape::StatusUpdate,
        json!({"kind": "status-update", "taskId": id, "contextId": context,
            "status": {"state": "working"}, "final": false}),
    )
}
