-- name: digest
SELECT d.tip, d.text, d.messages, d.created FROM digests d
WHERE d.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant);

-- name: put_digest
INSERT OR REPLACE INTO digests (session, tip, text, messages, created) VALUES (:session, :tip, :text, :messages, :created);

-- name: preload
SELECT p.messages, p.items, p.created FROM preloads p
WHERE p.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant);

-- name: put_preload
INSERT INTO preloads (session, messages, items, created) VALUES (:session, :messages, :items, :created) ON CONFLICT (session) DO NOTHING;

-- name: put_source
INSERT OR IGNORE INTO preload_sources (preload, source) VALUES (:session, :source);

-- name: copy_preload
INSERT INTO preloads (session, messages, items, created)
SELECT :session, messages, items, created FROM preloads WHERE session = :of ON CONFLICT (session) DO NOTHING;

-- name: copy_sources
INSERT INTO preload_sources (preload, source) SELECT :session, source FROM preload_sources WHERE preload = :of;

-- name: drop_preload
DELETE FROM preloads WHERE session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant);

-- name: restore
SELECT r.tip, r.turns FROM restores r
WHERE r.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant);

-- name: put_restore
INSERT OR REPLACE INTO restores (session, tip, turns) VALUES (:session, :tip, :turns);
