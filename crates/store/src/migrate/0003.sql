-- Every channel has a callback address of its own, and a channel is found by the one it replaces.
ALTER TABLE channels ADD COLUMN callback TEXT;
CREATE UNIQUE INDEX channels_by_callback ON channels (callback) WHERE callback IS NOT NULL;
CREATE INDEX channels_by_replaced ON channels (replaces) WHERE replaces IS NOT NULL;
