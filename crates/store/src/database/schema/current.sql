-- All tables of the newest format, for a new database: what the numbered steps lead to, in one transaction. A new step
-- changes this file too; a test compares both to the letter.

CREATE TABLE meta (
    key   TEXT NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE objects (
    kind      TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    uid       TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    body      BLOB NOT NULL
);
CREATE UNIQUE INDEX objects_name ON objects (kind, namespace, name);

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
CREATE UNIQUE INDEX runs_name ON runs (name, namespace, kind);
CREATE INDEX runs_namespace ON runs (kind, namespace, created);
CREATE INDEX runs_namespace_phase ON runs (kind, namespace, phase, created);
CREATE INDEX runs_parent ON runs (parent, created) WHERE parent IS NOT NULL;
CREATE INDEX runs_open ON runs (open) WHERE open = 1;
CREATE INDEX runs_finished ON runs (kind, phase, finished) WHERE open = 0;
CREATE INDEX runs_uid ON runs (uid);

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
, record INTEGER);

CREATE TABLE cron_ticks (
    seq     INTEGER NOT NULL PRIMARY KEY,
    uid     TEXT NOT NULL,
    nominal INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    run     INTEGER,
    outcome TEXT NOT NULL
);
CREATE UNIQUE INDEX cron_ticks_nominal ON cron_ticks (uid, nominal);
CREATE INDEX cron_ticks_order ON cron_ticks (uid, seq);

CREATE TABLE expiries (
    run INTEGER NOT NULL PRIMARY KEY,
    due INTEGER NOT NULL
);
CREATE INDEX expiries_due ON expiries (due);

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

CREATE TABLE passwords (
    who     TEXT NOT NULL PRIMARY KEY,
    salt    BLOB NOT NULL,
    rounds  INTEGER NOT NULL,
    hash    BLOB NOT NULL,
    changed INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE claims (
    scope   TEXT NOT NULL,
    key     TEXT NOT NULL,
    print   BLOB NOT NULL,
    run     INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX claims_expires ON claims (expires);

CREATE TABLE marks (
    name TEXT NOT NULL PRIMARY KEY,
    at   INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE owners (
    owner     TEXT NOT NULL,
    kind      TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    PRIMARY KEY (owner, kind, namespace, name)
) WITHOUT ROWID;
CREATE INDEX owners_name ON owners (kind, namespace, name);

CREATE TABLE leaving (
    kind      TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;

CREATE TABLE "facts" (
    run      INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lines    BLOB NOT NULL
);
CREATE UNIQUE INDEX facts_run ON facts (run, first);

CREATE TABLE secret_keys (
    slot INTEGER NOT NULL PRIMARY KEY,
    key  BLOB NOT NULL
);

CREATE TABLE record_parts (
    record INTEGER NOT NULL,
    part   INTEGER NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (record, part)
);

CREATE TABLE staged_records (
    record INTEGER NOT NULL PRIMARY KEY,
    run    INTEGER NOT NULL
);

CREATE TABLE garbage (
    kind TEXT NOT NULL,
    id   INTEGER NOT NULL,
    PRIMARY KEY (kind, id)
) WITHOUT ROWID;

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

INSERT INTO meta (key, value) VALUES ('next_run', 1), ('revision', 0);
