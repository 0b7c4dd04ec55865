-- name: session
SELECT s.name, s.tenant, s.tip, s.manner, s.frame, s.system, s.model, s.profile, s.fixed_tokens, s.recall, s.user, s.kept, s.cleared, s.overrides, s.tag,
    s.created, s.last_used, s.requests, s.tokens_in, s.tokens_sent, s.compactions, s.messages, s.turns,
    s.cost_all, s.cost_sent, s.cost_summaries, s.cached_expected, s.reported_requests, s.reported_prompt, s.reported_cached,
    (SELECT json_group_array(f.tip) FROM forgotten f WHERE f.session = s.id),
    EXISTS (SELECT 1 FROM checkpoints c WHERE c.session = s.id) OR EXISTS (SELECT 1 FROM summaries u WHERE u.session = s.id)
        OR EXISTS (SELECT 1 FROM pins p WHERE p.session = s.id),
    EXISTS (SELECT 1 FROM messages m WHERE m.tip = s.tip AND m.session = s.id AND m.leaf), s.id
FROM sessions s WHERE s.name = :name AND s.tenant = :tenant;

-- name: find
SELECT s.name, s.tenant, s.tip, s.manner, s.frame, s.system, s.model, s.profile, s.fixed_tokens, s.recall, s.user, s.kept, s.cleared, s.overrides, s.tag,
    s.created, s.last_used, s.requests, s.tokens_in, s.tokens_sent, s.compactions, s.messages, s.turns,
    s.cost_all, s.cost_sent, s.cost_summaries, s.cached_expected, s.reported_requests, s.reported_prompt, s.reported_cached,
    (SELECT json_group_array(f.tip) FROM forgotten f WHERE f.session = s.id),
    EXISTS (SELECT 1 FROM checkpoints c WHERE c.session = s.id) OR EXISTS (SELECT 1 FROM summaries u WHERE u.session = s.id)
        OR EXISTS (SELECT 1 FROM pins p WHERE p.session = s.id),
    EXISTS (SELECT 1 FROM messages m WHERE m.tip = s.tip AND m.session = s.id AND m.leaf), s.id
FROM sessions s WHERE s.name = :name ORDER BY s.id;

-- name: of_user
SELECT s.name, s.tenant, s.tip, s.manner, s.frame, s.system, s.model, s.profile, s.fixed_tokens, s.recall, s.user, s.kept, s.cleared, s.overrides, s.tag,
    s.created, s.last_used, s.requests, s.tokens_in, s.tokens_sent, s.compactions, s.messages, s.turns,
    s.cost_all, s.cost_sent, s.cost_summaries, s.cached_expected, s.reported_requests, s.reported_prompt, s.reported_cached,
    (SELECT json_group_array(f.tip) FROM forgotten f WHERE f.session = s.id),
    EXISTS (SELECT 1 FROM checkpoints c WHERE c.session = s.id) OR EXISTS (SELECT 1 FROM summaries u WHERE u.session = s.id)
        OR EXISTS (SELECT 1 FROM pins p WHERE p.session = s.id),
    EXISTS (SELECT 1 FROM messages m WHERE m.tip = s.tip AND m.session = s.id AND m.leaf), s.id
FROM sessions s WHERE s.tenant = :tenant AND s.user = :user ORDER BY s.last_used DESC, s.id DESC LIMIT :limit;

-- name: page
SELECT s.name, s.tenant, s.tip, s.manner, s.frame, s.system, s.model, s.profile, s.fixed_tokens, s.recall, s.user, s.kept, s.cleared, s.overrides, s.tag,
    s.created, s.last_used, s.requests, s.tokens_in, s.tokens_sent, s.compactions, s.messages, s.turns,
    s.cost_all, s.cost_sent, s.cost_summaries, s.cached_expected, s.reported_requests, s.reported_prompt, s.reported_cached,
    (SELECT json_group_array(f.tip) FROM forgotten f WHERE f.session = s.id),
    EXISTS (SELECT 1 FROM checkpoints c WHERE c.session = s.id) OR EXISTS (SELECT 1 FROM summaries u WHERE u.session = s.id)
        OR EXISTS (SELECT 1 FROM pins p WHERE p.session = s.id),
    EXISTS (SELECT 1 FROM messages m WHERE m.tip = s.tip AND m.session = s.id AND m.leaf), s.id
