-- name: session_id
SELECT id FROM sessions WHERE name = :name AND tenant = :tenant;

-- name: put
INSERT INTO memory_chunks (session_id, tip, chunk_index, role, content, length, turn, created)
SELECT :session, :tip, :part, :role, :content, :length, :turn, :created
WHERE NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.session = :session AND f.tip = :tip)
ON CONFLICT (session_id, tip, chunk_index) DO NOTHING;

-- name: put_terms
INSERT INTO memory_terms (rowid, terms) VALUES (:id, :terms);

-- name: drop
DELETE FROM memory_chunks WHERE session_id = :session AND (tip = :tip OR chunk_index < 0);

-- name: touch
UPDATE memory_chunks SET access_count = access_count + 1
WHERE session_id = :session AND (tip, chunk_index) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:places));

-- name: note_quoted
UPDATE memory_chunks SET quoted = quoted + 1
WHERE session_id = :session AND (tip, chunk_index) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:places));

-- name: indexed
SELECT DISTINCT tip FROM memory_chunks WHERE session_id = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant) AND chunk_index >= 0;

-- Every part of a conversation is written in order, so the newest message of a branch is the last one to come in. A forgotten one never does.
-- name: behind
SELECT s.tenant, s.name
FROM (SELECT id, tenant, name, last_used FROM sessions ORDER BY last_used DESC, id DESC LIMIT :sessions) s
WHERE EXISTS (
    SELECT 1 FROM messages m
    WHERE m.session = s.id AND m.leaf = 1 AND m.body IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM memory_chunks c WHERE c.session_id = s.id AND c.tip = m.tip AND c.chunk_index >= 0)
        AND NOT EXISTS (SELECT 1 FROM forgotten f WHERE f.session = s.id AND f.tip = m.tip)
) OR EXISTS (
    SELECT 1 FROM summaries y
    WHERE y.session = s.id AND NOT EXISTS (SELECT 1 FROM memory_chunks c WHERE c.session_id = s.id AND c.tip = y.tip AND c.chunk_index < 0)
)
ORDER BY s.last_used DESC, s.id DESC;

-- name: size
SELECT count(*), coalesce(avg(length), 0.0) FROM memory_chunks WHERE session_id = :session;

-- Every term's rows with how often it is in them, and how often answers have quoted them.
-- name: postings
SELECT t.key, c.tip, c.chunk_index, c.length, count(*), c.quoted
FROM json_each(:tokens) t CROSS JOIN memory_postings p ON p.term = t.value JOIN memory_chunks c ON c.chunk_id = p.doc
WHERE c.session_id = :session
GROUP BY t.key, p.doc;

-- name: texts
SELECT tip, chunk_index, role, content, created FROM memory_chunks
WHERE session_id = :session AND (tip, chunk_index) IN (SELECT value ->> 0, value ->> 1 FROM json_each(:places));

-- name: without_vector
SELECT c.tip, c.chunk_index, c.content
FROM memory_chunks c LEFT JOIN memory_vectors v ON v.chunk_id = c.chunk_id
WHERE c.session_id = :session AND c.chunk_index >= 0 AND (v.embedder IS NULL OR v.embedder <> :embedder)
ORDER BY c.chunk_id LIMIT :limit;

-- A new number where another embedder's is replaced, so that it is read.
-- name: put_vector
REPLACE INTO memory_vectors (session_id, chunk_id, embedder, vector)
SELECT session_id, chunk_id, :embedder, :vector FROM memory_chunks WHERE session_id = :session AND tip = :tip AND chunk_index = :part;

-- name: vectors
SELECT v.vector_id, c.tip, c.chunk_index, v.vector
FROM memory_vectors v JOIN memory_chunks c ON c.chunk_id = v.chunk_id
WHERE v.session_id = :session AND v.vector_id > :after AND v.embedder = :embedder AND v.vector <> x''
ORDER BY v.vector_id DESC LIMIT :limit;

-- name: sessions_of
SELECT id, name, tenant FROM sessions WHERE tenant = :tenant AND user = :user ORDER BY last_used DESC LIMIT :limit;

-- name: hottest
SELECT c.tip, c.chunk_index, c.role, c.content, c.created, s.name, s.tenant
FROM sessions s JOIN memory_chunks c ON c.session_id = s.id
WHERE s.tenant = :tenant AND s.user = :user AND c.access_count > 0
ORDER BY c.access_count DESC, c.created DESC, c.chunk_id DESC LIMIT :limit;
