//! Campaigns: their plans, the runs that are handed out, and what came of them.

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{
    CampaignBlob, CampaignFilter, CampaignPulse, CampaignRow, CampaignState, ClaimedRun, CountRow,
    FinishedRun, LaneRow, Millis, NewCampaign, NewRun, PrunedCampaigns, RequestPermit, ResultRow,
    RunClaim, RunCounted, RunsByState, WorkerRow,
};
use crate::sql::{campaign_work, campaigns};

/// What is left to be claimed of what was asked for.
fn left_of(claim: &RunClaim, handed: &[ClaimedRun]) -> RunClaim {
    RunClaim {
        limit: claim.limit.saturating_sub(handed.len()),
        is_idle: claim.is_idle && handed.is_empty(),
        has_lost: claim.has_lost || handed.iter().any(|run| run.losses > 0),
        ..claim.clone()
    }
}

impl Store {
    /// Writes down a campaign, without its runs. If the newest of its name is not over, that one goes on: when it has the same
    /// plan, caps and place for traces; `Conflict` when it has others.
    pub async fn plan_campaign(&self, new: NewCampaign) -> Result<CampaignRow> {
        transaction!(self, Write, [new = new], |tx| campaigns::plan(tx, new))
    }

    /// Writes down runs of a campaign. Those that are there stay, so that this can be repeated.
    pub async fn add_runs(&self, campaign: i64, runs: Vec<NewRun>) -> Result<()> {
        transaction!(self, Write, [campaign = campaign, runs = runs], |tx| {
            campaigns::add_runs(tx, *campaign, runs)
        })
    }

    /// Hands out the runs of a campaign from now on: this many.
    pub async fn begin_campaign(&self, campaign: i64, total: i64) -> Result<()> {
        transaction!(self, Write, [campaign = campaign, total = total], |tx| {
            campaigns::begin(tx, *campaign, *total)
        })
    }

    /// The newest campaign of a name, or that with this number.
    pub async fn find_campaign(
        &self,
        name: &str,
        number: Option<i64>,
    ) -> Result<Option<CampaignRow>> {
        transaction!(
            self,
            SingleRead,
            [name = name.to_owned(), number = number],
            |tx| async {
                match number {
                    Some(number) => campaigns::by_number(tx, name, *number).await,
                    None => campaigns::newest(tx, name).await,
                }
            }
        )
    }

    /// The campaign; `NotFound` if there is none.
    pub async fn campaign(&self, id: i64) -> Result<CampaignRow> {
        transaction!(self, SingleRead, [id = id], |tx| campaigns::get(tx, *id))
    }

    /// Campaigns, newest first.
    pub async fn campaigns(&self, filter: CampaignFilter) -> Result<Vec<CampaignRow>> {
        transaction!(self, Read, [filter = filter], |tx| campaigns::list(
            tx, filter
        ))
    }

    /// Plans a campaign once more, as it was planned: under its name, with the same texts, seed and caps, and its runs are handed
    /// out at once. `Conflict` when one of the name is not over.
    pub async fn repeat_campaign(&self, campaign: i64) -> Result<CampaignRow> {
        transaction!(self, Write, [campaign = campaign], |tx| {
            campaigns::repeat(tx, *campaign)
        })
    }

    /// How far a campaign is, quickly; `NotFound` if there is none.
    pub async fn campaign_pulse(&self, campaign: i64) -> Result<CampaignPulse> {
        transaction!(self, Read, [campaign = campaign], |tx| {
            campaigns::pulse(tx, *campaign)
        })
    }

    /// Ends a campaign: nothing of it is handed out any more. `false` when it was over already.
    pub async fn cancel_campaign(&self, campaign: i64, why: &str) -> Result<bool> {
        transaction!(
            self,
            Write,
            [campaign = campaign, why = why.to_owned()],
            |tx| campaigns::end(tx, *campaign, CampaignState::Cancelled, Some(why))
        )
    }

    /// A text of a campaign by its digest; `NotFound` if there is none.
    pub async fn campaign_blob(&self, digest: &str) -> Result<Vec<u8>> {
        transaction!(self, SingleRead, [digest = digest.to_owned()], |tx| {
            campaigns::blob(tx, digest)
        })
    }

    /// Texts of campaigns by their digests, as many as are there, in one go.
    pub async fn campaign_blobs(&self, digests: Vec<String>) -> Result<Vec<CampaignBlob>> {
        transaction!(self, SingleRead, [digests = digests], |tx| {
            campaigns::blobs(tx, digests)
        })
    }

    /// How many runs of a campaign are where.
    pub async fn campaign_progress(&self, campaign: i64) -> Result<RunsByState> {
        transaction!(self, Read, [campaign = campaign], |tx| {
            campaigns::by_state(tx, *campaign)
        })
    }

