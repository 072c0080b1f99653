-- Format 8. Never edited once released: a later format is a later file.

-- Events of runs that life hooks are to hear of, or were to: `status` is 0 behind an earlier event for the same plugin and run
-- (by uid), 1 for the one that is sent next, 2 for one that was given up.
CREATE TABLE deliveries (
    id        INTEGER NOT NULL PRIMARY KEY,
    event     TEXT NOT NULL UNIQUE,
    plugin    TEXT NOT NULL,
    run       TEXT NOT NULL,
    job       TEXT NOT NULL,
    namespace TEXT NOT NULL,
    sequence  INTEGER NOT NULL,
    state     TEXT NOT NULL,
    body      BLOB NOT NULL,
    created   INTEGER NOT NULL,
    due       INTEGER NOT NULL,
    tries     INTEGER NOT NULL,
    status    INTEGER NOT NULL,
    reason    TEXT NOT NULL
);
CREATE INDEX deliveries_run ON deliveries (plugin, run, status);
CREATE INDEX deliveries_next ON deliveries (plugin, status, due);
CREATE INDEX deliveries_job ON deliveries (job);
