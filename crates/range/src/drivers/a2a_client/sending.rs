//! How requests leave: at once and whole, or as the phase's delivery asks.

use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use proofhouse_wire::Bytes;

use crate::delivery::DeliveryModifiers;

/// The size and number of the pieces of a slow request.
const PIECE_BYTES: usize = 16;
const MAX_PIECES: usize = 1_000;

/// A body in pieces: slow ones, or the first half and a cut.
pub(super) fn pieces(
    text: String,
    delivery: &DeliveryModifiers,
) -> BoxStream<'static, std::io::Result<Bytes>> {
    let mut text = Bytes::from(text);
    if delivery.abrupt_close {
        text.truncate(text.len() / 2);
    }
    let mut all = Vec::new();
    if delivery.slow_stream.is_some() {
        while text.len() > PIECE_BYTES && all.len() < MAX_PIECES {
            all.push(Ok(text.split_to(PIECE_BYTES)));
        }
    }
    all.push(Ok(text));
    if delivery.abrupt_close {
        all.push(Err(std::io::Error::other("cut on purpose")));
    }
    let pause = delivery.slow_stream.unwrap_or(Duration::ZERO);
    let paced = stream::unfold(
        (all.into_iter(), false),
        move |(mut rest, started)| async move {
            let piece = rest.next()?;
            if started && !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
            Some((piece, (rest, true)))
        },
    );
    Box::pin(paced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::StreamExt;
    use serde_json::json;

    #[tokio::test]
    async fn pieces_are_small_few_and_cut_when_asked() {
        let delivery = |value| DeliveryModifiers::from_value(&value).unwrap();
        let text = "x".repeat(20_000);
        let slow = pieces(text.clone(), &delivery(json!({"slow_stream": "0s"})));
        let slow: Vec<usize> = slow.map(|piece| piece.unwrap().len()).collect().await;
        assert_eq!((slow.len(), slow[0], slow[1_000]), (1_001, 16, 4_000));
        let cut = pieces(text, &delivery(json!({"abrupt_close": true})));
        let cut: Vec<Option<usize>> = cut.map(|piece| piece.ok().map(|p| p.len())).collect().await;
        assert_eq!(cut, [Some(10_000), None]);
    }
}