    /// What the runs of a campaign came to.
    pub async fn campaign_counts(&self, campaign: i64) -> Result<Vec<CountRow>> {
        transaction!(self, SingleRead, [campaign = campaign], |tx| {
            campaigns::counts(tx, *campaign)
        })
    }

    /// The results of a campaign in the order of its plan, from the one after this place on.
    pub async fn campaign_results(
        &self,
        campaign: i64,
        after: i64,
        limit: usize,
    ) -> Result<Vec<ResultRow>> {
        transaction!(
            self,
            Read,
            [campaign = campaign, after = after, limit = limit],
            |tx| campaigns::results(tx, *campaign, *after, *limit)
        )
    }

    /// The results of the probes of a campaign.
    pub async fn campaign_probes(&self, campaign: i64) -> Result<Vec<ResultRow>> {
        transaction!(self, SingleRead, [campaign = campaign], |tx| {
            campaigns::before(tx, *campaign, None)
        })
    }

    /// The result of the control of a document and a subject, if it is done.
    pub async fn campaign_control(
        &self,
        campaign: i64,
        document: i64,
        subject: i64,
    ) -> Result<Option<ResultRow>> {
        let found = transaction!(
            self,
            SingleRead,
            [campaign = campaign, pair = (document, subject)],
            |tx| campaigns::before(tx, *campaign, Some(*pair))
        );
        Ok(found?.pop())
    }

    /// Notes that a worker is there, that it left, or why it does not work.
    pub async fn note_campaign_worker(&self, campaign: i64, worker: WorkerRow) -> Result<()> {
        transaction!(self, Single, [campaign = campaign, worker = worker], |tx| {
            campaigns::note_worker(tx, *campaign, worker)
        })
    }

    /// The workers of a campaign.
    pub async fn campaign_workers(&self, campaign: i64) -> Result<Vec<WorkerRow>> {
        transaction!(self, Read, [campaign = campaign], |tx| {
            campaigns::workers(tx, *campaign)
        })
    }

    /// Hands out the next runs of a campaign, with leases. Nothing when nothing can be handed out now, or the campaign is over.
    pub async fn claim_runs(&self, claim: RunClaim) -> Result<Vec<ClaimedRun>> {
        let mut handed: Vec<ClaimedRun> = Vec::new();
        let mut left = claim.clone();
        while left.limit > 0 {
            let some = transaction!(self, Single, [claim = left.clone()], |tx| {
                campaign_work::claim_uncounted(tx, claim)
            });
            let (more, is_full) = match some {
                Ok(some) => some,
                // What was handed out is made; whoever asks again hears of the error.
                Err(_) if !handed.is_empty() => return Ok(handed),
                Err(error) => return Err(error),
            };
            handed.extend(more);
            left = left_of(&claim, &handed);
            if !is_full {
                break;
            }
        }
        if left.limit > 0 {
            let rest = transaction!(self, Write, [claim = left], |tx| {
                campaign_work::claim_counted(tx, claim)
            });
            match rest {
                Ok(rest) => handed.extend(rest),
                Err(error) if handed.is_empty() => return Err(error),
                Err(_) => {}
            }
        }
        handed.sort_by_key(|run| run.place);
        Ok(handed)
    }

    /// Hands out a run a second time that somebody else has had for long. The first result counts.
    pub async fn steal_run(
        &self,
        claim: RunClaim,
        slower_than_ms: Millis,
    ) -> Result<Option<ClaimedRun>> {
        transaction!(
            self,
            Write,
            [claim = claim, slower_than_ms = slower_than_ms],
            |tx| campaign_work::steal(tx, claim, *slower_than_ms)
        )
    }

    /// Renews the leases of a worker. Gives the places and fences of the runs that are still its own.
    pub async fn renew_runs(
        &self,
        campaign: i64,
        owner: &str,
        lease_ms: Millis,
    ) -> Result<Vec<(i64, i64)>> {
        transaction!(
            self,
            Write,
            [
                campaign = campaign,
                owner = owner.to_owned(),
                lease_ms = lease_ms
            ],
            |tx| campaign_work::renew(tx, *campaign, owner, *lease_ms)
        )
    }

    /// Takes runs back from workers that were silent for too long. Returns how many.
    pub async fn take_back_runs(&self, campaign: i64, lease_ms: Millis) -> Result<u64> {
        transaction!(
            self,
            Write,
            [campaign = campaign, lease_ms = lease_ms],
            |tx| campaign_work::take_back(tx, *campaign, *lease_ms)
        )
    }

