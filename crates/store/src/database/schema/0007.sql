-- Format 7. Never edited once released: a later format is a later file.

-- A large final record is in parts, so that it is written without keeping others from the writer. A row of `archive` then
-- has an empty body and the number of the record. Most rows have none.
ALTER TABLE archive ADD COLUMN record INTEGER;

CREATE TABLE record_parts (
    record INTEGER NOT NULL,
    part   INTEGER NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (record, part)
);

-- Records that are being written and mean nothing yet. Whoever opens the database throws them away.
CREATE TABLE staged_records (
    record INTEGER NOT NULL PRIMARY KEY,
    run    INTEGER NOT NULL
);

-- What nobody can see any more and is still to be deleted, piece by piece: `facts` by run, `record` by its number.
CREATE TABLE garbage (
    kind TEXT NOT NULL,
    id   INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;
