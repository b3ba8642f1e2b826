-- Lists of events say whether anybody got them, without counting deliveries; a replay keeps the fates before it.
ALTER TABLE events ADD COLUMN matched BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN earlier TEXT NOT NULL DEFAULT '[]';
UPDATE events SET matched = (
  SELECT COUNT(*) FROM deliveries d
  WHERE d.event_id = events.id AND d.attempt = events.attempt AND d.state <> 'discarded'
);
