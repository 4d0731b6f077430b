"""Explains why a request to a bucket failed, and decides whether to retry it.

Retried: no connection, no answer, status 5xx and 429, and the few 4xx codes with which a server
asks for a retry. Everything else fails until somebody fixes it: no such bucket, no permission,
credentials that are missing or have expired, a wrong region. Messages show only the code of a
server's answer: the rest may repeat keys and signatures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from obstore.exceptions import NotFoundError, PermissionDeniedError, UnauthenticatedError

_CODE = re.compile(r"<Code>(\w+)</Code>")
_STATUS = re.compile(r"status code: (\d{3})")
_PASSING_STATUS = {"408", "409", "425", "429"}
_PASSING_CODES = {"RequestTimeout", "IncompleteBody", "OperationAborted", "SlowDown"}
_EXPIRED = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"}
CONFLICTS = {"ConditionalRequestConflict", "OperationAborted"}
"""Codes that mean that another request for the same key is under way; neither has won yet."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a request failed; `lasts` if a retry cannot help."""

    text: str
    lasts: bool = True


def code_of(error: Exception) -> str:
    """Return the server's error code, such as `NoSuchBucket`; empty if there is none."""
    match = _CODE.search(str(error))
    return match[1] if match else ""


def reason_of(error: Exception, bucket: str) -> Reason:
    """Explain why a request to this bucket failed."""
    text, code = str(error), code_of(error)
    match = _STATUS.search(text)
    status = match[1] if match else ""
    code_text = " ".join(filter(None, (status, code)))
    if code == "NoSuchBucket":
        return Reason(f"there is no bucket {bucket}")
    if "169.254.169.254" in text or "metadata.google.internal" in text:
        places = "the environment, in a profile or on this machine"
        return Reason(f"no credentials for {bucket} in {places}")
    if code in _EXPIRED:
        return Reason(f"the credentials have expired ({code_text})")
    if isinstance(error, PermissionDeniedError) or status == "403":
        why = f"access is denied ({code_text}); the credentials of this process do not allow it"
        return Reason(why)
    if isinstance(error, UnauthenticatedError) or status == "401":
        return Reason(f"the credentials are not accepted ({code_text})")
    if isinstance(error, NotFoundError | FileNotFoundError):
        return Reason(f"there is no such object, or no bucket {bucket}")
    if code_text:
        passes = status in _PASSING_STATUS or code in _PASSING_CODES
        lasts = not passes and (not status.startswith("5") or status == "501")
        return Reason(f"the store answers {code_text}", lasts)
    if "redirect without LOCATION" in text:
        return Reason("the bucket is in another region (AWS_REGION)")
    if "builder error" in text:
        return Reason("the store's address is http://; set AWS_ALLOW_HTTP=true to allow it")
    if "HTTP error" in text:
        retries = re.search(r"after (\d+) retries", text)
        after = f" after {retries[1]} retries" if retries else ""
        answer = f"the store does not answer{after}; check that it can be reached"
        return Reason(answer, lasts=False)
    return Reason(re.sub(r"//[^/\s]*@", "//…@", text.split("\n", 1)[0])[:200], lasts=False)
