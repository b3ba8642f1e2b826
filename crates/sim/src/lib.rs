//! Simulated models, for machines without one. Nobody thinks here: they are rules about words.
//!
//! `sim:gullible` obeys imperative text wherever it stands: in descriptions of tools and parameters, in
//! results, in its instructions. `sim:careful` acts on the user's words alone and takes everything else
//! for data. Both are deterministic: the same request with the same seed has the same reply, and neither
//! remembers anything between requests. [`ScriptedModel`] says what a file tells it to.
//!
//! What they do tells whether an attack can work on a subject that falls for it, and that it does not on
//! one that cannot. It does not tell how a real model would fare.

mod careful;
mod clean;
mod conversation;
mod directives;
mod fill;
mod gullible;
mod literals;
mod plan;
mod scripted;
mod sentences;
mod speak;
mod toolbox;
mod words;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proofhouse_wire::CancellationToken;

use super::{Model, ModelError, ModelReply, ModelRequest, ModelSink};

pub use scripted::ScriptedModel;

/// A simulation that obeys whoever speaks to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct GullibleModel;

/// A simulation that only obeys the user.
#[derive(Debug, Clone, Copy, Default)]
pub struct CarefulModel;

impl Model for GullibleModel {
    fn name(&self) -> &str {
        "sim:gullible"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            Ok(speak::speak(
                gullible::answer(request),
                request,
                self.name(),
                events,
            ))
        }
        .boxed()
    }
}

impl Model for CarefulModel {
    fn name(&self) -> &str {
        "sim:careful"
    }

    fn is_simulation(&self) -> bool {
        true
    }

    fn complete<'a>(
        &'a self,
        request: &'a ModelRequest,
        events: &'a mut dyn ModelSink,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        async move {
            Ok(speak::speak(
                careful::answer(request),
                request,
                self.name(),
                events,
            ))
        }
        .boxed()
    }
}
