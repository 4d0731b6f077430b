"""Recognizes the URLs of objects in buckets, and rejects those that contain a secret.

Credentials come from the environment of the process that reads and writes. A path is printed, kept
in job records and sent to hosts. So a URL with a password or with parameters is rejected before
anything else is done with it, and the message shows neither.
"""

from __future__ import annotations

import re

from weir.errors import PlanError

BUCKET_SCHEMES = ("s3", "gs", "az", "abfss")
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
# `a?.jsonl` is a glob. A name and a `=` after the question mark make it a parameter.
_PARAMETER = re.compile(r"\?[^/?]*=")


def is_object_url(path: str) -> bool:
    """Tell whether a path is the URL of objects in a bucket.

    >>> is_object_url("s3://data/a.jsonl"), is_object_url("tail://a.jsonl"), is_object_url("a.csv")
    (True, False, False)
    """
    return path.partition("://")[0] in BUCKET_SCHEMES and "://" in path


def refuse_secrets(path: str) -> None:
    """Raise PlanError for a URL with a user's name or password, or possibly secret parameters.

    The message does not repeat them."""
    match = _URL.match(path)
    if match is None:
        return
    scheme, authority, rest = match.groups()
    user, at, _ = authority.rpartition("@")
    of_bucket = scheme in BUCKET_SCHEMES
    named = bool(at) and (":" in user or (of_bucket and scheme != "abfss"))
    if named or (of_bucket and (":" in authority or _PARAMETER.search(authority + rest))):
        raise PlanError(
            f"a {scheme}:// URL holds credentials or parameters",
            hint="leave them out: credentials come from the environment or a profile",
        )
