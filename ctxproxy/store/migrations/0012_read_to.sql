-- Up to which of its messages (`messages.id`) a session was read for memory points; where there are some, it was read whole.
ALTER TABLE sessions ADD COLUMN read_to INTEGER NOT NULL DEFAULT 0;

UPDATE sessions SET read_to = coalesce((SELECT max(m.id) FROM messages m WHERE m.session = sessions.id), 0)
WHERE id IN (SELECT session FROM points);
