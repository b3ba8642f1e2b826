-- Models of one provider share caps: the row of the provider is one of the lanes, and no run counts against it alone.
ALTER TABLE campaign_lanes ADD COLUMN provider BIGINT;
