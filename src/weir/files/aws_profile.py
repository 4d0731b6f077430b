"""Reads AWS profiles, for processes that have no keys in their environment.

obstore knows the environment, the roles of machines and containers, and web identities; it does
not know profiles. So the keys, the region and the endpoint of a profile are read here, by the rules
of the AWS tools: the environment goes first, `AWS_PROFILE` names the profile (`default` without
it), `AWS_SHARED_CREDENTIALS_FILE` and `AWS_CONFIG_FILE` say where the files are. The keys of a
profile that gets them elsewhere (SSO, a role) come by a command (`aws_commands.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from configparser import ConfigParser, Error
from pathlib import Path

from weir.errors import RunError
from weir.files.aws_commands import CommandKeys, keys_command

_OWN_WAYS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SKIP_SIGNATURE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
"""Variables that show that credentials come from elsewhere."""
_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
_OTHER_SETTINGS = {
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint_url": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
}
"""Other settings of a profile, and the variables that override them."""


def profile_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the profile adds to the environment, by obstore's names; nothing if there is no
    profile."""
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
    """Return what gets the keys of a profile that has none of its own; None if the environment or
    the profile has them, or there is no profile."""
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
