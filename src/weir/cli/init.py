"""`weir init` creates a folder to start from: a program, its data, a test, and a page about it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from weir.cli.command_line import DebugOption, JsonOption, Usage, clean_errors, put_json, say

PROGRAM = """\
-- How much each user clicks, minute by minute.

STREAM Click (At TIMESTAMP, User STRING, Page STRING)
  FROM 'clicks.jsonl'
  WITH (vs = At, delay = 5s, late = 'drop');  -- events come up to 5 s out of order

PerUser =
  SELECT User, COUNT(*) AS Clicks, COUNT(DISTINCT Page) AS Pages
  FROM Click
  GROUP BY User
  WITH TUMBLING(1m);

OUTPUT PerUser TO 'per_user.csv';
OUTPUT LATE OF Click TO 'late.csv';
"""

DATA = """\
{"At": "2026-03-01T09:00:01Z", "User": "ann", "Page": "/"}
{"At": "2026-03-01T09:00:07Z", "User": "bob", "Page": "/"}
{"At": "2026-03-01T09:00:06Z", "User": "ann", "Page": "/cart"}
{"At": "2026-03-01T09:00:58Z", "User": "bob", "Page": "/help"}
{"At": "2026-03-01T09:01:02Z", "User": "ann", "Page": "/cart"}
{"At": "2026-03-01T09:00:59Z", "User": "ann", "Page": "/cart"}
{"At": "2026-03-01T09:01:30Z", "User": "cyd", "Page": "/"}
{"At": "2026-03-01T09:00:30Z", "User": "bob", "Page": "/late"}
{"At": "2026-03-01T09:02:11Z", "User": "cyd", "Page": "/pay"}
"""

TEST = '''\
"""Run it with `python -m unittest`, or with pytest."""

import unittest
from datetime import UTC, datetime, timedelta
from pathlib import Path

import weir.testing

PROGRAM = Path(__file__).with_name("clicks.weir").read_text(encoding="utf-8")
BEGIN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def click(second: int, user: str, page: str) -> dict[str, object]:
    return {"At": BEGIN + timedelta(seconds=second), "User": user, "Page": page}


class ClicksPerUser(unittest.TestCase):
    def test_clicks_and_pages_are_counted_by_the_minute(self) -> None:
        clicks = [click(1, "ann", "/"), click(3, "ann", "/"), click(61, "ann", "/cart")]
        # However it is cut, spread, restarted or killed, the answer is one.
        found = weir.testing.check(PROGRAM, {"Click": clicks}).rows["PerUser"]
        counts = [(row["User"], row["Clicks"], row["Pages"]) for row in found]
        self.assertEqual(counts, [("ann", 2, 1), ("ann", 1, 1)])

    def test_what_comes_too_late_is_not_counted(self) -> None:
        clicks = [click(1, "ann", "/"), click(30, "ann", "/"), click(2, "bob", "/")]
        found = weir.testing.run(PROGRAM, {"Click": [clicks]}, stream="PerUser")
        self.assertEqual([row["User"] for row in found.rows], ["ann"])


if __name__ == "__main__":
    unittest.main()
'''

PAGE = """\
# {name}

Clicks per user and minute.

    weir run clicks.weir          # writes per_user.csv and late.csv
    weir explain clicks.weir      # what it does, stage by stage
    python -m unittest            # its test

| file | |
| --- | --- |
| `clicks.weir` | the program |
| `clicks.jsonl` | its input: a JSON object a line |
| `test_clicks.py` | its test, on rows in memory |

Events are counted in the minute that they belong to, whatever order they come in, as long as they
are no more than 5 seconds late; later ones go to `late.csv`. Run it twice, or with
`--parallelism 4`: the digests stay the same.

Next: change `TUMBLING(1m)` to `HOPPING(1m, 10s)` and run it again; `weir run --help` has the rest.
`weir doctor` says whether this machine can also run it on Spark (`--runner offline` and `live`).
"""

IGNORED = "__pycache__/\n*.csv\n*.csv.digest\n"


def files_of(name: str) -> dict[str, str]:
    """Return the files of a new folder, by name."""
    return {
        "clicks.weir": PROGRAM,
        "clicks.jsonl": DATA,
        "test_clicks.py": TEST,
        "README.md": PAGE.format(name=name),
        ".gitignore": IGNORED,
    }


def init(
    folder: Annotated[Path, typer.Argument(metavar="NAME", help="The folder to make.")],
    as_json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Make a folder with a small program, its data, a test and a page about it.

    Example: [bold]weir init clicks && cd clicks && weir run clicks.weir[/bold]

    Nothing is overwritten: the folder must be new or empty.
    """
    with clean_errors(debug):
        if folder.exists() and not folder.is_dir():
            raise Usage(f"'{folder}' is a file")
        if folder.is_dir() and any(folder.iterdir()):
            raise Usage(f"'{folder}' is not empty; name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        files = files_of(folder.resolve().name)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        if as_json:
            put_json({"folder": str(folder), "files": list(files)})
            return
        say(f"made {folder}: {', '.join(name for name in files if not name.startswith('.'))}\n")
        if folder.resolve() != Path.cwd():
            path = f"./{folder}" if str(folder).startswith("-") else str(folder)
            say(f"  cd {shlex.quote(path)}")
        say("  weir run clicks.weir\n  python -m unittest")
