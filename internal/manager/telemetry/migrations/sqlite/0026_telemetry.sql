-- Events that wait to be sent to the destination of a service of a server (internal/manager/telemetry). service is the id of the service, body
-- the event as JSON.
CREATE TABLE telemetry_event (
    id      INTEGER PRIMARY KEY,
    service INTEGER NOT NULL,
    body    TEXT NOT NULL
);
CREATE INDEX telemetry_event_service ON telemetry_event (service, id);
