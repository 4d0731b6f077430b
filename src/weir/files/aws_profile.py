"""Reads AWS profiles, for processes that have no keys in their environment.

obstore reads the environment, the roles of machines and containers, and web identities, but no
profiles. This module reads the keys, the region and the endpoint of a profile by the rules of the
AWS tools. Variables of the environment take precedence. `AWS_PROFILE` names the profile (the
default is `default`); `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` name the files. If a
profile gets its keys elsewhere (SSO, a role), a command prints them: the profile's own
(`credential_process`), or the AWS command line, which knows SSO and roles. The command prints JSON
in the format of the AWS tools, and runs again before the keys expire. Its output is never shown.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from configparser import ConfigParser, Error
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from weir.errors import RunError

if TYPE_CHECKING:
    from obstore.store import S3Credential


_OWN_WAYS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SKIP_SIGNATURE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Variables that show that credentials come from elsewhere than a profile."""
_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_OTHER_SETTINGS = {
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint_url": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
}
"""Other settings of a profile, and the variables that override them."""


def profile_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that the profile adds to the environment, by obstore's names; empty if
    there is no profile."""
    profile = _profile(environment, _name(environment))
    if environment.get("AWS_PROFILE") and not profile:
        raise RunError(f"there is no AWS profile '{_name(environment)}' (AWS_PROFILE)")
    settings = {
        name: profile[name]
        for name, variables in _OTHER_SETTINGS.items()
        if name in profile and not any(environment.get(v) for v in variables)
    }
    if not _comes_from_elsewhere(environment):
        settings |= {name: profile[name] for name in _KEYS if name in profile}
    return settings


def profile_keys(environment: Mapping[str, str]) -> CommandKeys | None:
    """Return the command that fetches the profile's keys. None if the environment or the profile
    has keys, or if there is no profile."""
    name = _name(environment)
    profile = _profile(environment, name)
    if _comes_from_elsewhere(environment) or {*_KEYS[:2]} <= profile.keys():
        return None
    command = keys_command(name, profile)
    if command is not None:
        return CommandKeys(name, command)
    if environment.get("AWS_PROFILE"):
        raise RunError(
            f"the AWS profile '{name}' (AWS_PROFILE) has no keys, and names no way to get them: "
            "neither credential_process nor SSO nor a role"
        )
    return None


def _name(environment: Mapping[str, str]) -> str:
    return environment.get("AWS_PROFILE") or "default"


def _comes_from_elsewhere(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name) for name in _OWN_WAYS)


def _profile(environment: Mapping[str, str], name: str) -> dict[str, str]:
    folder = Path(environment.get("HOME") or os.path.expanduser("~"), ".aws")
    config = environment.get("AWS_CONFIG_FILE") or str(folder / "config")
    secrets = environment.get("AWS_SHARED_CREDENTIALS_FILE") or str(folder / "credentials")
    section = name if name == "default" else f"profile {name}"
    return {**_section(config, section), **_section(secrets, name)}


def _section(path: str, section: str) -> dict[str, str]:
    parser = ConfigParser(interpolation=None, default_section="")
    try:
        parser.read(path, encoding="utf-8")
    except (Error, UnicodeDecodeError):  # its text quotes lines of the file, and so keys
        raise RunError(f"'{path}' is not a file of AWS profiles") from None
    return dict(parser[section]) if parser.has_section(section) else {}


_WITHIN = 60.0
_ELSEWHERE = ("sso_session", "sso_start_url", "role_arn", "source_profile", "login_session")
"""Settings of a profile whose keys come from elsewhere."""


def keys_command(profile: str, settings: Mapping[str, str]) -> Sequence[str] | None:
    """Return the command that prints the keys of a profile with these settings, or None."""
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
    """Runs a command for keys, and again whenever they have expired."""

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
