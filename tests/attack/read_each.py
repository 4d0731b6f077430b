"""Reads every numbered Parquet file of a folder and says what came of each, in one process.

python read_each.py FOLDER     the file `whole.parquet` in it says which rows are right
"""

import json
import sys
from collections import Counter
from pathlib import Path

from weir.errors import InputError
from weir.events.types import BIGINT, STRING
from weir.files.columnar import ParquetFile


def rows(path: Path) -> list[dict[str, object]]:
    columns = (("vs", BIGINT), ("ve", BIGINT), ("t", BIGINT), ("v", STRING))
    chunks = ParquetFile(str(path), columns).chunks()
    return [row for chunk in chunks for row in chunk.rows.to_pylist()]


def outcome(path: Path, right: list[dict[str, object]]) -> str:
    try:
        return "same" if rows(path) == right else "other"
    except InputError as error:
        return "refused" if path.name in str(error) else "other"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    right = rows(folder / "whole.parquet")
    counts = Counter({"same": 0, "other": 0, "refused": 0})
    counts.update(outcome(path, right) for path in sorted(folder.glob("[0-9]*.parquet")))
    sys.stdout.write(json.dumps(counts))
