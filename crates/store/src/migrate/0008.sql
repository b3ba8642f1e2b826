-- Campaigns belong to namespaces, and what their models cost is counted, in billionths of a currency; prices are what a token costs,
-- in millionths of millionths.
ALTER TABLE campaigns ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
ALTER TABLE campaign_lanes ADD COLUMN max_cost BIGINT;
ALTER TABLE campaign_lanes ADD COLUMN used_cost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE campaign_lanes ADD COLUMN input_price BIGINT;
ALTER TABLE campaign_lanes ADD COLUMN output_price BIGINT;
ALTER TABLE campaign_lanes ADD COLUMN currency TEXT;
-- Runs that workers were lost with are few, and those of one model are found by it.
CREATE INDEX campaign_runs_lost ON campaign_runs (campaign_id, place) WHERE state = 'waiting' AND gate = 'open' AND losses > 0;
CREATE INDEX campaign_runs_lanes ON campaign_runs (campaign_id, lane, place) WHERE state = 'waiting' AND gate = 'open';
