//! What the client drivers share: answers from dispatch lists, and sending as a phase asks for it.

pub(super) mod dispatch;
pub(super) mod post;
pub(super) mod script;
