-- Campaigns: what is planned, the runs that are handed out, what came of them, and what all workers together may spend.
CREATE TABLE campaigns (
  id {serial},
  name TEXT NOT NULL,
  number BIGINT NOT NULL,
  state TEXT NOT NULL,
  format BIGINT NOT NULL,
  program TEXT NOT NULL,
  plan TEXT NOT NULL,
  traces TEXT,
  total BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  ended_at BIGINT,
  remark TEXT,
  UNIQUE (name, number)
);
CREATE TABLE campaign_blobs (
  digest TEXT PRIMARY KEY,
  body {bytes} NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE TABLE campaign_blob_uses (
  campaign_id BIGINT NOT NULL,
  digest TEXT NOT NULL,
  PRIMARY KEY (campaign_id, digest)
);
CREATE INDEX campaign_blob_uses_by_digest ON campaign_blob_uses (digest);
CREATE TABLE campaign_runs (
  campaign_id BIGINT NOT NULL,
  place BIGINT NOT NULL,
  kind TEXT NOT NULL,
  document BIGINT NOT NULL,
  subject BIGINT NOT NULL,
  repeat BIGINT NOT NULL,
  lane BIGINT NOT NULL,
  state TEXT NOT NULL,
  gate TEXT NOT NULL,
  due_at BIGINT NOT NULL,
  owner TEXT,
  until BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  second_owner TEXT,
  second_fence BIGINT NOT NULL,
  losses BIGINT NOT NULL,
  retries BIGINT NOT NULL,
  PRIMARY KEY (campaign_id, place)
);
CREATE INDEX campaign_runs_waiting ON campaign_runs (campaign_id, place) WHERE state = 'waiting' AND gate = 'open';
CREATE INDEX campaign_runs_running ON campaign_runs (campaign_id, until) WHERE state = 'running';
CREATE INDEX campaign_runs_gated ON campaign_runs (campaign_id, subject, document) WHERE gate <> 'open';
CREATE INDEX campaign_runs_before ON campaign_runs (campaign_id, subject, document) WHERE kind <> 'attack';
CREATE TABLE campaign_results (
  campaign_id BIGINT NOT NULL,
  place BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  record TEXT NOT NULL,
  trace TEXT,
  finished_at BIGINT NOT NULL,
  PRIMARY KEY (campaign_id, place)
);
CREATE INDEX campaign_results_by_trace ON campaign_results (trace) WHERE trace IS NOT NULL;
CREATE TABLE campaign_counts (
  campaign_id BIGINT NOT NULL,
  subject BIGINT NOT NULL,
  document BIGINT NOT NULL,
  kind TEXT NOT NULL,
  outcome TEXT NOT NULL,
  reason TEXT NOT NULL,
  runs BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  milliseconds BIGINT NOT NULL,
  PRIMARY KEY (campaign_id, subject, document, kind, outcome, reason)
);
CREATE TABLE campaign_lanes (
  campaign_id BIGINT NOT NULL,
  lane BIGINT NOT NULL,
  name TEXT NOT NULL,
  max_tokens BIGINT,
  max_concurrent BIGINT,
  requests_per_minute BIGINT,
  used_tokens BIGINT NOT NULL,
  used_requests BIGINT NOT NULL,
  next_request_at BIGINT NOT NULL,
  slow_until BIGINT NOT NULL,
  slowed BIGINT NOT NULL,
  PRIMARY KEY (campaign_id, lane)
);
CREATE TABLE campaign_workers (
  campaign_id BIGINT NOT NULL,
  owner TEXT NOT NULL,
  program TEXT NOT NULL,
  jobs BIGINT NOT NULL,
  joined_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  left_at BIGINT,
  remark TEXT,
  PRIMARY KEY (campaign_id, owner)
);
