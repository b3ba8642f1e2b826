-- Keys are bound to namespaces, to a person and to the key they replace. Sessions of the dashboard are known to every process.
-- Who did what is kept as a chain.
ALTER TABLE api_keys ADD COLUMN namespaces TEXT;
ALTER TABLE api_keys ADD COLUMN holder TEXT;
ALTER TABLE api_keys ADD COLUMN family TEXT;
CREATE INDEX tasks_by_namespace ON tasks (agent_namespace, number);
CREATE TABLE sessions (
  number {serial},
  kind TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  body TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_end ON sessions (expires_at);
CREATE TABLE audit (
  seq BIGINT PRIMARY KEY,
  at BIGINT NOT NULL,
  namespace TEXT,
  entry TEXT NOT NULL,
  hash TEXT NOT NULL
);
CREATE TABLE audit_head (
  id BIGINT PRIMARY KEY,
  seq BIGINT NOT NULL,
  hash TEXT NOT NULL
);
INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, '');
CREATE TABLE audit_checkpoints (
  seq BIGINT PRIMARY KEY,
  hash TEXT NOT NULL,
  statement TEXT NOT NULL,
  signature TEXT NOT NULL
);
