"""Gets the keys of an AWS profile by running a command.

The command is that of the profile (`credential_process`), or the AWS command line, which knows SSO
and roles.

It prints JSON with the keys, as the AWS tools define it, and runs again before they expire. Its
output is never shown.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from weir.errors import RunError

if TYPE_CHECKING:
    from obstore.store import S3Credential

_WITHIN = 60.0
_ELSEWHERE = ("sso_session", "sso_start_url", "role_arn", "source_profile", "login_session")
"""Settings of a profile whose keys come from elsewhere."""


def keys_command(profile: str, settings: Mapping[str, str]) -> Sequence[str] | None:
    """Return the command that prints the keys of a profile with these settings; None if the
    profile names none."""
    if "credential_process" in settings:
        return shlex.split(settings["credential_process"]) or None
    if not any(name in settings for name in _ELSEWHERE):
        return None
    export = ("aws", "configure", "export-credentials", "--profile", profile)
    if shutil.which("aws") is None:
        raise RunError(
            f"the AWS profile '{profile}' has no keys of its own, and there is no AWS command line "
            f"that gets them; put them into the environment: {' '.join(export)} --format env"
        )
    return (*export, "--format", "process")


class CommandKeys:
    """Runs a command for keys, whenever there are none that are valid."""

    def __init__(self, profile: str, command: Sequence[str]) -> None:
        self._profile, self._command = profile, command
        self._first: S3Credential | None = self._run()  # fail when the bucket is opened

    def __call__(self) -> S3Credential:
        keys, self._first = self._first, None
        return keys if keys is not None else self._run()

    def _run(self) -> S3Credential:
        what = f"cannot get the keys of the AWS profile '{self._profile}'"
        program = self._command[0]
        try:
            done = subprocess.run(
                self._command,
                capture_output=True,
                timeout=_WITHIN,
                check=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.CalledProcessError as error:
            code = error.returncode
            raise RunError(f"{what}: {program} ended with exit code {code}") from None
        except subprocess.TimeoutExpired:
            raise RunError(f"{what}: no answer from {program} within {_WITHIN:.0f} s") from None
        except OSError as error:
            raise RunError(f"{what}: {program}: {error.strerror}") from None
        try:
            answer = json.loads(done.stdout)
            until = answer.get("Expiration")
            expires = None if until is None else datetime.fromisoformat(until)
            return {
                "access_key_id": str(answer["AccessKeyId"]),
                "secret_access_key": str(answer["SecretAccessKey"]),
                "token": answer.get("SessionToken"),
                "expires_at": expires if expires is None else _with_zone(expires),
            }
        except (ValueError, KeyError, TypeError, AttributeError):
            raise RunError(f"{what}: {program} does not print keys") from None


def _with_zone(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
