-- Format 2. Never edited once released: a later format is a later file.

-- What was done about each time of a schedule. The unique key is the promise: one time, one run.
-- Rows are numbered as they come, because the clock they speak of may go back.
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

-- When finished runs are to be deleted, of those that say so.
CREATE TABLE expiries (
    run INTEGER NOT NULL PRIMARY KEY,
    due INTEGER NOT NULL
);
CREATE INDEX expiries_due ON expiries (due);

-- The oldest finished runs of a phase, for those who clear away.
CREATE INDEX runs_finished ON runs (kind, phase, finished) WHERE open = 0;