FROM sessions s
WHERE (s.last_used, s.id) < (:last_used, :id) AND instr(s.name, :query) > 0 AND (:tag = x'' OR s.tag = :tag)
ORDER BY s.last_used DESC, s.id DESC LIMIT :limit;

-- The places in the list whose tips are stored; the last one is enough, since what is stored is closed towards the root.
-- name: last_known
SELECT max(t.key) FROM json_each(:tips) t
WHERE EXISTS (
    SELECT 1 FROM messages m
    WHERE m.tip = t.value AND m.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant)
);

-- From the tip back to the root, or to a known tip that is on the way; at least one row if the session is there, for its revision.
-- CROSS JOIN holds the planner to the order of the chain.
-- name: history
WITH RECURSIVE
    here(session, revision) AS MATERIALIZED (SELECT id, revision FROM sessions WHERE name = :name AND tenant = :tenant),
    chain(session, tip, parent, body, role, tokens, created, partial) AS (
        SELECT m.session, m.tip, m.parent, m.body, m.role, m.tokens, m.created, m.partial
        FROM here CROSS JOIN messages m ON m.tip = :tip AND m.session = here.session WHERE :tip <> :known
        UNION ALL
        SELECT m.session, m.tip, m.parent, m.body, m.role, m.tokens, m.created, m.partial
        FROM chain CROSS JOIN messages m ON m.tip = chain.parent AND m.session = chain.session WHERE chain.parent <> :known
    )
SELECT c.tip, c.parent, b.raw, c.role, c.tokens, c.created, c.partial, here.revision
FROM here LEFT JOIN chain c LEFT JOIN bodies b ON b.id = c.body;

-- The first of a span's messages, so many bytes at most but one at least. Its bodies are read once their sizes are known.
-- name: span
WITH RECURSIVE
    here(session) AS MATERIALIZED (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant),
    chain(session, tip, parent, body, role, tokens, created, partial, depth) AS (
        SELECT m.session, m.tip, m.parent, m.body, m.role, m.tokens, m.created, m.partial, 0
        FROM here CROSS JOIN messages m ON m.tip = :tip AND m.session = here.session WHERE :tip <> :after
        UNION ALL
        SELECT m.session, m.tip, m.parent, m.body, m.role, m.tokens, m.created, m.partial, chain.depth + 1
        FROM chain CROSS JOIN messages m ON m.tip = chain.parent AND m.session = chain.session WHERE chain.parent <> :after
    ),
    sized AS MATERIALIZED (
        SELECT c.tip, c.parent, c.body, c.role, c.tokens, c.created, c.partial, c.depth,
            sum(coalesce(length(b.raw), 0)) OVER (ORDER BY c.depth DESC) AS total, row_number() OVER (ORDER BY c.depth DESC) AS place
        FROM chain c LEFT JOIN bodies b ON b.id = c.body
    )
SELECT s.tip, s.parent, b.raw, s.role, s.tokens, s.created, s.partial
FROM sized s LEFT JOIN bodies b ON b.id = s.body
WHERE s.total <= :most OR s.place = 1 ORDER BY s.place;

-- name: heard
WITH RECURSIVE
    here(session) AS MATERIALIZED (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant),
    chain(session, tip, parent, body, role, tokens, created, partial) AS (
        SELECT m.session, m.tip, m.parent, m.body, m.role, m.tokens, m.created, m.partial
        FROM here CROSS JOIN messages m ON m.tip = :tip AND m.session = here.session
        UNION ALL
        SELECT m.session, m.tip, m.parent, m.body, m.role, m.tokens, m.created, m.partial
        FROM chain CROSS JOIN messages m ON m.tip = chain.parent AND m.session = chain.session
    )
SELECT c.tip, c.parent, b.raw, c.role, c.tokens, c.created, c.partial
FROM chain c LEFT JOIN bodies b ON b.id = c.body WHERE c.role = :role LIMIT :limit;

