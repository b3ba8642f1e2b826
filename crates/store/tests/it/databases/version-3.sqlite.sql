PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO meta VALUES('schema_version','3');
CREATE TABLE tasks (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
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
INSERT INTO tasks VALUES(1,'task-idle','shop','clerk',NULL,'key:d3ed4294bebe',NULL,'{}','{"by":"api","user":"key:d3ed4294bebe"}','idle',NULL,6,1700065021068,1700065021452);
INSERT INTO tasks VALUES(2,'task-waits','shop','clerk',NULL,'key:d3ed4294bebe',NULL,'{}','{"by":"api","user":"key:d3ed4294bebe"}','waiting','{"review":{"id":1,"reviewer":"ann@example.com","function":"till","arguments":{"amount":3}}}',3,1700065021090,1700065021186);
INSERT INTO tasks VALUES(3,'task-ended','shop','clerk',NULL,'key:d3ed4294bebe',NULL,'{}','{"by":"api","user":"key:d3ed4294bebe"}','ended','{"end":{"reason":"cancelled","message":"the task was cancelled"}}',1,1700065021140,1700065021380);
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
INSERT INTO turns VALUES('task-idle',0,'input','{"turn":"input","time":"2026-11-18T01:23:41.109Z","message":"Hello there.","parameters":{},"delivery":"1"}',1700065021110);
INSERT INTO turns VALUES('task-idle',1,'llm','{"turn":"llm","time":"2026-11-18T01:23:41.126Z","model":"sim:careful","simulation":true,"text":"I can answer this without a tool. You asked: \"Hello there.\"","calls":[],"usage":{"prompt":44,"completion":15}}',1700065021140);
INSERT INTO turns VALUES('task-idle',2,'output','{"turn":"output","time":"2026-11-18T01:23:41.152Z","message":"I can answer this without a tool. You asked: \"Hello there.\"","exposes":{}}',1700065021153);
INSERT INTO turns VALUES('task-waits',0,'input','{"turn":"input","time":"2026-11-18T01:23:41.166Z","message":"Refund money, amount: 3","parameters":{},"delivery":"2"}',1700065021173);
INSERT INTO turns VALUES('task-waits',1,'llm','{"turn":"llm","time":"2026-11-18T01:23:41.180Z","model":"sim:careful","simulation":true,"text":"","calls":[{"id":"call_e220a8397b1dcdaf","name":"till","arguments":{"object":{"amount":3}}}],"usage":{"prompt":47,"completion":3}}',1700065021181);
INSERT INTO turns VALUES('task-waits',2,'asked','{"turn":"asked","time":"2026-11-18T01:23:41.186Z","review":{"id":1,"reviewer":"ann@example.com","function":"till","arguments":{"amount":3}}}',1700065021186);
INSERT INTO turns VALUES('task-ended',0,'ended','{"turn":"ended","time":"2026-11-18T01:23:41.376Z","end":{"reason":"cancelled","message":"the task was cancelled"}}',1700065021380);
INSERT INTO turns VALUES('task-idle',3,'input','{"turn":"input","time":"2026-11-18T01:23:41.438Z","message":"from outside","parameters":{},"source":"till","event":"said","delivery":"4"}',1700065021439);
INSERT INTO turns VALUES('task-idle',4,'llm','{"turn":"llm","time":"2026-11-18T01:23:41.444Z","model":"sim:careful","simulation":true,"text":"I can answer this without a tool. You asked: \"from outside\"","calls":[],"usage":{"prompt":62,"completion":15}}',1700065021445);
INSERT INTO turns VALUES('task-idle',5,'output','{"turn":"output","time":"2026-11-18T01:23:41.452Z","message":"I can answer this without a tool. You asked: \"from outside\"","exposes":{}}',1700065021452);
CREATE TABLE allow_list (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  tool_namespace TEXT NOT NULL,
  tool TEXT NOT NULL,
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  sealed BIGINT NOT NULL
);
CREATE TABLE interests (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
  tool_namespace TEXT NOT NULL,
  tool TEXT NOT NULL,
  event TEXT NOT NULL,
  timeout_ms BIGINT,
  active BIGINT NOT NULL,
  UNIQUE (task_id, tool_namespace, tool, event)
);
INSERT INTO interests VALUES(1,'task-idle','shop','till','said',NULL,1);
INSERT INTO interests VALUES(2,'task-waits','shop','till','said',NULL,1);
INSERT INTO interests VALUES(3,'task-ended','shop','till','said',NULL,0);
CREATE TABLE events (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  source TEXT NOT NULL,
  tool_namespace TEXT NOT NULL,
  tool TEXT NOT NULL,
  name TEXT,
  kind TEXT NOT NULL,
  dedupe_key TEXT,
  headers TEXT NOT NULL,
  payload BLOB NOT NULL,
  target_task TEXT,
  state TEXT NOT NULL,
  attempt BIGINT NOT NULL,
  fate TEXT,
  received_at BIGINT NOT NULL,
  routed_at BIGINT,
  claim_owner TEXT,
  claim_until BIGINT NOT NULL,
  claim_fence BIGINT NOT NULL
, matched BIGINT NOT NULL DEFAULT 0, earlier TEXT NOT NULL DEFAULT '[]');
INSERT INTO events VALUES(1,'webhook:till','','till',NULL,'webhook',NULL,'{"headers":{"accept-encoding":"identity","content-length":"24","host":"127.0.0.1:40773","user-agent":"Python-urllib/3.11","content-type":"application/json","connection":"close"},"signature":{"whole":{"signature":"unsigned"},"tools":{"shop":{"said":{"signature":"unsigned"}}}}}',X'7b2274657874223a202266726f6d206f757473696465227d',NULL,'routed',1,'{"matched":{"total":2,"tasks":[{"task":"task-idle","event":"said"},{"task":"task-waits","event":"said"}]},"discarded":{"total":0,"because":{},"examples":[]},"triggers":[],"problems":[]}',1700065021371,1700065021408,NULL,0,1,2,'[]');
CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
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
INSERT INTO deliveries VALUES(1,'task-idle',NULL,0,NULL,NULL,'message','first','{"message":"Hello there.","parameters":{}}','delivered',NULL,0,1700065021069,1700065021111);
INSERT INTO deliveries VALUES(2,'task-waits',NULL,0,NULL,NULL,'message','first','{"message":"Refund money, amount: 3","parameters":{}}','delivered',NULL,0,1700065021090,1700065021173);
INSERT INTO deliveries VALUES(3,'task-ended',NULL,0,NULL,NULL,'control.cancel',NULL,'{}','discarded','the task ended',NULL,1700065021344,1700065021380);
INSERT INTO deliveries VALUES(4,'task-idle',1,1,'shop','till','said',NULL,'{"message":"from outside","truncated":false,"problems":[]}','delivered',NULL,3,1700065021408,1700065021439);
INSERT INTO deliveries VALUES(5,'task-waits',1,1,'shop','till','said',NULL,'{"message":"from outside","truncated":false,"problems":[]}','pending',NULL,NULL,1700065021408,NULL);
CREATE TABLE leases (
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  owner TEXT,
  until BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  PRIMARY KEY (kind, name)
);
INSERT INTO leases VALUES('task','task-idle','process-44808dc7511d54acce93c0be206c4f8c',1700065036085,1);
INSERT INTO leases VALUES('task','task-waits','process-44808dc7511d54acce93c0be206c4f8c',1700065036121,1);
INSERT INTO leases VALUES('task','task-ended',NULL,0,1);
CREATE TABLE polls (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
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
CREATE TABLE channels (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
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
, callback TEXT);
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
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  summary TEXT NOT NULL,
  body TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE TABLE api_keys (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT
);
INSERT INTO api_keys VALUES(1,'d3ed4294bebe','made at the first start','d3ed4294bebe7defdaf39ae7e030402af9d4137f3e8136c2d30d4e77acc33477','["admin"]',1700065020992,NULL,NULL);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('api_keys',1);
INSERT INTO sqlite_sequence VALUES('tasks',3);
INSERT INTO sqlite_sequence VALUES('interests',3);
INSERT INTO sqlite_sequence VALUES('deliveries',5);
INSERT INTO sqlite_sequence VALUES('events',1);
CREATE INDEX tasks_by_state ON tasks (state, number);
CREATE INDEX allow_list_by_task ON allow_list (task_id, tool_namespace, tool, name);
CREATE INDEX interests_by_tool ON interests (tool, tool_namespace) WHERE active = 1;
CREATE UNIQUE INDEX events_by_key ON events (source, dedupe_key) WHERE dedupe_key IS NOT NULL;
CREATE INDEX events_unrouted ON events (id) WHERE state = 'received';
CREATE INDEX events_by_time ON events (received_at);
CREATE UNIQUE INDEX deliveries_by_event ON deliveries (event_id, attempt, task_id, tool_namespace, name)
  WHERE event_id IS NOT NULL;
CREATE UNIQUE INDEX deliveries_by_key ON deliveries (task_id, key) WHERE key IS NOT NULL;
CREATE INDEX deliveries_by_task ON deliveries (task_id, id);
CREATE INDEX deliveries_pending ON deliveries (task_id, id) WHERE state = 'pending';
CREATE INDEX leases_by_owner ON leases (owner) WHERE owner IS NOT NULL;
CREATE INDEX polls_by_due ON polls (next_due);
CREATE INDEX channels_by_task ON channels (task_id);
CREATE INDEX channels_open ON channels (state, renew_at) WHERE state <> 'closed' AND state <> 'lost';
CREATE UNIQUE INDEX channels_by_callback ON channels (callback) WHERE callback IS NOT NULL;
CREATE INDEX channels_by_replaced ON channels (replaces) WHERE replaces IS NOT NULL;
COMMIT;
