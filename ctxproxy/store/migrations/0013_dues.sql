-- What is still to be made of something that is stored; nearly always empty. `due` is JSON that begins with its kind.
CREATE TABLE dues (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    kind TEXT NOT NULL,
    tip TEXT NOT NULL,
    due TEXT NOT NULL
);

CREATE UNIQUE INDEX dues_by_tip ON dues (session, kind, tip);
