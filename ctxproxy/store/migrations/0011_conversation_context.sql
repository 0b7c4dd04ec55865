-- Sessions as the layered memory's table has them (003-22), for whoever reads the file with other tools; times in UTC. The summary is the newest
-- one, of whichever branch; of a session that was never summarized what is told of it to its user's later sessions.
CREATE VIEW conversation_context AS
SELECT
    substr(s.tenant, 1, 8) || ':' || CAST(s.name AS TEXT) AS session_id,
    nullif(CAST(s.user AS TEXT), '') AS user_id,
    strftime('%Y-%m-%d %H:%M:%S', s.created, 'unixepoch') AS created_at,
    strftime('%Y-%m-%d %H:%M:%S', s.last_used, 'unixepoch') AS last_accessed,
    CAST(coalesce(
        (SELECT y.text FROM summaries y WHERE y.session = s.id ORDER BY y.created DESC, y.id DESC LIMIT 1),
        (SELECT d.text FROM digests d WHERE d.session = s.id)
    ) AS TEXT) AS context_summary,
    s.requests AS access_frequency
FROM sessions s;
