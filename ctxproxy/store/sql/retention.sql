-- name: unused
SELECT s.tenant, s.name, s.user FROM sessions s
WHERE s.last_used < :before AND s.kept = 0 AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.session = s.id)
ORDER BY s.last_used, s.id LIMIT :limit;

-- name: is_unused
SELECT EXISTS (
    SELECT 1 FROM sessions s
    WHERE s.name = :name AND s.tenant = :tenant
        AND s.last_used < :before AND s.kept = 0 AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.session = s.id)
);
