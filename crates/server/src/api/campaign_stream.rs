//! The progress of a campaign over HTTP, as server-sent events.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use proofhouse_store::model::CampaignPulse;
use serde_json::json;
use tokio::time::Instant;
use utoipa::ToSchema;

use super::caller::{May, ReadCampaigns};
use super::campaign_views::CampaignPulseView;
use super::stream_budget::StreamPermit;
use super::{AccessWatch, Api, KEEP_ALIVE, Path};
use crate::problem::Problem;

/// How often the store is looked at: workers anywhere may have changed something.
pub(crate) const CAMPAIGN_LOOK: Duration = Duration::from_secs(2);
/// How long a stream lasts; the client comes back.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// An event of the stream of a campaign.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "it describes what the library writes")]
struct CampaignEvent {
    /// `progress` or `end`.
    event: String,
    /// JSON: the progress as it is shown elsewhere, or `{"code", "detail"}`.
    data: String,
}

/// Follow a campaign
///
/// Server-sent events: `progress` at once and whenever it changed, at most every two seconds. The stream ends with the campaign,
/// or with `end` within a few seconds after the key was revoked or has expired.
#[utoipa::path(
    get, path = "/v1/campaigns/{campaign}/stream", tag = "campaigns", security(("key" = [])),
    params(("campaign" = String, Path, description = "NAME for the newest of that name, or NAME@NUMBER")),
    responses(
        (status = 200, body = CampaignEvent, content_type = "text/event-stream"),
        (status = 401, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
        (status = 422, body = Problem), (status = 429, body = Problem), (status = 503, body = Problem)
    )
)]
pub(super) async fn stream(
    State(api): State<Arc<Api>>,
    May(caller, _): May<ReadCampaigns>,
    Path(campaign): Path<String>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let campaign = api.seen_by(&caller).campaign(&campaign).await?;
    let peer = peer.map(|Extension(ConnectInfo(peer))| peer.ip());
    let permit = api.streams.admit(peer).ok_or_else(|| {
        Problem::unavailable("there are too many streams; the rest of the server needs room too")
    })?;
    let reader = PulseReader {
        access: api.access.watch(&api, &caller),
        api,
        _permit: permit,
        campaign: campaign.id,
        seen: None,
        until: Instant::now() + LONGEST,
        over: false,
    };
    let events = futures_util::stream::unfold(reader, PulseReader::next);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)))
}

struct PulseReader {
    api: Arc<Api>,
    /// Whether the caller may still follow.
    access: AccessWatch,
    _permit: StreamPermit,
    campaign: i64,
    /// What was told last.
    seen: Option<CampaignPulse>,
    until: Instant,
    over: bool,
}

impl PulseReader {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            let is_late = Instant::now() >= self.until;
            if self.over || is_late || self.api.engine().is_stopping() {
                return None;
            }
            if let Some(problem) = self.access.problem() {
                self.over = true;
                let said = json!({"code": problem.code, "detail": problem.detail});
                let event = Event::default().event("end").json_data(said).ok()?;
                return Some((Ok(event), self));
            }
            let pulse = self.api.store.campaign_pulse(self.campaign).await.ok()?;
            if self.seen != Some(pulse) {
                self.seen = Some(pulse);
                self.over = pulse.state.is_over();
                let event = Event::default().event("progress");
                let event = event.json_data(CampaignPulseView::from(pulse)).ok()?;
                return Some((Ok(event), self));
            }
            tokio::select! {
                () = self.api.engine().stopping() => {}
                () = tokio::time::sleep(CAMPAIGN_LOOK) => {}
                () = self.access.ended() => {}
            }
        }
    }
}
