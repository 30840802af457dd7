-- A task's id may be one that another program drew: only the check changes, and no row.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(
    sql,
    'id GLOB ''t_[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]''',
    'id GLOB ''t_[0-9A-Za-z]*'' AND id NOT GLOB ''*[^0-9A-Za-z_-]*'' AND length(id) <= 64')
    WHERE type = 'table' AND name = 'tasks';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again when its cookie changes, which a statement of the schema does.
CREATE TABLE schema_cookie (only INTEGER) STRICT;
DROP TABLE schema_cookie;
