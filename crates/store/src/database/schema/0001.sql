-- Format 1. Never edited once released: a later format is a later file.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- The last revision given out, and the next free run id.
INSERT INTO meta (key, value) VALUES ('revision', 0), ('next_run', 1);

CREATE TABLE objects (
    kind      TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    uid       TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    body      BLOB NOT NULL
);
CREATE UNIQUE INDEX objects_name ON objects (kind, namespace, name);

-- One row holds all facts of one run from one commit. The key keeps a run's rows side by side,
-- so that a commit touches one page and a replay reads in order.
CREATE TABLE facts (
    run      INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lines    BLOB NOT NULL,
    PRIMARY KEY (run, first)
) WITHOUT ROWID;

CREATE TABLE runs (
    run        INTEGER NOT NULL PRIMARY KEY,
    namespace  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    uid        TEXT NOT NULL,
    phase      TEXT NOT NULL,
    message    TEXT NOT NULL,
    created    INTEGER NOT NULL,
    started    INTEGER,
    finished   INTEGER,
    labels     TEXT NOT NULL,
    progress   TEXT NOT NULL,
    priority   INTEGER NOT NULL,
    parameters TEXT NOT NULL,
    parent     INTEGER,
    open       INTEGER NOT NULL,
    revision   INTEGER NOT NULL
);

-- Every index ends with the row id by itself, so each of the list indexes is ordered by (created, run).
-- Kinds are few, so a list over all kinds asks for each of them; that is why all list indexes start with it.
CREATE UNIQUE INDEX runs_name ON runs (name, namespace, kind);
CREATE INDEX runs_all ON runs (kind, created);
CREATE INDEX runs_phase ON runs (kind, phase, created);
CREATE INDEX runs_namespace ON runs (kind, namespace, created);
CREATE INDEX runs_namespace_phase ON runs (kind, namespace, phase, created);
CREATE INDEX runs_parent ON runs (parent, created) WHERE parent IS NOT NULL;
CREATE INDEX runs_open ON runs (open) WHERE open = 1;

-- The creation time is repeated here (it never changes) so that a list by label is read in its order.
CREATE TABLE run_labels (
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    created INTEGER NOT NULL,
    run     INTEGER NOT NULL,
    PRIMARY KEY (key, value, created, run)
) WITHOUT ROWID;
CREATE INDEX run_labels_key ON run_labels (key, created, run);

CREATE TABLE archive (
    run  INTEGER NOT NULL PRIMARY KEY,
    size INTEGER NOT NULL,
    body BLOB NOT NULL
);
