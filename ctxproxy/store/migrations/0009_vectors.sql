-- What the pieces of the search index mean, as vectors (003-23), beside them so that a search by words does not read past them. An empty vector
-- is that of a piece that the embedder cannot read; `embedder` says whose it is. Numbers are never used twice: who has read up to one reads on.
ALTER TABLE memory_chunks DROP COLUMN embedding;

CREATE TABLE memory_vectors (
    vector_id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    chunk_id INTEGER NOT NULL UNIQUE REFERENCES memory_chunks ON DELETE CASCADE,
    embedder TEXT NOT NULL,
    vector BLOB NOT NULL
);

CREATE INDEX memory_vectors_by_session ON memory_vectors (session_id, vector_id);
