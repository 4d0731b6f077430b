"""Nexmark's queries as DuckDB answers them: for each what is compared of Weir's rows, `out`, and
the same in SQL over `person`, `auction`, `bid` and `side`."""

from __future__ import annotations

COUNTS = """count(*), count(*) FILTER (price < 10000),
    count(*) FILTER (price >= 10000 AND price < 1000000), count(*) FILTER (price >= 1000000)"""
DIFFERENT = ", ".join(
    f"count(DISTINCT {what}) FILTER ({which})"
    for what in ("bidder", "auction")
    for which in ("true", "price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
)
WINNERS = """SELECT * FROM (
    SELECT b.*, a.seller, a.category, a.expires, row_number() OVER (
        PARTITION BY b.auction ORDER BY b.price DESC, b.dateTime) AS place
    FROM bid b JOIN auction a ON b.auction = a.id
    WHERE b.dateTime >= a.dateTime AND b.dateTime < a.expires) WHERE place = 1"""
SINCE = "time_bucket(INTERVAL 10 seconds, dateTime)"
DAY = "date_trunc('day', dateTime)"
CHANNEL_ID = r"""CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
    WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
    ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END"""
PAYLOAD = "SELECT * EXCLUDE (vs, ve) FROM out"
STANDS = "SELECT * EXCLUDE (vs, ve) FROM out WHERE ve IS NULL"
EVERY_WINDOW = "SELECT vs, ve, * EXCLUDE (vs, ve) FROM out"

ANSWERS = {
    0: (PAYLOAD, "SELECT auction, bidder, price, dateTime, extra FROM bid"),
    1: (PAYLOAD, "SELECT auction, bidder, 0.908::DOUBLE * price, dateTime, extra FROM bid"),
    2: (PAYLOAD, "SELECT auction, price FROM bid WHERE auction % 123 = 0 OR auction % 17 = 0"),
    3: (
        STANDS,
        """SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    ),
    4: (STANDS, f"SELECT category, avg(price) FROM ({WINNERS}) GROUP BY category"),
    5: (
        PAYLOAD,
        """WITH starts AS (
            SELECT auction, time_bucket(INTERVAL 2 seconds, dateTime) - INTERVAL 2 seconds * i AS w
            FROM bid, range(5) r(i)),
        counts AS (SELECT auction, count(*) AS n, w FROM starts GROUP BY auction, w)
        SELECT * FROM counts QUALIFY n = max(n) OVER (PARTITION BY w)""",
    ),
    6: (
        PAYLOAD,
        f"""SELECT seller, mean FROM (
            SELECT seller, avg(price) OVER last AS mean, count(*) OVER last AS n FROM ({WINNERS})
            WINDOW last AS (
                PARTITION BY seller ORDER BY expires ROWS BETWEEN 9 PRECEDING AND CURRENT ROW))
        WHERE n = 10""",
    ),
    7: (
        EVERY_WINDOW,
        f"""SELECT {SINCE} AS w, w + INTERVAL 10 seconds, auction, bidder, price, dateTime
        FROM bid QUALIFY price = max(price) OVER (PARTITION BY w)""",
    ),
    8: (
        PAYLOAD,
        f"""SELECT DISTINCT p.id, p.name, p.since
        FROM (SELECT *, {SINCE} AS since FROM person) p
        JOIN (SELECT *, {SINCE} AS since FROM auction) a
        ON p.id = a.seller AND p.since = a.since""",
    ),
    9: (PAYLOAD, f"SELECT auction, bidder, price, dateTime FROM ({WINNERS})"),
    10: (
        PAYLOAD,
        """SELECT auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d'),
        strftime(dateTime, '%H:%M') FROM bid""",
    ),
    11: (
        EVERY_WINDOW,
        """WITH marked AS (
            SELECT *, coalesce(dateTime >= lag(dateTime) OVER mine + INTERVAL 10 seconds, true)
                AS new FROM bid WINDOW mine AS (PARTITION BY bidder ORDER BY dateTime)),
        numbered AS (SELECT *, sum(new::INT) OVER (PARTITION BY bidder ORDER BY dateTime) AS s
            FROM marked)
        SELECT min(dateTime), max(dateTime) + INTERVAL 10 seconds, bidder, count(*)
        FROM numbered GROUP BY bidder, s""",
    ),
    12: (PAYLOAD, f"SELECT bidder, count(*), {SINCE} AS since FROM bid GROUP BY bidder, since"),
    13: (
        PAYLOAD,
        """SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
        FROM bid b JOIN side s ON b.auction % 100 = s.key""",
    ),
    14: (
        PAYLOAD,
        """SELECT auction, bidder, 0.908::DOUBLE * price AS euros,
            CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
                 WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
                 ELSE 'otherTime' END,
            dateTime, extra, len(extra) - len(replace(extra, 'c', ''))
        FROM bid WHERE euros > 1000000 AND euros < 50000000""",
    ),
    15: (PAYLOAD, f"SELECT {DAY} AS day, {COUNTS}, {DIFFERENT} FROM bid GROUP BY day"),
    16: (
        PAYLOAD,
        f"""SELECT channel, {DAY} AS day, max(strftime(dateTime, '%H:%M')), {COUNTS}, {DIFFERENT}
        FROM bid GROUP BY channel, day""",
    ),
    17: (
        PAYLOAD,
        f"""SELECT auction, {DAY} AS day, {COUNTS}, min(price), max(price), avg(price), sum(price)
        FROM bid GROUP BY auction, day""",
    ),
    18: (
        STANDS,
        """SELECT bidder, auction, price, channel, dateTime FROM bid QUALIFY row_number() OVER (
            PARTITION BY bidder, auction ORDER BY dateTime DESC) = 1""",
    ),
    19: (
        PAYLOAD,
        """SELECT auction, bidder, price, dateTime, count(*) OVER (
            PARTITION BY auction, date_trunc('minute', dateTime) ORDER BY price DESC
            RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS place
        FROM bid QUALIFY place <= 10""",
    ),
    20: (
        PAYLOAD,
        """SELECT b.auction, b.bidder, b.price, b.dateTime, a.itemName, a.seller
        FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10""",
    ),
    21: (
        PAYLOAD,
        f"""SELECT auction, bidder, price, channel, {CHANNEL_ID} AS number
        FROM bid WHERE number <> ''""",
    ),
    22: (
        PAYLOAD,
        """SELECT auction, bidder, price, channel, split_part(url, '/', 4),
        split_part(url, '/', 5), split_part(url, '/', 6) FROM bid""",
    ),
}
