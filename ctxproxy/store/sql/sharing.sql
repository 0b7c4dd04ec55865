-- name: put_grant
INSERT INTO grants (session, number, to_session, to_user, tips, facts, created, expires)
VALUES (
    :session, (SELECT coalesce(max(number), 0) + 1 FROM grants WHERE session = :session),
    :to_session, :to_user, :tips, :facts, :created, :expires
)
RETURNING number;

-- name: drop_grant
DELETE FROM grants WHERE session = :session AND number = :number;

-- name: grants
SELECT g.number, g.to_user, g.tips, g.facts, g.created, g.expires, o.tenant, o.name, r.name
FROM sessions o JOIN grants g ON g.session = o.id LEFT JOIN sessions r ON r.id = g.to_session
WHERE o.name = :name AND o.tenant = :tenant
ORDER BY g.number;

-- name: grants_to
SELECT g.number, g.to_user, g.tips, g.facts, g.created, g.expires, o.tenant, o.name, r.name
FROM grants g JOIN sessions o ON o.id = g.session LEFT JOIN sessions r ON r.id = g.to_session
WHERE o.tenant = :tenant AND (g.expires IS NULL OR g.expires > :now)
    AND (g.to_session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant) OR (:user <> x'' AND g.to_user = :user))
ORDER BY g.created, o.id, g.number;

-- name: put_rating
INSERT INTO ratings (session, rating, text, created) VALUES (:session, :rating, :text, :created);

-- name: prune_ratings
DELETE FROM ratings WHERE session = :session AND id NOT IN (SELECT id FROM ratings WHERE session = :session ORDER BY id DESC LIMIT :most);

-- name: ratings
SELECT r.rating, r.text, r.created FROM ratings r
WHERE r.session = (SELECT id FROM sessions WHERE name = :name AND tenant = :tenant)
ORDER BY r.id;

-- name: rating_totals
SELECT count(*), coalesce(sum(rating), 0) FROM ratings;

-- name: put_node
INSERT OR REPLACE INTO graph_nodes (tenant, user, name, kind, attributes) VALUES (:tenant, :user, :node, :kind, :attributes);

-- name: put_edge
INSERT OR REPLACE INTO graph_edges (tenant, user, source, relation, target, attributes)
VALUES (:tenant, :user, :source, :relation, :target, :attributes);

-- name: drop_node
DELETE FROM graph_nodes WHERE tenant = :tenant AND user = :user AND name = :node;

-- name: drop_edges_of
DELETE FROM graph_edges WHERE tenant = :tenant AND user = :user AND (source = :node OR target = :node);

-- name: drop_edge
DELETE FROM graph_edges WHERE tenant = :tenant AND user = :user AND source = :source AND relation = :relation AND target = :target;

-- name: nodes
SELECT name, kind, attributes FROM graph_nodes WHERE tenant = :tenant AND user = :user ORDER BY name;

-- name: edges
SELECT source, relation, target, attributes FROM graph_edges WHERE tenant = :tenant AND user = :user ORDER BY source, relation, target;
