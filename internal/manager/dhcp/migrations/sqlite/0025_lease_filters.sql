-- The first and the last end in a page of leases, as they are packed in it, so that an index finds the leases that end in a time. NULL if no
-- lease of the page has an end (internal/manager/dhcp/lease_filter.go).
ALTER TABLE dhcp_lease_page ADD COLUMN earliest BLOB;
ALTER TABLE dhcp_lease_page ADD COLUMN latest BLOB;
UPDATE dhcp_lease_page SET earliest = (
        WITH RECURSIVE place (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM place WHERE i < 255)
        SELECT substr(ends, 5 * i + 2, 4) FROM place WHERE 5 * i < length(ends) AND substr(ends, 5 * i + 2, 4) <> X'FFFFFFFF'
        ORDER BY 1 LIMIT 1),
    latest = (
        WITH RECURSIVE place (i) AS (VALUES (0) UNION ALL SELECT i + 1 FROM place WHERE i < 255)
        SELECT substr(ends, 5 * i + 2, 4) FROM place WHERE 5 * i < length(ends) AND substr(ends, 5 * i + 2, 4) <> X'FFFFFFFF'
        ORDER BY 1 DESC LIMIT 1);
CREATE INDEX dhcp_lease_page_earliest ON dhcp_lease_page (earliest);
CREATE INDEX dhcp_lease_page_latest ON dhcp_lease_page (latest);
-- The server of a span, from its references.
ALTER TABLE dhcp_lease_span ADD COLUMN server INTEGER GENERATED ALWAYS AS (CAST(nullif(substr(refs, 8), '') AS INTEGER)) VIRTUAL;
CREATE INDEX dhcp_lease_span_server ON dhcp_lease_span (server, id);
-- Fields of filters and orders.
CREATE INDEX dhcp_lease_began ON dhcp_lease (json_extract(body, '$."leaseDateTime"'));
CREATE INDEX dhcp_lease_vendor ON dhcp_lease (json_extract(body, '$."vendorClassIdentifier"'));
CREATE INDEX dhcp_lease_iaid ON dhcp_lease (json_extract(body, '$."identityAssociationIdentifier"'));
CREATE INDEX dhcp_lease_interface ON dhcp_lease (json_extract(body, '$."interfaceId"'));
CREATE INDEX dhcp_lease_span_end ON dhcp_lease_span (json_extract(body, '$."endDateTime"'));
CREATE INDEX dhcp_lease_span_remote ON dhcp_lease_span (json_extract(body, '$."remoteId"'));
-- The last list of a server that had lost leases (internal/manager/dhcp/lease_recall.go); 0 if there was none.
ALTER TABLE dhcp_lease_mark ADD COLUMN lost INTEGER NOT NULL DEFAULT 0;