    /// Puts back what a worker has not done. It counts as no loss. Returns how many.
    pub async fn release_runs(&self, campaign: i64, owner: &str) -> Result<u64> {
        transaction!(
            self,
            Write,
            [campaign = campaign, owner = owner.to_owned()],
            |tx| campaign_work::release(tx, *campaign, owner)
        )
    }

    /// Puts back some of the runs that a worker has, by their places and fences: it was never told that it has them. It counts as no
    /// loss.
    pub async fn give_back_runs(
        &self,
        campaign: i64,
        owner: &str,
        runs: Vec<(i64, i64)>,
    ) -> Result<()> {
        transaction!(
            self,
            Write,
            [campaign = campaign, owner = owner.to_owned(), runs = runs],
            |tx| campaign_work::give_back(tx, *campaign, owner, runs)
        )
    }

    /// Puts a run back that came to nothing, to be made again after a while, and counts the tokens that it used. `false` when it is
    /// not the worker's any more.
    pub async fn put_back_run(
        &self,
        campaign: i64,
        run: (i64, i64),
        due_in_ms: Millis,
        tokens: i64,
    ) -> Result<bool> {
        transaction!(
            self,
            Write,
            [
                campaign = campaign,
                run = run,
                due_in_ms = due_in_ms,
                tokens = tokens
            ],
            |tx| campaign_work::put_back(tx, *campaign, *run, *due_in_ms, *tokens)
        )
    }

    /// Counts what came of runs, each once, in the order in which they are given. Repeating it is safe.
    pub async fn finish_runs(
        &self,
        campaign: i64,
        finished: Vec<FinishedRun>,
    ) -> Result<Vec<RunCounted>> {
        transaction!(
            self,
            Write,
            [campaign = campaign, finished = finished],
            |tx| campaign_work::finish(tx, *campaign, finished)
        )
    }

    /// Ends a campaign of which nothing is left to do. Gives the state that it has then.
    pub async fn settle_campaign(&self, campaign: i64) -> Result<CampaignState> {
        transaction!(self, Write, [campaign = campaign], |tx| {
            campaign_work::settle(tx, *campaign)
        })
    }

    /// What the models of a campaign were asked.
    pub async fn campaign_lanes(&self, campaign: i64) -> Result<Vec<LaneRow>> {
        transaction!(self, SingleRead, [campaign = campaign], |tx| {
            campaign_work::lanes(tx, *campaign)
        })
    }

    /// Asks whether a model may be asked now, and counts it.
    pub async fn permit_request(&self, campaign: i64, lane: i64) -> Result<RequestPermit> {
        transaction!(self, Write, [campaign = campaign, lane = lane], |tx| {
            campaign_work::permit(tx, *campaign, *lane)
        })
    }

    /// How long a model may not be asked yet, because its provider asked for a pause; 0 if it may be asked.
    pub async fn lane_pause(&self, campaign: i64, lane: i64) -> Result<Millis> {
        transaction!(self, SingleRead, [campaign = campaign, lane = lane], |tx| {
            campaign_work::lane_pause(tx, *campaign, *lane)
        })
    }

    /// Counts what a reply of a model cost, in billionths of the currency of its price.
    pub async fn spend(&self, campaign: i64, lane: i64, cost: i64) -> Result<()> {
        transaction!(
            self,
            Write,
            [campaign = campaign, lane = lane, cost = cost],
            |tx| campaign_work::spend(tx, *campaign, *lane, *cost)
        )
    }

    /// Has every worker wait with a model, as its provider asks.
    pub async fn slow_down(&self, campaign: i64, lane: i64, pause_ms: Millis) -> Result<()> {
        transaction!(
            self,
            Single,
            [campaign = campaign, lane = lane, pause_ms = pause_ms],
            |tx| campaign_work::slow_down(tx, *campaign, *lane, *pause_ms)
        )
    }

    /// Removes campaigns that were over this long ago, in steps of so many results or runs, so that no step takes long; and, when
    /// none is left, texts that nobody names any more. `is_more` says whether another step is needed.
    pub async fn prune_campaigns(&self, older_ms: Millis, limit: usize) -> Result<PrunedCampaigns> {
        transaction!(self, Write, [older_ms = older_ms, limit = limit], |tx| {
            campaigns::prune(tx, *older_ms, *limit)
        })
    }

    /// Forgets traces of campaigns that were over this long ago, as many as this at a time. Gives how many runs had one, and those
    /// that nobody names any more, each with the place where it is.
    pub async fn prune_campaign_traces(
        &self,
        older_ms: Millis,
        limit: usize,
    ) -> Result<(u64, Vec<(String, String)>)> {
        transaction!(self, Write, [older_ms = older_ms, limit = limit], |tx| {
            campaigns::prune_traces(tx, *older_ms, *limit)
        })
    }
}
