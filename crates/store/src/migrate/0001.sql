CREATE TABLE tasks (
  number {serial},
  id TEXT NOT NULL UNIQUE,
  agent_namespace TEXT NOT NULL,
  agent_name TEXT NOT NULL,
  model TEXT,
  user_id TEXT NOT NULL,
  user_email TEXT,
  params TEXT NOT NULL,
  origin TEXT NOT NULL,
  state TEXT NOT NULL,
  detail TEXT,
  next_seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  last_activity BIGINT NOT NULL
);
CREATE INDEX tasks_by_state ON tasks (state, number);

CREATE TABLE snapshots (
  task_id TEXT PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
  body TEXT NOT NULL
);

CREATE TABLE turns (
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (task_id, seq)
);

CREATE TABLE allow_list (
  number {serial},
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  tool_namespace TEXT NOT NULL,
  tool TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  sealed BIGINT NOT NULL
);
CREATE INDEX allow_list_by_task ON allow_list (task_id, tool_namespace, tool, name);

CREATE TABLE interests (
  number {serial},
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  tool_namespace TEXT NOT NULL,
  tool TEXT NOT NULL,
  event TEXT NOT NULL,
  timeout_ms BIGINT,
  active BIGINT NOT NULL,
  UNIQUE (task_id, tool_namespace, tool, event)
);
CREATE INDEX interests_by_tool ON interests (tool, tool_namespace) WHERE active = 1;

CREATE TABLE events (
  id {serial},
  source TEXT NOT NULL,
  tool_namespace TEXT NOT NULL,
  tool TEXT NOT NULL,
  name TEXT,
  kind TEXT NOT NULL,
  dedupe_key TEXT,
  headers TEXT NOT NULL,
  payload {bytes} NOT NULL,
  target_task TEXT,
  state TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  fate TEXT,
  received_at BIGINT NOT NULL,
  routed_at BIGINT,
  claim_owner TEXT,
  claim_until BIGINT NOT NULL,
  claim_fence BIGINT NOT NULL
);
CREATE UNIQUE INDEX events_by_key ON events (source, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX events_unrouted ON events (id) WHERE state = 'received';
CREATE INDEX events_by_time ON events (received_at);

CREATE TABLE deliveries (
  id {serial},
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  event_id BIGINT REFERENCES events (id) ON DELETE CASCADE,
  attempt BIGINT NOT NULL,
  tool_namespace TEXT,
  tool TEXT,
  name TEXT NOT NULL,
  key TEXT,
  body TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  turn_seq BIGINT,
  created_at BIGINT NOT NULL,
  settled_at BIGINT
);
CREATE UNIQUE INDEX deliveries_by_event ON deliveries (event_id, attempt, task_id, tool_namespace, name)
  WHERE event_id IS NOT NULL;
CREATE UNIQUE INDEX deliveries_by_key ON deliveries (task_id, key) WHERE key IS NOT NULL;
CREATE INDEX deliveries_by_task ON deliveries (task_id, id);
CREATE INDEX deliveries_pending ON deliveries (task_id, id) WHERE state = 'pending';

CREATE TABLE leases (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  owner TEXT,
  until BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  PRIMARY KEY (kind, name)
);
CREATE INDEX leases_by_owner ON leases (owner) WHERE owner IS NOT NULL;

CREATE TABLE polls (
  id {serial},
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  tool_namespace TEXT NOT NULL,
  tool TEXT NOT NULL,
  event TEXT NOT NULL,
  cursor TEXT,
  seen TEXT NOT NULL,
  next_due BIGINT NOT NULL,
  failures BIGINT NOT NULL,
  last_error TEXT,
  UNIQUE (task_id, tool_namespace, tool, event)
);
CREATE INDEX polls_by_due ON polls (next_due);

CREATE TABLE channels (
  number {serial},
  id TEXT NOT NULL UNIQUE,
  task_id TEXT NOT NULL,
  tool_namespace TEXT NOT NULL,
  tool TEXT NOT NULL,
  event TEXT NOT NULL,
  state TEXT NOT NULL,
  expires_at BIGINT,
  renew_at BIGINT,
  response TEXT,
  replaces TEXT,
  failures BIGINT NOT NULL,
  last_error TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX channels_by_task ON channels (task_id);
CREATE INDEX channels_open ON channels (state, renew_at) WHERE state <> 'closed' AND state <> 'lost';

CREATE TABLE starts (
  kind TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  last_at BIGINT,
  last_task TEXT,
  last_tick BIGINT,
  next_at BIGINT,
  total BIGINT NOT NULL,
  failures BIGINT NOT NULL,
  last_error TEXT,
  PRIMARY KEY (kind, namespace, name)
);

CREATE TABLE traces (
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  entry TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (task_id, seq)
);

CREATE TABLE runs (
  number {serial},
  id TEXT NOT NULL UNIQUE,
  summary TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE api_keys (
  number {serial},
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT
);
