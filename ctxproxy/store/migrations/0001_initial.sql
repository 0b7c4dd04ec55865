-- Texts that come from outside (names, models, summaries, pins) are kept as BLOBs: they may hold NUL and lone surrogates.

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    name BLOB NOT NULL,
    tip TEXT NOT NULL,
    manner TEXT NOT NULL,
    frame TEXT NOT NULL,
    system BLOB NOT NULL,
    model BLOB NOT NULL,
    profile BLOB NOT NULL,
    fixed_tokens INTEGER NOT NULL,
    created REAL NOT NULL,
    last_used REAL NOT NULL,
    requests INTEGER NOT NULL,
    tokens_in INTEGER NOT NULL,
    tokens_sent INTEGER NOT NULL,
    compactions INTEGER NOT NULL,
    messages INTEGER NOT NULL,
    turns INTEGER NOT NULL
);

CREATE UNIQUE INDEX sessions_by_name ON sessions (name, tenant);

CREATE INDEX sessions_by_use ON sessions (last_used, id);

CREATE TABLE bodies (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    raw BLOB NOT NULL
);

-- body NULL: the message was erased, this row is the tombstone that keeps the chain whole.
-- leaf: no message has this one as its parent, so listing the branches is a look-up.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    tip TEXT NOT NULL,
    parent TEXT NOT NULL,
    body INTEGER REFERENCES bodies DEFERRABLE INITIALLY DEFERRED,
    role BLOB NOT NULL,
    tokens INTEGER NOT NULL,
    created REAL NOT NULL,
    partial INTEGER NOT NULL,
    leaf INTEGER NOT NULL DEFAULT 1
);

CREATE UNIQUE INDEX messages_by_tip ON messages (tip, session);

CREATE INDEX messages_by_session ON messages (session, leaf);

CREATE INDEX messages_by_body ON messages (body);

CREATE TABLE forgotten (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    tip TEXT NOT NULL,
    PRIMARY KEY (session, tip)
) WITHOUT ROWID;

CREATE TABLE checkpoints (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    tip TEXT NOT NULL,
    variant BLOB NOT NULL,
    decision BLOB NOT NULL,
    created REAL NOT NULL,
    wants TEXT NOT NULL
);

CREATE UNIQUE INDEX checkpoints_by_tip ON checkpoints (session, tip, variant);

CREATE TABLE summaries (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    tip TEXT NOT NULL,
    text BLOB NOT NULL,
    kind TEXT NOT NULL,
    model BLOB NOT NULL,
    messages INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    start REAL NOT NULL,
    "end" REAL NOT NULL,
    created REAL NOT NULL
);

CREATE UNIQUE INDEX summaries_by_tip ON summaries (session, tip);

CREATE TABLE pins (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    text BLOB NOT NULL,
    created REAL NOT NULL,
    PRIMARY KEY (session, number)
);

CREATE TABLE windows (
    upstream BLOB NOT NULL,
    model BLOB NOT NULL,
    window INTEGER NOT NULL,
    source TEXT NOT NULL,
    confidence REAL NOT NULL,
    updated REAL NOT NULL,
    PRIMARY KEY (upstream, model)
);

-- A row: something was erased whose traces in free space are not yet known to be gone.
CREATE TABLE erasures (id INTEGER PRIMARY KEY);
