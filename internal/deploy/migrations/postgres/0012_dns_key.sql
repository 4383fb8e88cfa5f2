-- Since when the records of keys of signed zones are deployed, in Unix milliseconds: the DNSKEY record, by its tag; the DS record in the zone
-- above; signatures by it on all servers. warned is 1 where people know that the key goes on beyond its time.
CREATE TABLE dns_key (
    zone      TEXT NOT NULL,
    tag       BIGINT NOT NULL,
    published BIGINT NOT NULL,
    parent    BIGINT NOT NULL,
    signing   BIGINT NOT NULL,
    warned    BIGINT NOT NULL,
    PRIMARY KEY (zone, tag)
);
