//! Tasks with their turns, allow lists and interests.

use super::{Store, transaction};
use crate::error::Result;
use crate::model::{
    AllowEntry, AppendTurns, AppendedTurns, FailureFilter, FailureRecord, Interest, InterestedTask,
    Millis, NewTask, StateChange, TaskFilter, TaskRecord, TaskState, TaskWait, ToolRef, TurnRecord,
};
use crate::sql::{interests, task_search, tasks, turns};

impl Store {
    /// Creates a task with its interests, sealed allow-list entries, polls and first input. `Conflict` if there is one
    /// with this id.
    pub async fn create_task(&self, task: NewTask) -> Result<TaskRecord> {
        transaction!(self, Write, [task = task], |tx| tasks::create(tx, task))
    }

    /// The task; `NotFound` if there is none.
    pub async fn task(&self, id: &str) -> Result<TaskRecord> {
        transaction!(self, Read, [id = id.to_owned()], |tx| tasks::get(tx, id))
    }

    /// Tasks, newest first.
    pub async fn tasks(&self, filter: TaskFilter) -> Result<Vec<TaskRecord>> {
        transaction!(self, Read, [filter = filter], |tx| task_search::list(
            tx, filter
        ))
    }

    /// Those of the newest tasks ([`SEARCHED_TASKS`](crate::model::SEARCHED_TASKS)) that have this text in their turns or in what
    /// else is known about them, newest first.
    pub async fn search_tasks(&self, filter: TaskFilter, text: &str) -> Result<Vec<TaskRecord>> {
        transaction!(
            self,
            Read,
            [filter = filter, text = text.to_owned()],
            |tx| { task_search::search(tx, filter, text) }
        )
    }

    /// How long the work of these tasks has waited, for those that have some and that nobody works on.
    pub async fn task_waits(&self, tasks: Vec<String>) -> Result<Vec<TaskWait>> {
        transaction!(self, Read, [tasks = tasks], |tx| task_search::waits(
            tx, tasks
        ))
    }

    /// What went wrong in the newest tasks, newest first.
    pub async fn failures(&self, filter: FailureFilter) -> Result<Vec<FailureRecord>> {
        transaction!(self, Read, [filter = filter], |tx| task_search::failures(
            tx, filter
        ))
    }

    /// Changes what a task is doing, and with it whether its interests are active.
    pub async fn change_state(&self, change: StateChange) -> Result<TaskRecord> {
        transaction!(self, Write, [change = change], |tx| tasks::change_state(
            tx, change
        ))
    }

    /// Removes a task with its turns, allow list, interests, polls, deliveries and trace. Channels stay, to be swept.
    /// `Conflict` while somebody holds its lease.
    pub async fn delete_task(&self, id: &str) -> Result<()> {
        transaction!(self, Write, [id = id.to_owned()], |tx| tasks::delete(
            tx, id
        ))
    }

    /// Appends turns: the heart of exactly-once. The turns, the allow list, the state, the snapshot and the delivery
    /// that became a turn are one transaction, which happens once: `Fenced` if the lease has moved, `Conflict` if the
    /// number is not the next one or the delivery is settled.
    pub async fn append(&self, append: AppendTurns) -> Result<AppendedTurns> {
        transaction!(self, Write, [append = append], |tx| turns::append(
            tx, append
        ))
    }

    /// The turns from this number on, oldest first.
    pub async fn turns(&self, task: &str, from: i64, limit: usize) -> Result<Vec<TurnRecord>> {
        transaction!(
            self,
            Read,
            [task = task.to_owned(), from = from, limit = limit],
            |tx| turns::list(tx, task, *from, *limit)
        )
    }

    /// How many bytes the turns from this number on have, oldest first.
    pub async fn turn_sizes(&self, task: &str, from: i64, limit: usize) -> Result<Vec<usize>> {
        transaction!(
            self,
            Read,
            [task = task.to_owned(), from = from, limit = limit],
            |tx| turns::sizes(tx, task, *from, *limit)
        )
    }

    /// The time, and the tasks that changed at this time or later, each with the number of its next turn and its state.
    /// Without a time there are none yet.
    pub async fn changed_tasks(
        &self,
        since: Option<Millis>,
        limit: usize,
    ) -> Result<(Millis, Vec<(String, i64, TaskState)>)> {
        transaction!(self, Read, [since = since, limit = limit], |tx| {
            tasks::changed(tx, *since, *limit)
        })
    }

    /// The allow list of a task, for all tools, in the order of its growth.
    pub async fn allow_list(&self, task: &str) -> Result<Vec<AllowEntry>> {
        transaction!(self, Read, [task = task.to_owned()], |tx| {
            interests::allow_list(tx, task)
        })
    }

    /// All interests of a task.
    pub async fn interests(&self, task: &str) -> Result<Vec<Interest>> {
        transaction!(self, Read, [task = task.to_owned()], |tx| {
            interests::of_task(tx, task)
        })
    }

    /// The active interests in events of a tool, each with the task's allow list for that tool. An empty namespace
    /// stands for every namespace. With a task, only that task's.
    pub async fn interested(
        &self,
        tool: &ToolRef,
        task: Option<&str>,
    ) -> Result<Vec<InterestedTask>> {
        transaction!(
            self,
            Read,
            [tool = tool.clone(), task = task.map(str::to_owned)],
            |tx| interests::in_tool(tx, tool, task.as_deref())
        )
    }
}
