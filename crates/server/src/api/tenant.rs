//! What a caller sees of the store: the tasks, events, schedules and triggers of their namespaces, and nothing else. What is
//! somebody else's is answered like what is not there.

use proofhouse_fleet::name::CampaignName;
use proofhouse_store::Store;
use proofhouse_store::model::{
    AuditFilter, AuditRecord, CampaignFilter, CampaignRow, ChannelFilter, ChannelRecord,
    DeliveryRecord, EventDetail, EventFilter, EventSummary, FailureFilter, FailureRecord,
    PollRecord, TaskFilter, TaskRecord, TraceEntry, TriggerStatus, TurnRecord,
};
use serde_json::Value;

use super::stream_budget::{HeldBytes, PAGE_BYTES, StreamBudget, fitting};
use super::{Api, Caller, store_problem};
use crate::engine::LoadedFile;
use crate::problem::Problem;

/// Turns of a task.
pub(crate) struct TurnPage {
    /// The turns.
    pub turns: Vec<TurnRecord>,
    /// The number of the first that comes after them, if there may be more.
    pub next: Option<i64>,
    /// Their share of what may be held for readers.
    pub held: HeldBytes,
}

/// The store as a caller sees it.
pub(crate) struct TenantStore<'a> {
    store: &'a Store,
    /// What all readers may hold together.
    budget: &'a StreamBudget,
    caller: &'a Caller,
}

impl Api {
    /// The store as a caller sees it.
    pub(crate) fn seen_by<'a>(&'a self, caller: &'a Caller) -> TenantStore<'a> {
        TenantStore {
            store: self.store.as_ref(),
            budget: &self.streams,
            caller,
        }
    }
}

