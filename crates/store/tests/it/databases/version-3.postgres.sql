CREATE TABLE allow_list (
    number bigint NOT NULL,
    task_id text NOT NULL,
    tool_namespace text NOT NULL,
    tool text NOT NULL,
    name text NOT NULL,
    value text NOT NULL,
    sealed bigint NOT NULL
);
ALTER TABLE allow_list ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME allow_list_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE api_keys (
    number bigint NOT NULL,
    id text NOT NULL,
    name text NOT NULL,
    hash text NOT NULL,
    scopes text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint,
    revoked_at bigint
);
ALTER TABLE api_keys ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME api_keys_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE channels (
    number bigint NOT NULL,
    id text NOT NULL,
    task_id text NOT NULL,
    tool_namespace text NOT NULL,
    tool text NOT NULL,
    event text NOT NULL,
    state text NOT NULL,
    expires_at bigint,
    renew_at bigint,
    response text,
    replaces text,
    failures bigint NOT NULL,
    last_error text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    callback text
);
ALTER TABLE channels ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME channels_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE deliveries (
    id bigint NOT NULL,
    task_id text NOT NULL,
    event_id bigint,
    attempt bigint NOT NULL,
    tool_namespace text,
    tool text,
    name text NOT NULL,
    key text,
    body text NOT NULL,
    state text NOT NULL,
    reason text,
    turn_seq bigint,
    created_at bigint NOT NULL,
    settled_at bigint
);
ALTER TABLE deliveries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME deliveries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE events (
    id bigint NOT NULL,
    source text NOT NULL,
    tool_namespace text NOT NULL,
    tool text NOT NULL,
    name text,
    kind text NOT NULL,
    dedupe_key text,
    headers text NOT NULL,
    payload bytea NOT NULL,
    target_task text,
    state text NOT NULL,
    attempt bigint NOT NULL,
    fate text,
    received_at bigint NOT NULL,
    routed_at bigint,
    claim_owner text,
    claim_until bigint NOT NULL,
    claim_fence bigint NOT NULL,
    matched bigint DEFAULT 0 NOT NULL,
    earlier text DEFAULT '[]'::text NOT NULL
);
ALTER TABLE events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE interests (
    number bigint NOT NULL,
    task_id text NOT NULL,
    tool_namespace text NOT NULL,
    tool text NOT NULL,
    event text NOT NULL,
    timeout_ms bigint,
    active bigint NOT NULL
);
ALTER TABLE interests ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME interests_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE leases (
    kind text NOT NULL,
    name text NOT NULL,
    owner text,
    until bigint NOT NULL,
    fence bigint NOT NULL
);
CREATE TABLE meta (
    key text NOT NULL,
    value text NOT NULL
);
CREATE TABLE polls (
    id bigint NOT NULL,
    task_id text NOT NULL,
    tool_namespace text NOT NULL,
    tool text NOT NULL,
    event text NOT NULL,
    cursor text,
    seen text NOT NULL,
    next_due bigint NOT NULL,
    failures bigint NOT NULL,
    last_error text
);
ALTER TABLE polls ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME polls_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE runs (
    number bigint NOT NULL,
    id text NOT NULL,
    summary text NOT NULL,
    body text NOT NULL,
    created_at bigint NOT NULL
);
ALTER TABLE runs ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME runs_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE snapshots (
    task_id text NOT NULL,
    body text NOT NULL
);
CREATE TABLE starts (
    kind text NOT NULL,
    namespace text NOT NULL,
    name text NOT NULL,
    last_at bigint,
    last_task text,
    last_tick bigint,
    next_at bigint,
    total bigint NOT NULL,
    failures bigint NOT NULL,
    last_error text
);
CREATE TABLE tasks (
    number bigint NOT NULL,
    id text NOT NULL,
    agent_namespace text NOT NULL,
    agent_name text NOT NULL,
    model text,
    user_id text NOT NULL,
    user_email text,
    params text NOT NULL,
    origin text NOT NULL,
    state text NOT NULL,
    detail text,
    next_seq bigint NOT NULL,
    created_at bigint NOT NULL,
    last_activity bigint NOT NULL
);
ALTER TABLE tasks ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME tasks_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE traces (
    task_id text NOT NULL,
    seq bigint NOT NULL,
    entry text NOT NULL,
    created_at bigint NOT NULL
);
CREATE TABLE turns (
    task_id text NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    created_at bigint NOT NULL
);
INSERT INTO api_keys OVERRIDING SYSTEM VALUE VALUES (1, '87f080621eff', 'made at the first start', '87f080621eff6a4e1bf4dc8399fd8e8e5a8d50292daee1195d3479607094166d', '["admin"]', 1700065040517, NULL, NULL);
INSERT INTO deliveries OVERRIDING SYSTEM VALUE VALUES (1, 'task-idle', NULL, 0, NULL, NULL, 'message', 'first', '{"message":"Hello there.","parameters":{}}', 'delivered', NULL, 0, 1700065040688, 1700065040853);
INSERT INTO deliveries OVERRIDING SYSTEM VALUE VALUES (2, 'task-waits', NULL, 0, NULL, NULL, 'message', 'first', '{"message":"Refund money, amount: 3","parameters":{}}', 'delivered', NULL, 0, 1700065040737, 1700065040857);
INSERT INTO deliveries OVERRIDING SYSTEM VALUE VALUES (3, 'task-ended', NULL, 0, NULL, NULL, 'control.cancel', NULL, '{}', 'discarded', 'the task ended', NULL, 1700065041119, 1700065041200);
INSERT INTO deliveries OVERRIDING SYSTEM VALUE VALUES (5, 'task-waits', 1, 1, 'shop', 'till', 'said', NULL, '{"message":"from outside","truncated":false,"problems":[]}', 'pending', NULL, NULL, 1700065041228, NULL);
INSERT INTO deliveries OVERRIDING SYSTEM VALUE VALUES (6, 'task-ended', 1, 1, 'shop', 'till', 'said', NULL, '{"message":"from outside","truncated":false,"problems":[]}', 'discarded', 'the task had ended', NULL, 1700065041228, 1700065041228);
INSERT INTO deliveries OVERRIDING SYSTEM VALUE VALUES (4, 'task-idle', 1, 1, 'shop', 'till', 'said', NULL, '{"message":"from outside","truncated":false,"problems":[]}', 'delivered', NULL, 3, 1700065041227, 1700065041314);
INSERT INTO events OVERRIDING SYSTEM VALUE VALUES (1, 'webhook:till', '', 'till', NULL, 'webhook', NULL, '{"headers":{"accept-encoding":"identity","content-length":"24","host":"127.0.0.1:43181","user-agent":"Python-urllib/3.11","content-type":"application/json","connection":"close"},"signature":{"whole":{"signature":"unsigned"},"tools":{"shop":{"said":{"signature":"unsigned"}}}}}', '\x7b2274657874223a202266726f6d206f757473696465227d', NULL, 'routed', 1, '{"matched":{"total":3,"tasks":[{"task":"task-idle","event":"said"},{"task":"task-waits","event":"said"},{"task":"task-ended","event":"said"}]},"discarded":{"total":0,"because":{},"examples":[]},"triggers":[],"problems":[]}', 1700065041143, 1700065041236, NULL, 0, 1, 2, '[]');
INSERT INTO interests OVERRIDING SYSTEM VALUE VALUES (1, 'task-idle', 'shop', 'till', 'said', NULL, 1);
INSERT INTO interests OVERRIDING SYSTEM VALUE VALUES (2, 'task-waits', 'shop', 'till', 'said', NULL, 1);
INSERT INTO interests OVERRIDING SYSTEM VALUE VALUES (3, 'task-ended', 'shop', 'till', 'said', NULL, 0);
INSERT INTO leases VALUES ('task', 'task-idle', 'process-c4e8533f5964a3ba4778db6cf18c2014', 1700065055721, 1);
INSERT INTO leases VALUES ('task', 'task-waits', 'process-c4e8533f5964a3ba4778db6cf18c2014', 1700065055753, 1);
INSERT INTO leases VALUES ('task', 'task-ended', NULL, 0, 1);
INSERT INTO meta VALUES ('schema_version', '3');
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (2, 'task-waits', 'shop', 'clerk', NULL, 'key:87f080621eff', NULL, '{}', '{"by":"api","user":"key:87f080621eff"}', 'waiting', '{"review":{"id":1,"reviewer":"ann@example.com","function":"till","arguments":{"amount":3}}}', 3, 1700065040711, 1700065040920);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (3, 'task-ended', 'shop', 'clerk', NULL, 'key:87f080621eff', NULL, '{}', '{"by":"api","user":"key:87f080621eff"}', 'ended', '{"end":{"reason":"cancelled","message":"the task was cancelled"}}', 1, 1700065040788, 1700065041208);
INSERT INTO tasks OVERRIDING SYSTEM VALUE VALUES (1, 'task-idle', 'shop', 'clerk', NULL, 'key:87f080621eff', NULL, '{}', '{"by":"api","user":"key:87f080621eff"}', 'idle', NULL, 6, 1700065040657, 1700065041368);
INSERT INTO turns VALUES ('task-idle', 0, 'input', '{"turn":"input","time":"2026-11-18T01:24:00.821Z","message":"Hello there.","parameters":{},"delivery":"1"}', 1700065040850);
INSERT INTO turns VALUES ('task-waits', 0, 'input', '{"turn":"input","time":"2026-11-18T01:24:00.828Z","message":"Refund money, amount: 3","parameters":{},"delivery":"2"}', 1700065040852);
INSERT INTO turns VALUES ('task-waits', 1, 'llm', '{"turn":"llm","time":"2026-11-18T01:24:00.870Z","model":"sim:careful","simulation":true,"text":"","calls":[{"id":"call_e220a8397b1dcdaf","name":"till","arguments":{"object":{"amount":3}}}],"usage":{"prompt":47,"completion":3}}', 1700065040887);
INSERT INTO turns VALUES ('task-waits', 2, 'asked', '{"turn":"asked","time":"2026-11-18T01:24:00.905Z","review":{"id":1,"reviewer":"ann@example.com","function":"till","arguments":{"amount":3}}}', 1700065040909);
INSERT INTO turns VALUES ('task-idle', 1, 'llm', '{"turn":"llm","time":"2026-11-18T01:24:00.884Z","model":"sim:careful","simulation":true,"text":"I can answer this without a tool. You asked: \"Hello there.\"","calls":[],"usage":{"prompt":44,"completion":15}}', 1700065040920);
INSERT INTO turns VALUES ('task-idle', 2, 'output', '{"turn":"output","time":"2026-11-18T01:24:00.972Z","message":"I can answer this without a tool. You asked: \"Hello there.\"","exposes":{}}', 1700065040988);
INSERT INTO turns VALUES ('task-ended', 0, 'ended', '{"turn":"ended","time":"2026-11-18T01:24:01.163Z","end":{"reason":"cancelled","message":"the task was cancelled"}}', 1700065041181);
INSERT INTO turns VALUES ('task-idle', 3, 'input', '{"turn":"input","time":"2026-11-18T01:24:01.296Z","message":"from outside","parameters":{},"source":"till","event":"said","delivery":"4"}', 1700065041314);
INSERT INTO turns VALUES ('task-idle', 4, 'llm', '{"turn":"llm","time":"2026-11-18T01:24:01.316Z","model":"sim:careful","simulation":true,"text":"I can answer this without a tool. You asked: \"from outside\"","calls":[],"usage":{"prompt":62,"completion":15}}', 1700065041347);
INSERT INTO turns VALUES ('task-idle', 5, 'output', '{"turn":"output","time":"2026-11-18T01:24:01.364Z","message":"I can answer this without a tool. You asked: \"from outside\"","exposes":{}}', 1700065041366);
SELECT pg_catalog.setval('allow_list_number_seq', 1, false);
SELECT pg_catalog.setval('api_keys_number_seq', 1, true);
SELECT pg_catalog.setval('channels_number_seq', 1, false);
SELECT pg_catalog.setval('deliveries_id_seq', 6, true);
SELECT pg_catalog.setval('events_id_seq', 1, true);
SELECT pg_catalog.setval('interests_number_seq', 3, true);
SELECT pg_catalog.setval('polls_id_seq', 1, false);
SELECT pg_catalog.setval('runs_number_seq', 1, false);
SELECT pg_catalog.setval('tasks_number_seq', 3, true);
ALTER TABLE ONLY allow_list
    ADD CONSTRAINT allow_list_pkey PRIMARY KEY (number);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_id_key UNIQUE (id);
