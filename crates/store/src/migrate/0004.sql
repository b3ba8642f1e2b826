-- Commands to a task have a queue of their own. A task that has something to do says since when, so that it is found
-- without looking through all that is pending. What routing composes of an event is kept once for all who get it.
ALTER TABLE deliveries ADD COLUMN command BIGINT NOT NULL DEFAULT 0;
UPDATE deliveries SET command = 1 WHERE event_id IS NULL
  AND name IN ('control.approve', 'control.deny', 'control.cancel', 'control.interrupt', 'control.resume');
DROP INDEX deliveries_pending;
CREATE INDEX deliveries_pending ON deliveries (task_id, id) WHERE state = 'pending' AND command = 0;
CREATE INDEX commands_pending ON deliveries (task_id, id) WHERE state = 'pending' AND command = 1;

ALTER TABLE tasks ADD COLUMN ready_at BIGINT;
UPDATE tasks SET ready_at = last_activity WHERE state = 'running'
  OR (state IN ('idle', 'interrupted') AND id IN (SELECT d.task_id FROM deliveries d WHERE d.state = 'pending' AND d.command = 0))
  OR (state <> 'ended' AND id IN (SELECT d.task_id FROM deliveries d WHERE d.state = 'pending' AND d.command = 1));
CREATE INDEX tasks_ready ON tasks (ready_at, number) WHERE ready_at IS NOT NULL;
CREATE INDEX tasks_by_activity ON tasks (last_activity);

CREATE TABLE bodies (
  id {serial},
  event_id BIGINT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
  body TEXT NOT NULL
);
CREATE INDEX bodies_by_event ON bodies (event_id);
ALTER TABLE deliveries ADD COLUMN body_id BIGINT;
CREATE INDEX traces_by_time ON traces (created_at);
