-- What happened, to which resource and by whose change, in the shape of resources: the parent is the
-- source, the configuration the user.
CREATE TABLE event (
    id      INTEGER PRIMARY KEY,
    source  INTEGER NOT NULL,
    user_id INTEGER NOT NULL,
    body    TEXT NOT NULL
);
CREATE INDEX event_source ON event (source);
CREATE VIEW event_resource AS
    SELECT id, 'events' AS collection, 'Event' AS type, NULL AS name, source AS parent, user_id AS configuration,
           NULL AS low, NULL AS high, NULL AS key, id AS version, '' AS refs, body
    FROM event;
