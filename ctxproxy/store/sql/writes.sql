-- name: session_row
SELECT id, tip, messages FROM sessions WHERE name = :name AND tenant = :tenant;

-- name: is_there
SELECT 1 FROM sessions WHERE name = :name AND tenant = :tenant AND created = :made;

-- name: open_session
INSERT INTO sessions (
    tenant, name, tip, manner, frame, system, model, profile, fixed_tokens, recall, user,
    created, last_used, requests, tokens_in, tokens_sent, compactions, messages, turns, revision
) VALUES (
    :tenant, :name, '', :manner, :frame, coalesce(:system, :no_system), coalesce(:model, x''), :profile, :fixed_tokens, :recall, :user,
    :now, :now, 0, 0, 0, 0, 0, 0, random()
)
ON CONFLICT (name, tenant) DO UPDATE SET
    last_used = :now,
    manner = CASE :manner WHEN 'unknown' THEN manner ELSE :manner END,
    frame = CASE :frame WHEN '' THEN frame ELSE :frame END,
    system = coalesce(:system, system),
    user = CASE :user WHEN x'' THEN user ELSE :user END,
    model = coalesce(:model, model),
    profile = CASE WHEN :model IS NULL THEN profile ELSE :profile END,
    fixed_tokens = CASE WHEN :model IS NULL THEN fixed_tokens ELSE :fixed_tokens END
RETURNING id, tip, messages;

-- name: choose
UPDATE sessions SET
    kept = coalesce(:kept, kept), cleared = coalesce(:cleared, cleared), overrides = coalesce(:overrides, overrides), tag = coalesce(:tag, tag)
WHERE id = :session;

-- name: change_session
UPDATE sessions SET
    tip = :tip, messages = messages + :messages, turns = turns + :turns, requests = requests + :requests, tokens_in = tokens_in + :tokens_in,
    tokens_sent = tokens_sent + :tokens_sent, compactions = compactions + :compactions,
    cost_all = cost_all + :cost_all, cost_sent = cost_sent + :cost_sent, cost_summaries = cost_summaries + :cost_summaries,
    cached_expected = cached_expected + :cached_expected, reported_requests = reported_requests + :reported_requests,
    reported_prompt = reported_prompt + :reported_prompt, reported_cached = reported_cached + :reported_cached
WHERE id = :session;

-- name: message
SELECT id, body, partial FROM messages WHERE tip = :tip AND session = :session;

-- name: put_body
INSERT INTO bodies (digest, raw) VALUES (:digest, :raw) ON CONFLICT (digest) DO NOTHING;

-- name: insert_message
INSERT INTO messages (session, tip, parent, body, role, tokens, created, partial, leaf)
VALUES (:session, :tip, :parent, coalesce(:body, (SELECT id FROM bodies WHERE digest = :digest)), :role, :tokens, :created, :partial, :leaf);

-- name: no_leaf
UPDATE messages SET leaf = 0 WHERE tip = :tip AND session = :session AND leaf = 1;

-- name: replace_message
UPDATE messages SET body = (SELECT id FROM bodies WHERE digest = :digest), role = :role, tokens = :tokens, created = :created, partial = 0
WHERE id = :id;

-- name: raise_revision
UPDATE sessions SET revision = random() WHERE id = :session;

-- name: drop_body
DELETE FROM bodies WHERE id = :body AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.body = :body);

-- name: put_checkpoint
INSERT OR REPLACE INTO checkpoints (session, tip, variant, decision, created, wants)
VALUES (:session, :tip, :variant, :decision, :created, :wants);

-- name: put_summary
INSERT INTO summaries (session, tip, text, kind, model, messages, tokens, start, "end", created)
VALUES (:session, :tip, :text, :kind, :model, :messages, :tokens, :start, :end, :created)
ON CONFLICT (session, tip) DO UPDATE SET
    text = :text, kind = :kind, model = :model, messages = :messages, tokens = :tokens, start = :start, "end" = :end, created = :created
WHERE NOT (kind = 'llm' AND :kind <> 'llm');

-- name: put_due
INSERT OR REPLACE INTO dues (session, kind, tip, due) VALUES (:session, :kind, :tip, :due);

-- name: drop_due
DELETE FROM dues WHERE session = :session AND kind = :kind AND tip = :tip;

-- name: forgotten
SELECT tip FROM forgotten WHERE session = :session;

-- name: pinned
SELECT text FROM pins WHERE session = :session;

-- name: put_pin
INSERT OR REPLACE INTO pins (session, number, text, created) VALUES (:session, :number, :text, :created);

-- name: drop_pin
DELETE FROM pins WHERE session = :session AND number = :number;

-- name: put_window
INSERT OR REPLACE INTO windows (upstream, model, window, source, confidence, updated)
VALUES (:upstream, :model, :window, :source, :confidence, :updated);

-- name: forget
INSERT OR IGNORE INTO forgotten (session, tip) VALUES (:session, :tip);

-- Parts of summaries count below 0: any of them may tell of the message.
-- name: drop_chunks
DELETE FROM memory_chunks WHERE session_id = :session AND (tip = :tip OR chunk_index < 0);

-- name: merge_terms
INSERT INTO memory_terms (memory_terms) VALUES ('optimize');

-- name: make_tombstone
UPDATE messages SET body = NULL, partial = 0 WHERE id = :id;

-- name: family
SELECT tip, parent FROM messages WHERE session = :session ORDER BY id;

-- name: decided_tips
SELECT tip FROM checkpoints WHERE session = :session UNION SELECT tip FROM summaries WHERE session = :session
UNION SELECT tip FROM points WHERE session = :session AND source = 'summary' UNION SELECT tip FROM dues WHERE session = :session;

-- name: drop_all_checkpoints
DELETE FROM checkpoints WHERE session = :session;

-- name: drop_checkpoints
DELETE FROM checkpoints WHERE session = :session AND tip = :tip;

-- name: drop_summaries
DELETE FROM summaries WHERE session = :session AND tip = :tip;

-- name: drop_dues
DELETE FROM dues WHERE session = :session AND tip = :tip;

-- name: drop_bodies
DELETE FROM bodies
WHERE id IN (SELECT body FROM messages WHERE session = :session)
    AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.body = bodies.id AND m.session <> :session);

-- What other sessions began with that tells of this one.
-- name: drop_preloads
DELETE FROM preloads WHERE session IN (SELECT preload FROM preload_sources WHERE source = :session);

-- name: drop_digest
DELETE FROM digests WHERE session = :session;

-- name: drop_session
DELETE FROM sessions WHERE id = :session;

-- name: note_erasure
INSERT INTO erasures DEFAULT VALUES;

-- name: erasure_due
SELECT EXISTS (SELECT 1 FROM erasures);

-- name: erasures_done
DELETE FROM erasures;
