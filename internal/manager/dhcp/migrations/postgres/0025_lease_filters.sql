-- The first and the last end in a page of leases, as they are packed in it, so that an index finds the leases that end in a time. NULL if no
-- lease of the page has an end (internal/manager/dhcp/lease_filter.go).
ALTER TABLE dhcp_lease_page ADD COLUMN earliest BYTEA;
ALTER TABLE dhcp_lease_page ADD COLUMN latest BYTEA;
UPDATE dhcp_lease_page SET earliest = (
        WITH RECURSIVE place (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM place WHERE i < 255)
        SELECT substr(ends, 5 * i + 2, 4) FROM place WHERE 5 * i < length(ends) AND substr(ends, 5 * i + 2, 4) <> '\xffffffff'::bytea
        ORDER BY 1 LIMIT 1),
    latest = (
        WITH RECURSIVE place (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM place WHERE i < 255)
        SELECT substr(ends, 5 * i + 2, 4) FROM place WHERE 5 * i < length(ends) AND substr(ends, 5 * i + 2, 4) <> '\xffffffff'::bytea
        ORDER BY 1 DESC LIMIT 1);
CREATE INDEX dhcp_lease_page_earliest ON dhcp_lease_page (earliest);
CREATE INDEX dhcp_lease_page_latest ON dhcp_lease_page (latest);
-- The server of a span, from its references.
ALTER TABLE dhcp_lease_span ADD COLUMN server BIGINT GENERATED ALWAYS AS (CAST(nullif(substr(refs, 8), '') AS BIGINT)) STORED;
CREATE INDEX dhcp_lease_span_server ON dhcp_lease_span (server, id);
-- Indexes of filters and orders, in the order of lists: null first, then by id.
DROP INDEX dhcp_lease_state;
DROP INDEX dhcp_lease_mac;
DROP INDEX dhcp_lease_client;
DROP INDEX dhcp_lease_circuit;
DROP INDEX dhcp_lease_remote;
DROP INDEX dhcp_lease_host;
DROP INDEX dhcp_lease_span_start;
DROP INDEX dhcp_lease_span_mac;
DROP INDEX dhcp_lease_span_client;
DROP INDEX dhcp_lease_span_circuit;
DROP INDEX dhcp_lease_span_host;
CREATE INDEX dhcp_lease_state ON dhcp_lease ((json_extract(body, '$."state"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_mac ON dhcp_lease ((json_extract(body, '$."macAddress"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_client ON dhcp_lease ((json_extract(body, '$."clientIdentifier"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_circuit ON dhcp_lease ((json_extract(body, '$."circuitId"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_remote ON dhcp_lease ((json_extract(body, '$."remoteId"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_host ON dhcp_lease ((json_extract(body, '$."hostName"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_span_start ON dhcp_lease_span ((json_extract(body, '$."startDateTime"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_span_mac ON dhcp_lease_span ((json_extract(body, '$."macAddress"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_span_client ON dhcp_lease_span ((json_extract(body, '$."clientIdentifier"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_span_circuit ON dhcp_lease_span ((json_extract(body, '$."circuitId"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_span_host ON dhcp_lease_span ((json_extract(body, '$."hostName"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_began ON dhcp_lease ((json_extract(body, '$."leaseDateTime"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_vendor ON dhcp_lease ((json_extract(body, '$."vendorClassIdentifier"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_iaid ON dhcp_lease ((json_extract(body, '$."identityAssociationIdentifier"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_interface ON dhcp_lease ((json_extract(body, '$."interfaceId"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_span_end ON dhcp_lease_span ((json_extract(body, '$."endDateTime"') COLLATE "C") NULLS FIRST, id);
CREATE INDEX dhcp_lease_span_remote ON dhcp_lease_span ((json_extract(body, '$."remoteId"') COLLATE "C") NULLS FIRST, id);
-- The last list of a server that had lost leases (internal/manager/dhcp/lease_recall.go); 0 if there was none.
ALTER TABLE dhcp_lease_mark ADD COLUMN lost BIGINT NOT NULL DEFAULT 0;
