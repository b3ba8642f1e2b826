-- Campaigns belong to namespaces, and what their models cost is counted, in billionths of a currency; prices are what a token costs,
-- in millionths of millionths.
ALTER TABLE campaigns ADD COLUMN namespace TEXT NOT NULL DEFAULT '';
ALTER TABLE campaign_lanes ADD COLUMN max_cost BIGINT;
ALTER TABLE campaign_lanes ADD COLUMN used_cost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE campaign_lanes ADD COLUMN input_price BIGINT;
ALTER TABLE campaign_lanes ADD COLUMN output_price BIGINT;
ALTER TABLE campaign_lanes ADD COLUMN currency TEXT;
