-- Whether the model is offered the recall tool in this session: said once, when the session is made.
ALTER TABLE sessions ADD COLUMN recall INTEGER NOT NULL DEFAULT 0;
