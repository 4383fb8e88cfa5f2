-- Since when the records of keys of signed zones are deployed, in Unix milliseconds: the DNSKEY record, by its tag; the DS record in the zone
-- above; signatures by it on all servers. warned is 1 where people were told that the key goes on beyond its time, or waits.
CREATE TABLE dns_key (
    zone      TEXT NOT NULL,
    tag       INTEGER NOT NULL,
    published INTEGER NOT NULL,
    parent    INTEGER NOT NULL,
    signing   INTEGER NOT NULL,
    warned    INTEGER NOT NULL,
    PRIMARY KEY (zone, tag)
);
-- Zones that are copied from servers of others: when their serial number was last looked at with success, in Unix milliseconds, 0 for never;
-- whether that is too long ago (expired is 1); and whether somebody has said that they have changed (notified is 1).
CREATE TABLE dns_copy (
    zone          TEXT PRIMARY KEY,
    configuration INTEGER NOT NULL,
    refreshed     INTEGER NOT NULL,
    expired       INTEGER NOT NULL,
    notified          INTEGER NOT NULL
);
