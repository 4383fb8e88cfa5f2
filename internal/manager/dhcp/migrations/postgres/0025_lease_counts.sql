-- The numbers of leases by state of a DHCP range or of a server (container), so that no request counts rows.
CREATE TABLE dhcp_lease_count (
    container BIGINT NOT NULL,
    state     TEXT COLLATE "C" NOT NULL,
    n         BIGINT NOT NULL,
    PRIMARY KEY (container, state)
);
INSERT INTO dhcp_lease_count (container, state, n) SELECT server, state, count(*) FROM dhcp_lease GROUP BY server, state;
INSERT INTO dhcp_lease_count (container, state, n) SELECT r.id, l.state, count(*) FROM resource r
    JOIN dhcp_lease l ON l.parent = r.parent AND l.low >= r.low AND l.low <= r.high
    WHERE r.collection = 'ranges' GROUP BY r.id, l.state;
-- The leased addresses of a DHCP range over time: for each sample the time in Unix seconds and the number, in 4 octets each.
CREATE TABLE dhcp_lease_history (
    container BIGINT NOT NULL PRIMARY KEY,
    samples   BYTEA NOT NULL
);
-- Leases are a part of the usage of networks and blocks.
DELETE FROM usage WHERE state IN ('DHCP_ALLOCATED', 'DHCP_ABANDONED');
INSERT INTO usage (container, state, n) WITH RECURSIVE up (network, id, parent) AS (
    SELECT r.id, r.id, r.parent FROM resource r
        WHERE r.collection = 'networks' AND r.id IN (SELECT parent FROM dhcp_lease WHERE state IN ('DHCP_ALLOCATED', 'DHCP_ABANDONED'))
    UNION ALL SELECT up.network, b.id, b.parent FROM up JOIN resource b ON b.id = up.parent AND b.collection = 'blocks')
    SELECT up.id, l.state, CAST(sum(l.n) AS BIGINT) FROM up
        JOIN (SELECT parent, state, count(*) AS n FROM dhcp_lease WHERE state IN ('DHCP_ALLOCATED', 'DHCP_ABANDONED') GROUP BY parent, state) l ON l.parent = up.network
        GROUP BY up.id, l.state;
