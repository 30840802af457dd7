-- The task that was made for each profile that a comment mentions: one for each comment and profile.
CREATE TABLE mentions (
    comment_id INTEGER NOT NULL REFERENCES task_comments (id) ON DELETE CASCADE,
    profile TEXT NOT NULL,
    task_id TEXT NOT NULL,
    PRIMARY KEY (comment_id, profile)
) STRICT, WITHOUT ROWID;
