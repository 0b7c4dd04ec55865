-- The search index: what was said in pieces (003-23), found through full text. `terms` holds a row's search terms as tokens that begin with
-- the session's number, so that a look-up reads one session's postings only and counts within it.
CREATE TABLE memory_chunks (
    chunk_id INTEGER PRIMARY KEY,
    session_id INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    tip TEXT NOT NULL,
    chunk_index INTEGER NOT NULL,
    role BLOB NOT NULL,
    content BLOB NOT NULL,
    length INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    created REAL NOT NULL,
    access_count INTEGER NOT NULL DEFAULT 0,
    embedding BLOB
);

CREATE UNIQUE INDEX memory_chunks_by_tip ON memory_chunks (session_id, tip, chunk_index);

CREATE VIRTUAL TABLE memory_terms USING fts5 (terms, tokenize = 'ascii');

CREATE VIRTUAL TABLE memory_postings USING fts5vocab (memory_terms, 'instance');

CREATE TRIGGER memory_chunks_gone AFTER DELETE ON memory_chunks BEGIN
    DELETE FROM memory_terms WHERE rowid = old.chunk_id;
END;

CREATE INDEX memory_chunks_by_length ON memory_chunks (session_id, length);
