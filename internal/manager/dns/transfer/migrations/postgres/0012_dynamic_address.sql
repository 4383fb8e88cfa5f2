-- Addresses that were assigned because an update (RFC 2136) named them: they are given back with the name.
CREATE TABLE dynamic_address (
    address BIGINT PRIMARY KEY
);
