-- Events that wait to be sent to the destination of a service of a server (internal/manager/telemetry). service is the id of the service, at the
-- time of the transaction in Unix milliseconds, body the event as JSON.
CREATE TABLE telemetry_event (
    id      INTEGER PRIMARY KEY,
    service INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    body    TEXT NOT NULL
);
CREATE INDEX telemetry_event_service ON telemetry_event (service, at, id);
