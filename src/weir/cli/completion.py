"""`weir completion` prints a script that lets a shell complete commands, options and values."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]

from weir.cli.command_line import COMPLETION, DebugOption, clean_errors, put


class Shell(StrEnum):
    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell.")], debug: DebugOption = False
) -> None:
    """Print the script that lets a shell complete commands.

    Example: [bold]weir completion bash >> ~/.bashrc[/bold]

    For zsh, append it to ~/.zshrc; for fish, write it to ~/.config/fish/completions/weir.fish. It
    takes effect in new shells.
    """
    with clean_errors(debug):
        script = get_completion_script(prog_name="weir", complete_var=COMPLETION, shell=shell.value)
        put(f"{script}\n")
