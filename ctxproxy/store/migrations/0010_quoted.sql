-- How often answers made use of a piece that was recalled for them (003-50): such a piece counts for more when it is looked for again.
ALTER TABLE memory_chunks ADD COLUMN quoted INTEGER NOT NULL DEFAULT 0;
