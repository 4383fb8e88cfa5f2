-- The last counters that a node of a service point has reported (internal/manager/fleet/counters.go). at is when they arrived, in Unix
-- milliseconds; body is a JSON list of stream.Counter.
CREATE TABLE figure_report (
    service_point TEXT NOT NULL,
    node          INTEGER NOT NULL,
    at            INTEGER NOT NULL,
    body          TEXT NOT NULL,
    PRIMARY KEY (service_point, node)
) WITHOUT ROWID;
