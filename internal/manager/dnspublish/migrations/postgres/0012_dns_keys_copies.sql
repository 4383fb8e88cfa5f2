-- Since when the records of keys of signed zones are deployed, in Unix milliseconds: the DNSKEY record, by its tag; the DS record in the zone
-- above; signatures by it on all servers. warned is 1 where people were told that the key goes on beyond its time, or waits.
CREATE TABLE dns_key (
    zone      TEXT NOT NULL,
    tag       BIGINT NOT NULL,
    published BIGINT NOT NULL,
    parent    BIGINT NOT NULL,
    signing   BIGINT NOT NULL,
    warned    BIGINT NOT NULL,
    PRIMARY KEY (zone, tag)
);
-- Zones that are copied from servers of others: when their serial number was last looked at with success, in Unix milliseconds, 0 for never;
-- whether that is too long ago (expired is 1); and whether somebody has said that they have changed (notified is 1).
CREATE TABLE dns_copy (
    zone          TEXT PRIMARY KEY,
    configuration BIGINT NOT NULL,
    refreshed     BIGINT NOT NULL,
    expired       BIGINT NOT NULL,
    notified          BIGINT NOT NULL
);
