-- Format 5. Never edited once released: a later format is a later file.

-- One row holds all facts of one run from one commit, as before, but rows stand in the order in which they came. A commit
-- that is about many runs then writes a few pages, not one for each of them, and a row is moved nowhere by others.
CREATE TABLE facts_as_they_came (
    run      INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    lines    BLOB NOT NULL
);
INSERT INTO facts_as_they_came (run, first, count, revision, lines)
SELECT run, first, count, revision, lines FROM facts ORDER BY revision, run, first;
DROP TABLE facts;
ALTER TABLE facts_as_they_came RENAME TO facts;
CREATE UNIQUE INDEX facts_run ON facts (run, first);

-- Namespaces are few beside runs, so a list over all of them asks for each, as one over all kinds does.
DROP INDEX runs_all;
DROP INDEX runs_phase;
