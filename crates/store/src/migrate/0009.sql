-- An event that is to be routed again waits since that was asked for, not since it came.
ALTER TABLE events ADD COLUMN replayed_at BIGINT;
CREATE INDEX events_replayed ON events (replayed_at) WHERE replayed_at IS NOT NULL;