-- In the order of writing; leaves and the others apart, so that both come in the order of an index and nothing is sorted.
-- name: log
WITH here(session) AS MATERIALIZED (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant)
SELECT c.tip, c.parent, b.raw, c.role, c.tokens, c.created, c.partial, c.id FROM (
    SELECT m.tip, m.parent, m.body, m.role, m.tokens, m.created, m.partial, m.id FROM messages m
    WHERE m.session = (SELECT session FROM here) AND m.leaf = 0 AND m.id > :after
    UNION ALL
    SELECT m.tip, m.parent, m.body, m.role, m.tokens, m.created, m.partial, m.id FROM messages m
    WHERE m.session = (SELECT session FROM here) AND m.leaf = 1 AND m.id > :after
    ORDER BY 8 LIMIT :limit
) c LEFT JOIN bodies b ON b.id = c.body ORDER BY c.id;

-- name: leaves
SELECT m.tip FROM messages m
WHERE m.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant) AND m.leaf = 1
ORDER BY m.id DESC;

-- name: checkpoint_places
SELECT c.id, c.tip, c.variant FROM checkpoints c WHERE c.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant);

-- name: checkpoints_by_id
SELECT c.tip, c.variant, c.decision, c.created, c.wants FROM checkpoints c
WHERE c.id IN (SELECT value FROM json_each(:ids))
ORDER BY c.created DESC, c.id DESC;

-- name: checkpoints
SELECT c.tip, c.variant, c.decision, c.created, c.wants FROM checkpoints c
WHERE c.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant)
ORDER BY c.created DESC, c.id DESC;

-- name: summaries_at
SELECT s.tip, s.text, s.kind, s.model, s.messages, s.tokens, s.start, s."end", s.created FROM summaries s
WHERE s.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant) AND s.tip IN (SELECT value FROM json_each(:tips))
ORDER BY s.id;

-- name: summaries
SELECT s.tip, s.text, s.kind, s.model, s.messages, s.tokens, s.start, s."end", s.created FROM summaries s
WHERE s.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant)
ORDER BY s.id;

-- name: pins
SELECT p.number, p.text, p.created FROM pins p
WHERE p.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant)
ORDER BY p.number;

-- One look-up in the index for each tenant, however many sessions it has. "g" stands behind every hex digit.
-- name: tenants
WITH RECURSIVE found(tenant) AS (
    SELECT min(tenant) FROM sessions WHERE tenant >= :first AND tenant < :beyond
    UNION ALL
    SELECT (SELECT min(s.tenant) FROM sessions s WHERE s.tenant > found.tenant AND s.tenant < :beyond) FROM found WHERE found.tenant IS NOT NULL
)
SELECT tenant FROM found WHERE tenant IS NOT NULL LIMIT 10;

-- name: dues
SELECT s.tenant, s.name, d.due FROM dues d JOIN sessions s ON s.id = d.session ORDER BY d.id LIMIT :limit;

-- name: windows
SELECT upstream, model, window, source, confidence, updated FROM windows ORDER BY upstream, model;

-- name: locate
SELECT m.tip, m.parent, b.raw, m.role, m.tokens, m.created, m.partial, s.name, s.tenant
FROM messages m CROSS JOIN sessions s ON s.id = m.session LEFT JOIN bodies b ON b.id = m.body
WHERE m.tip >= :first AND m.tip < :beyond
ORDER BY m.tip, m.session LIMIT 10;

-- name: totals
SELECT count(*), (SELECT count(*) FROM messages),
    coalesce(sum(requests), 0), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_sent), 0), coalesce(sum(compactions), 0),
    coalesce(sum(cost_all), 0), coalesce(sum(cost_sent), 0), coalesce(sum(cost_summaries), 0), coalesce(sum(cached_expected), 0),
    coalesce(sum(reported_requests), 0), coalesce(sum(reported_prompt), 0), coalesce(sum(reported_cached), 0)
FROM sessions;

-- name: ping
SELECT count(*) FROM sqlite_master;
