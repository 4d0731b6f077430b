"""The queries of the offline benchmarks, over what `offline_data.py` writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Query:
    """What a query reads, and its program."""

    inputs: tuple[str, ...]
    program: str


QUERIES = {
    "grep": Query(
        ("lines",),
        """STREAM L (t BIGINT, line STRING) FROM 'lines/*.parquet' WITH (vs = t);
        Out = SELECT line FROM L WHERE CONTAINS(line, 'error');""",
    ),
    "wordcount": Query(
        ("words",),
        """STREAM L (t BIGINT, line STRING) FROM 'words/*.parquet' WITH (vs = t);
        W = SELECT EXPLODE(SPLIT(line, ' ')) AS word FROM L;
        Out = SELECT word, COUNT(*) AS n FROM W GROUP BY word WITH TUMBLING(1m);""",
    ),
    "join": Query(
        ("left", "right"),
        """STREAM A (t BIGINT, k BIGINT, v BIGINT) FROM 'left/*.parquet'
          WITH (vs = t, lifetime = 2m);
        STREAM R (t BIGINT, k BIGINT, v BIGINT) FROM 'right/*.parquet' WITH (vs = t);
        B = SELECT k, v FROM R WITH LIFETIME(vs + 30s, vs + 90s);
        Out = SELECT A.k AS k, A.v AS v, B.v AS w FROM A INNER JOIN B ON A.k == B.k;""",
    ),
    "distinct": Query(
        ("clicks",),
        """STREAM C (t BIGINT, url BIGINT) FROM 'clicks/*.parquet' WITH (vs = t);
        Out = SELECT COUNT(DISTINCT url) AS n FROM C WITH HOPPING(30s, 2s);""",
    ),
    "uniform": Query(
        ("uniform",),
        """STREAM C (t BIGINT, k BIGINT, v DOUBLE) FROM 'uniform/*.parquet' WITH (vs = t);
        Out = SELECT k, COUNT(*) AS n, SUM(v) AS s FROM C GROUP BY k WITH TUMBLING(1m);""",
    ),
    "skewed": Query(
        ("skewed",),
        """STREAM C (t BIGINT, k BIGINT, v DOUBLE) FROM 'skewed/*.parquet' WITH (vs = t);
        Out = SELECT k, COUNT(*) AS n, SUM(v) AS s FROM C GROUP BY k WITH TUMBLING(1m);""",
    ),
}
