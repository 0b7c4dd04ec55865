-- What the requests cost, in prompt tokens that are not cached; what came before is not known, and counts as nothing.
ALTER TABLE sessions ADD COLUMN cost_all REAL NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cost_sent REAL NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cost_summaries REAL NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cached_expected INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN reported_requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN reported_prompt INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN reported_cached INTEGER NOT NULL DEFAULT 0;
