-- A stored reply is kept under who called, for which verb, with which id. Rows of before name no verb, so no request finds them.
CREATE TABLE requests_keyed (
    id TEXT NOT NULL,
    caller TEXT NOT NULL,
    verb TEXT NOT NULL DEFAULT '',
    body TEXT NOT NULL DEFAULT '',
    reply TEXT NOT NULL CHECK (json_valid(reply)),
    created_at INTEGER NOT NULL,
    UNIQUE (caller, verb, id)
) STRICT;
INSERT INTO requests_keyed (id, caller, reply, created_at) SELECT id, caller, reply, created_at FROM requests;
DROP TABLE requests;
ALTER TABLE requests_keyed RENAME TO requests;
CREATE INDEX requests_created ON requests (created_at);