impl TenantStore<'_> {
    fn list(&self) -> Option<Vec<String>> {
        self.caller.namespaces().list().map(<[String]>::to_vec)
    }

    /// A task.
    pub(crate) async fn task(&self, id: &str) -> Result<TaskRecord, Problem> {
        let task = self.store.task(id).await.map_err(store_problem)?;
        if !self.caller.namespaces().has(&task.agent_namespace) {
            return Err(Problem::not_found(format!("there is no task `{id}`")));
        }
        self.caller.note().namespace(&task.agent_namespace);
        Ok(task)
    }

    /// Tasks, newest first.
    pub(crate) async fn tasks(&self, filter: TaskFilter) -> Result<Vec<TaskRecord>, Problem> {
        let filter = TaskFilter {
            namespaces: self.list(),
            ..filter
        };
        self.store.tasks(filter).await.map_err(store_problem)
    }

    /// Tasks that have this text, newest first.
    pub(crate) async fn search_tasks(
        &self,
        filter: TaskFilter,
        text: &str,
    ) -> Result<Vec<TaskRecord>, Problem> {
        let filter = TaskFilter {
            namespaces: self.list(),
            ..filter
        };
        let found = self.store.search_tasks(filter, text).await;
        found.map_err(store_problem)
    }

    /// What went wrong in tasks, newest first.
    pub(crate) async fn failures(
        &self,
        filter: FailureFilter,
    ) -> Result<Vec<FailureRecord>, Problem> {
        let filter = FailureFilter {
            namespaces: self.list(),
            ..filter
        };
        self.store.failures(filter).await.map_err(store_problem)
    }

    /// The turns of a task from one on, as many as this and as fit on a page.
    pub(crate) async fn turns(
        &self,
        task: &str,
        from: i64,
        limit: usize,
    ) -> Result<TurnPage, Problem> {
        self.task(task).await?;
        let sizes = self.store.turn_sizes(task, from, limit).await;
        let sizes = sizes.map_err(store_problem)?;
        let (count, bytes) = fitting(sizes.iter().copied(), PAGE_BYTES);
        let held = self.budget.hold(bytes).await.ok_or_else(|| {
            Problem::unavailable("others do not read what they asked for; try again later")
        })?;
        let turns = self.store.turns(task, from, count).await;
        let turns = turns.map_err(store_problem)?;
        let last = turns
            .last()
            .filter(|_| count < sizes.len() || count == limit);
        Ok(TurnPage {
            next: last.map(|turn| turn.seq.saturating_add(1)),
            turns,
            held,
        })
    }

    /// Where the newest turns of a task begin that fit on a page, as many as this at most.
    pub(crate) async fn newest_turns(
        &self,
        task: &TaskRecord,
        limit: usize,
    ) -> Result<i64, Problem> {
        let limit_rows = i64::try_from(limit).unwrap_or(i64::MAX);
        let first = task.next_seq.saturating_sub(limit_rows).max(0);
        let sizes = self.store.turn_sizes(&task.id, first, limit).await;
        let sizes = sizes.map_err(store_problem)?;
        let (count, _) = fitting(sizes.into_iter().rev(), PAGE_BYTES);
        Ok(first.max(task.next_seq - i64::try_from(count).unwrap_or(i64::MAX)))
    }

    /// The deliveries of a task, newest first, without what its inputs say.
    pub(crate) async fn delivery_list(
        &self,
        task: &str,
        limit: usize,
    ) -> Result<Vec<DeliveryRecord>, Problem> {
        self.task(task).await?;
        let listed = self.store.delivery_list(task, limit).await;
        listed.map_err(store_problem)
    }

    /// The deliveries of a task, newest first.
    pub(crate) async fn deliveries(
        &self,
        task: &str,
        before: Option<i64>,
        limit: usize,
    ) -> Result<Vec<DeliveryRecord>, Problem> {
        self.task(task).await?;
        let deliveries = self.store.deliveries(task, before, limit).await;
        deliveries.map_err(store_problem)
    }

    /// The polls of a task.
    pub(crate) async fn polls(&self, task: &str) -> Result<Vec<PollRecord>, Problem> {
        self.task(task).await?;
        self.store.polls(task).await.map_err(store_problem)
    }

    /// The push channels of a task.
    pub(crate) async fn channels(
        &self,
        task: &str,
        limit: usize,
    ) -> Result<Vec<ChannelRecord>, Problem> {
        self.task(task).await?;
        let filter = ChannelFilter {
            task: Some(task.to_owned()),
            state: None,
            limit,
        };
        self.store.channels(filter).await.map_err(store_problem)
    }

    /// The newest entries of a task's trace.
    pub(crate) async fn trace(&self, task: &str, limit: usize) -> Result<Vec<TraceEntry>, Problem> {
        self.task(task).await?;
        let trace = self.store.newest_trace(task, limit).await;
        trace.map_err(store_problem)
    }

    /// Removes a task.
    pub(crate) async fn delete_task(&self, task: &str) -> Result<(), Problem> {
        self.task(task).await?;
        self.store.delete_task(task).await.map_err(store_problem)
    }

    /// Events, newest first. What was decided about one that is not for a tool of the caller's alone names tasks of others, and
    /// is left out.
    pub(crate) async fn events(&self, filter: EventFilter) -> Result<Vec<EventSummary>, Problem> {
        let filter = EventFilter {
            namespaces: self.list(),
            ..filter
        };
        let events = self.store.events(filter).await.map_err(store_problem)?;
        let seen = events.into_iter().map(|mut event| {
            if !self.is_own(&event) {
                event.outcome = None;
            }
            event
        });
        Ok(seen.collect())
    }

    /// An event, with the deliveries to the caller's tasks.
    pub(crate) async fn event(&self, id: i64) -> Result<EventDetail, Problem> {
        let detail = match self.caller.namespaces().list() {
            None => self.store.event(id).await,
            Some(list) => self.store.event_for(id, list).await,
        };
        let mut detail = detail.map_err(store_problem)?;
        let summary = &mut detail.event.summary;
        if !summary.tool.namespace.is_empty() {
            self.caller.note().namespace(&summary.tool.namespace);
        }
        if !self.is_own(summary) {
            summary.outcome = None;
            detail.earlier = Vec::<Value>::new();
        }
        Ok(detail)
    }

    /// Insists that routing an event again concerns nobody else.
    pub(crate) async fn replayable(&self, id: i64) -> Result<(), Problem> {
        let detail = self.event(id).await?;
        if self.is_own(&detail.event.summary) {
            Ok(())
        } else {
            Err(Problem::forbidden(
                "the event is not for a tool of one of the namespaces of the key; routing it again concerns others",
            ))
        }
    }

    fn is_own(&self, event: &EventSummary) -> bool {
        self.caller.namespaces().has(&event.tool.namespace)
    }

    /// What is known about schedules and triggers.
    pub(crate) async fn triggers(&self) -> Result<Vec<TriggerStatus>, Problem> {
        let all = self.store.triggers().await.map_err(store_problem)?;
        let own = |one: &TriggerStatus| self.caller.namespaces().has(&one.key.namespace);
        Ok(all.into_iter().filter(own).collect())
    }

    /// A file of manifests, as far as it holds something of the caller's. What is wrong with it is told if all in it is theirs:
    /// messages quote what is written.
    pub(crate) fn file(&self, file: &LoadedFile) -> Option<LoadedFile> {
        let namespaces = self.caller.namespaces();
        if namespaces.list().is_none() {
            return Some(file.clone());
        }
        let mut seen = file.clone();
        seen.holds
            .retain(|(_, namespace, _)| namespaces.has(namespace));
        if seen.holds.is_empty() {
            return None;
        }
        if seen.holds.len() < file.holds.len() {
            seen.problems.clear();
        }
        Some(seen)
    }

    /// Campaigns, newest first.
    pub(crate) async fn campaigns(
        &self,
        filter: CampaignFilter,
    ) -> Result<Vec<CampaignRow>, Problem> {
        let filter = CampaignFilter {
            namespaces: self.list(),
            ..filter
        };
        self.store.campaigns(filter).await.map_err(store_problem)
    }

    /// A campaign: `NAME` for the newest of that name, or `NAME@NUMBER`.
    pub(crate) async fn campaign(&self, name: &str) -> Result<CampaignRow, Problem> {
        let absent = || Problem::not_found(format!("there is no campaign `{name}`"));
        let wanted: CampaignName = name.parse().map_err(|_| absent())?;
        let found = self.store.find_campaign(&wanted.name, wanted.number).await;
        let found = found.map_err(store_problem)?;
        let own = |campaign: &CampaignRow| self.caller.namespaces().has(&campaign.namespace);
        let campaign = found.filter(own).ok_or_else(absent)?;
        if !campaign.namespace.is_empty() {
            self.caller.note().namespace(&campaign.namespace);
        }
        Ok(campaign)
    }

    /// Entries of the audit log.
    pub(crate) async fn audit(&self, filter: AuditFilter) -> Result<Vec<AuditRecord>, Problem> {
        let filter = AuditFilter {
            namespaces: self.list(),
            ..filter
        };
        self.store.audit(filter).await.map_err(store_problem)
    }
}
