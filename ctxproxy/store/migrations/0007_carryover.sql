-- What passes from one session to the next: what was said in one, in short; what a session began with, and of which others that tells; where a
-- client that sends only what is new goes on after a restart.
CREATE TABLE digests (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    tip TEXT NOT NULL,
    text BLOB NOT NULL,
    messages INTEGER NOT NULL,
    created REAL NOT NULL
);

CREATE TABLE preloads (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    messages BLOB NOT NULL,
    items INTEGER NOT NULL,
    created REAL NOT NULL
);

CREATE TABLE preload_sources (
    preload INTEGER NOT NULL REFERENCES preloads ON DELETE CASCADE,
    source INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    PRIMARY KEY (preload, source)
) WITHOUT ROWID;

CREATE INDEX preload_sources_by_source ON preload_sources (source);

CREATE TABLE restores (
    session INTEGER PRIMARY KEY REFERENCES sessions ON DELETE CASCADE,
    tip TEXT NOT NULL,
    turns INTEGER NOT NULL
);
