-- Memory points by their number in the session; texts as BLOBs, as elsewhere.
CREATE TABLE points (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key BLOB NOT NULL,
    value BLOB NOT NULL,
    tip TEXT NOT NULL,
    time REAL NOT NULL,
    weight REAL NOT NULL,
    source TEXT NOT NULL,
    user BLOB NOT NULL,
    superseded_by INTEGER,
    taken_back INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, number)
);

CREATE INDEX points_by_key ON points (session, kind, key);

CREATE INDEX points_by_tip ON points (session, tip);

-- What was put into a user's graph by hand; the rest of it is made of memory points.
CREATE TABLE graph_nodes (
    tenant TEXT NOT NULL,
    user BLOB NOT NULL,
    name BLOB NOT NULL,
    kind BLOB NOT NULL,
    attributes TEXT NOT NULL,
    PRIMARY KEY (tenant, user, name)
);

CREATE TABLE graph_edges (
    tenant TEXT NOT NULL,
    user BLOB NOT NULL,
    source BLOB NOT NULL,
    relation BLOB NOT NULL,
    target BLOB NOT NULL,
    attributes TEXT NOT NULL,
    PRIMARY KEY (tenant, user, source, relation, target)
);

-- A grant goes with its owner, and with the session that it is made to.
CREATE TABLE grants (
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    number INTEGER NOT NULL,
    to_session INTEGER REFERENCES sessions ON DELETE CASCADE,
    to_user BLOB NOT NULL,
    tips TEXT NOT NULL,
    facts TEXT NOT NULL,
    created REAL NOT NULL,
    expires REAL,
    PRIMARY KEY (session, number)
);

CREATE INDEX grants_by_receiver ON grants (to_session);

CREATE TABLE ratings (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    rating INTEGER NOT NULL,
    text BLOB NOT NULL,
    created REAL NOT NULL
);

CREATE INDEX ratings_by_session ON ratings (session);
