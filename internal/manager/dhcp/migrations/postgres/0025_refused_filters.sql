-- The network and the server of refused clients, from their references.
ALTER TABLE dhcp_refused_client ADD COLUMN network BIGINT GENERATED ALWAYS AS (CAST(substring(refs FROM 'network:([0-9]+)') AS BIGINT)) STORED;
ALTER TABLE dhcp_refused_client ADD COLUMN server BIGINT GENERATED ALWAYS AS (CAST(substring(refs FROM 'server:([0-9]+)') AS BIGINT)) STORED;
CREATE INDEX dhcp_refused_client_network ON dhcp_refused_client (network, id);
CREATE INDEX dhcp_refused_client_server ON dhcp_refused_client (server, id);
ALTER TABLE dhcp_refused_count ADD COLUMN network BIGINT GENERATED ALWAYS AS (CAST(substring(refs FROM 'network:([0-9]+)') AS BIGINT)) STORED;
ALTER TABLE dhcp_refused_count ADD COLUMN server BIGINT GENERATED ALWAYS AS (CAST(substring(refs FROM 'server:([0-9]+)') AS BIGINT)) STORED;
CREATE INDEX dhcp_refused_count_network ON dhcp_refused_count (network, id);
CREATE INDEX dhcp_refused_count_server ON dhcp_refused_count (server, id);
