-- Who may come in, what was asked for under a key, and how a run is found by its uid.

CREATE INDEX runs_uid ON runs (uid);

-- Only what a token hashes to is here. It has enough chance in it that a fast hash keeps it.
CREATE TABLE tokens (
    id         TEXT NOT NULL PRIMARY KEY,
    hash       BLOB NOT NULL,
    who        TEXT NOT NULL,
    note       TEXT NOT NULL,
    privileges TEXT NOT NULL,
    created    INTEGER NOT NULL,
    expires    INTEGER
) WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_hash ON tokens (hash);

-- Passwords that people choose, with a slow hash. None: the one everybody knows.
CREATE TABLE passwords (
    who     TEXT NOT NULL PRIMARY KEY,
    salt    BLOB NOT NULL,
    rounds  INTEGER NOT NULL,
    hash    BLOB NOT NULL,
    changed INTEGER NOT NULL
) WITHOUT ROWID;

-- Which run was made for a key, and from what. Written with the run itself.
CREATE TABLE claims (
    scope   TEXT NOT NULL,
    key     TEXT NOT NULL,
    print   BLOB NOT NULL,
    run     INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX claims_expires ON claims (expires);

-- Times that are only ever replaced, such as when writing was last tried.
CREATE TABLE marks (
    name TEXT NOT NULL PRIMARY KEY,
    at   INTEGER NOT NULL
) WITHOUT ROWID;
