-- Whose a session is (`X-User-Id`), and what has been chosen for it: kept from retention's sweep, cleared up to a tip, settings of its own, a tag.
ALTER TABLE sessions ADD COLUMN user BLOB NOT NULL DEFAULT x'';
ALTER TABLE sessions ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN cleared TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN overrides TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sessions ADD COLUMN tag BLOB NOT NULL DEFAULT x'';

CREATE INDEX sessions_by_user ON sessions (tenant, user, last_used);
