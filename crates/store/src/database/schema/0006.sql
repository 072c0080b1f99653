-- The keys that Secrets are encrypted with, each in a row of fixed length that is overwritten in place. Never edited once
-- released.

CREATE TABLE secret_keys (
    slot INTEGER NOT NULL PRIMARY KEY,
    key  BLOB NOT NULL
);
