-- The network and the server of refused clients, from their references.
ALTER TABLE dhcp_refused_client ADD COLUMN network INTEGER GENERATED ALWAYS AS (CASE WHEN substr(refs, 1, 8) = 'network:' THEN CAST(substr(refs, 9) AS INTEGER) END) VIRTUAL;
ALTER TABLE dhcp_refused_client ADD COLUMN server INTEGER GENERATED ALWAYS AS (CAST(substr(refs, instr(refs, 'server:') + 7) AS INTEGER)) VIRTUAL;
CREATE INDEX dhcp_refused_client_network ON dhcp_refused_client (network, id);
CREATE INDEX dhcp_refused_client_server ON dhcp_refused_client (server, id);
ALTER TABLE dhcp_refused_count ADD COLUMN network INTEGER GENERATED ALWAYS AS (CASE WHEN substr(refs, 1, 8) = 'network:' THEN CAST(substr(refs, 9) AS INTEGER) END) VIRTUAL;
ALTER TABLE dhcp_refused_count ADD COLUMN server INTEGER GENERATED ALWAYS AS (CAST(substr(refs, instr(refs, 'server:') + 7) AS INTEGER)) VIRTUAL;
CREATE INDEX dhcp_refused_count_network ON dhcp_refused_count (network, id);
CREATE INDEX dhcp_refused_count_server ON dhcp_refused_count (server, id);