ALTER TABLE ONLY api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (number);
ALTER TABLE ONLY channels
    ADD CONSTRAINT channels_id_key UNIQUE (id);
ALTER TABLE ONLY channels
    ADD CONSTRAINT channels_pkey PRIMARY KEY (number);
ALTER TABLE ONLY deliveries
    ADD CONSTRAINT deliveries_pkey PRIMARY KEY (id);
ALTER TABLE ONLY events
    ADD CONSTRAINT events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY interests
    ADD CONSTRAINT interests_pkey PRIMARY KEY (number);
ALTER TABLE ONLY interests
    ADD CONSTRAINT interests_task_id_tool_namespace_tool_event_key UNIQUE (task_id, tool_namespace, tool, event);
ALTER TABLE ONLY leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (kind, name);
ALTER TABLE ONLY meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (key);
ALTER TABLE ONLY polls
    ADD CONSTRAINT polls_pkey PRIMARY KEY (id);
ALTER TABLE ONLY polls
    ADD CONSTRAINT polls_task_id_tool_namespace_tool_event_key UNIQUE (task_id, tool_namespace, tool, event);
ALTER TABLE ONLY runs
    ADD CONSTRAINT runs_id_key UNIQUE (id);
ALTER TABLE ONLY runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (number);
ALTER TABLE ONLY snapshots
    ADD CONSTRAINT snapshots_pkey PRIMARY KEY (task_id);
