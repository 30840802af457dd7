-- What has failed to start several times in a row keeps its tasks from starting until it works again.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(
    sql,
    '''budget'')', '''budget'', ''breaker'')'),
    '''mission'')', '''mission'', ''environment'', ''host'')')
    WHERE type = 'table' AND name = 'holds';
PRAGMA writable_schema = RESET;
-- Other connections read the schema again when its cookie changes, which a statement of the schema does.
CREATE TABLE schema_cookie (only INTEGER) STRICT;
DROP TABLE schema_cookie;
