-- title: Accounts side by side
-- tells: For each type and account how many resources there are, the median over all accounts, and how many drifted.
-- tells: The account that stands out most comes first. A resource that two sources see counts once.
-- param type: text = % | only types like this; % stands for anything
WITH live AS (
    SELECT type, account, count(DISTINCT place || ' ' || id) AS resources
    FROM resources
    WHERE account IS NOT NULL AND type LIKE $type
    GROUP BY type, account
),
accounts AS (SELECT DISTINCT account FROM resources WHERE account IS NOT NULL),
every AS (
    SELECT kinds.type, accounts.account, coalesce(live.resources, 0) AS resources
    FROM (SELECT DISTINCT type FROM live) kinds
    CROSS JOIN accounts
    LEFT JOIN live ON live.type = kinds.type AND live.account = accounts.account
),
found AS (
    SELECT type, account, count(DISTINCT place || ' ' || id) AS drifted
    FROM findings
    WHERE status = 'drifted'
    GROUP BY type, account
),
usual AS (SELECT type, median(CAST(resources AS DOUBLE)) AS median FROM every GROUP BY type)
SELECT every.type, every.account, every.resources, usual.median, coalesce(found.drifted, 0) AS drifted
FROM every
JOIN usual ON usual.type = every.type
LEFT JOIN found ON found.type = every.type AND found.account = every.account
ORDER BY abs(every.resources - usual.median) DESC, drifted DESC, every.type, every.account