ALTER TABLE ONLY starts
    ADD CONSTRAINT starts_pkey PRIMARY KEY (kind, namespace, name);
ALTER TABLE ONLY tasks
    ADD CONSTRAINT tasks_id_key UNIQUE (id);
ALTER TABLE ONLY tasks
    ADD CONSTRAINT tasks_pkey PRIMARY KEY (number);
ALTER TABLE ONLY traces
    ADD CONSTRAINT traces_pkey PRIMARY KEY (task_id, seq);
ALTER TABLE ONLY turns
    ADD CONSTRAINT turns_pkey PRIMARY KEY (task_id, seq);
CREATE INDEX allow_list_by_task ON allow_list USING btree (task_id, tool_namespace, tool, name);
CREATE UNIQUE INDEX channels_by_callback ON channels USING btree (callback) WHERE (callback IS NOT NULL);
CREATE INDEX channels_by_replaced ON channels USING btree (replaces) WHERE (replaces IS NOT NULL);
CREATE INDEX channels_by_task ON channels USING btree (task_id);
CREATE INDEX channels_open ON channels USING btree (state, renew_at) WHERE ((state <> 'closed'::text) AND (state <> 'lost'::text));
CREATE UNIQUE INDEX deliveries_by_event ON deliveries USING btree (event_id, attempt, task_id, tool_namespace, name) WHERE (event_id IS NOT NULL);
CREATE UNIQUE INDEX deliveries_by_key ON deliveries USING btree (task_id, key) WHERE (key IS NOT NULL);
CREATE INDEX deliveries_by_task ON deliveries USING btree (task_id, id);
CREATE INDEX deliveries_pending ON deliveries USING btree (task_id, id) WHERE (state = 'pending'::text);
CREATE UNIQUE INDEX events_by_key ON events USING btree (source, dedupe_key) WHERE (dedupe_key IS NOT NULL);
CREATE INDEX events_by_time ON events USING btree (received_at);
CREATE INDEX events_unrouted ON events USING btree (id) WHERE (state = 'received'::text);
CREATE INDEX interests_by_tool ON interests USING btree (tool, tool_namespace) WHERE (active = 1);
CREATE INDEX leases_by_owner ON leases USING btree (owner) WHERE (owner IS NOT NULL);
CREATE INDEX polls_by_due ON polls USING btree (next_due);
CREATE INDEX tasks_by_state ON tasks USING btree (state, number);
ALTER TABLE ONLY allow_list
    ADD CONSTRAINT allow_list_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY deliveries
    ADD CONSTRAINT deliveries_event_id_fkey FOREIGN KEY (event_id) REFERENCES events(id) ON DELETE CASCADE;
ALTER TABLE ONLY deliveries
    ADD CONSTRAINT deliveries_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY interests
    ADD CONSTRAINT interests_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY polls
    ADD CONSTRAINT polls_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY snapshots
    ADD CONSTRAINT snapshots_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY traces
    ADD CONSTRAINT traces_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
ALTER TABLE ONLY turns
    ADD CONSTRAINT turns_task_id_fkey FOREIGN KEY (task_id) REFERENCES tasks(id) ON DELETE CASCADE;
