-- Who belongs to whom, and what is being deleted, of objects and of runs alike: both are found by kind, namespace and
-- name. Never edited once released.

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

INSERT OR IGNORE INTO owners (owner, kind, namespace, name)
SELECT json_extract(reference.value, '$.uid'), objects.kind, objects.namespace, objects.name
FROM objects, json_each(CAST(objects.body AS TEXT), '$.metadata.ownerReferences') AS reference
WHERE json_valid(CAST(objects.body AS TEXT)) AND json_extract(reference.value, '$.uid') IS NOT NULL;
