-- How often somebody tried to sign in is known to every process: the time from which on all of it is forgotten.
CREATE TABLE attempts (
  kind TEXT NOT NULL,
  who TEXT NOT NULL,
  free_at BIGINT NOT NULL,
  PRIMARY KEY (kind, who)
);
CREATE INDEX attempts_by_end ON attempts (free_at);
