-- Raised when a stored message changes: it was erased, or a partial one became whole. A session that begins anew begins elsewhere, by chance.
ALTER TABLE sessions ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
