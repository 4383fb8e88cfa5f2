-- Policies of reconciliation that are to be worked off now, and since when what each found differs from what is known here, by address: kind
-- is unknown or reclaimable.
CREATE TABLE sweep_due (
    policy INTEGER PRIMARY KEY
);
CREATE TABLE sweep_finding (
    policy  INTEGER NOT NULL,
    address TEXT NOT NULL,
    kind    TEXT NOT NULL,
    since   INTEGER NOT NULL,
    PRIMARY KEY (policy, address)
);
