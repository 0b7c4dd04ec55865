-- name: put_point
INSERT INTO points (session, number, kind, key, value, tip, time, weight, source, user)
VALUES (
    :session, (SELECT coalesce(max(number), 0) + 1 FROM points WHERE session = :session),
    :kind, :key, :value, :tip, :time, :weight, :source, :user
)
RETURNING number;

-- name: take_point
INSERT INTO points (session, number, kind, key, value, tip, time, weight, source, user, superseded_by, taken_back)
VALUES (:session, :number, :kind, :key, :value, :tip, :time, :weight, :source, :user, :superseded_by, :taken_back);

-- name: drop_points
DELETE FROM points WHERE session = :session;

-- name: touch_anchor
UPDATE points SET time = :time, weight = max(weight, :weight)
WHERE session = :session AND kind = :kind AND key = :key AND kind = 'anchor' AND superseded_by IS NULL AND NOT taken_back;

-- name: is_put
SELECT EXISTS (SELECT 1 FROM points WHERE session = :session AND kind = :kind AND key = :key AND tip = :tip AND value = :value);

-- name: supersede_key
UPDATE points SET superseded_by = :number
WHERE session = :session AND kind = :kind AND key = :key AND +number < :number AND superseded_by IS NULL AND NOT taken_back
    AND (time <= :time OR source <> 'rules');

-- What was told earlier and is only put now: another process was quicker.
-- name: supersede_late
UPDATE points SET superseded_by = (
    SELECT number FROM points
    WHERE session = :session AND kind = :kind AND key = :key AND time > :time AND source = 'rules' AND superseded_by IS NULL AND NOT taken_back
    ORDER BY time DESC, number DESC LIMIT 1
)
WHERE session = :session AND number = :number;

-- name: supersede
UPDATE points SET superseded_by = :by WHERE session = :session AND number = :number AND superseded_by IS NULL AND NOT taken_back;

-- name: take_back
UPDATE points SET taken_back = 1
WHERE number = :number AND session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant) AND superseded_by IS NULL;

-- name: surplus
SELECT number, superseded_by FROM points WHERE session = :session
ORDER BY superseded_by IS NULL AND NOT taken_back DESC, weight DESC, time DESC, number DESC
LIMIT -1 OFFSET :most;

-- A point goes with all that it took the place of.
-- name: drop_point
DELETE FROM points WHERE session = :session AND number IN (
    WITH RECURSIVE chain(number) AS (
        SELECT number FROM points WHERE session = :session AND number = :number
        UNION
        SELECT p.number FROM points p JOIN chain c ON p.superseded_by = c.number WHERE p.session = :session
    )
    SELECT number FROM chain
);

-- name: points_told_by
SELECT number, superseded_by FROM points WHERE session = :session AND tip = :tip AND (:source = '' OR source = :source);

-- name: pass_on
UPDATE points SET superseded_by = :by WHERE session = :session AND superseded_by = :number;

-- name: remove_point
DELETE FROM points WHERE session = :session AND number = :number;

-- name: restore_points
UPDATE points SET superseded_by = NULL
WHERE session = :session AND superseded_by NOT IN (SELECT number FROM points WHERE session = :session);

-- name: note_read
UPDATE sessions SET read_to = max(read_to, coalesce((SELECT id FROM messages WHERE tip = :tip AND session = :session), 0)) WHERE id = :session;

-- name: note_all_read
UPDATE sessions SET read_to = coalesce((SELECT max(id) FROM messages WHERE session = :session), 0) WHERE id = :session;

-- Conversations with messages that were not read, the last used first, with the message behind which they were not: a message has a higher number
-- than its parent, so it is the first one on the way back that was read.
-- name: unread
SELECT s.tenant, s.name, s.user, s.tip, (
    WITH RECURSIVE up(parent) AS (
        SELECT m.parent
        UNION ALL
        SELECT p.parent FROM up CROSS JOIN messages p ON p.tip = up.parent AND p.session = s.id WHERE p.id > s.read_to
    )
    SELECT u.parent FROM up u WHERE NOT EXISTS (SELECT 1 FROM messages p WHERE p.tip = u.parent AND p.session = s.id AND p.id > s.read_to)
)
FROM sessions s JOIN messages m ON m.tip = s.tip AND m.session = s.id
WHERE m.id > s.read_to ORDER BY s.last_used DESC, s.id DESC LIMIT :limit;

-- name: points
SELECT p.number, p.kind, p.key, p.value, p.tip, p.time, p.weight, p.source, p.user, p.superseded_by, p.taken_back, s.tenant, s.name
FROM sessions s JOIN points p ON p.session = s.id
WHERE s.name = :name AND s.tenant = :tenant
ORDER BY p.number;

-- name: points_of_user
SELECT p.number, p.kind, p.key, p.value, p.tip, p.time, p.weight, p.source, p.user, p.superseded_by, p.taken_back, s.tenant, s.name
FROM (
    SELECT id, tenant, name FROM sessions WHERE tenant = :tenant AND user = :user ORDER BY last_used DESC, id DESC LIMIT :sessions
) s CROSS JOIN points p ON p.session = s.id
WHERE p.user = :user AND p.superseded_by IS NULL AND NOT p.taken_back
ORDER BY p.kind = 'anchor', p.time DESC, s.id DESC, p.number DESC LIMIT :limit;

-- name: tenants_of_user
SELECT DISTINCT tenant FROM sessions WHERE user = :user ORDER BY tenant;
