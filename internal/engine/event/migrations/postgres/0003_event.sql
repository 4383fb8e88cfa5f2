CREATE TABLE event (
    id      BIGINT PRIMARY KEY,
    source  BIGINT NOT NULL,
    user_id BIGINT NOT NULL,
    body    TEXT COLLATE "C" NOT NULL
);
CREATE INDEX event_source ON event (source);
CREATE VIEW event_resource AS
    SELECT id, 'events' AS collection, 'Event' AS type, NULL::text AS name, source AS parent, user_id AS configuration,
           NULL::bytea AS low, NULL::bytea AS high, NULL::text AS key, id AS version, '' AS refs, body
    FROM event;
