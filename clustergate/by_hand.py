"""The lines to type to get a figure by hand, without the suite: pure text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence


def script(
    inputs: Mapping[str, str], exports: Sequence[str], launch: Sequence[str], output: str = ""
) -> str:
    """Return shell lines that repeat a launch in a folder of their own.

    ``inputs`` are the program's input files, ``exports`` shell lines, ``launch`` the words of the
    command, and ``output`` a file that the program writes its figures into, if it does.
    """
    lines = ['cd "$(mktemp -d)"']
    for name, text in inputs.items():
        lines += [f"cat > {shlex.quote(name)} <<'END_OF_INPUT'", text.rstrip("\n"), "END_OF_INPUT"]
    lines += [*exports, shlex.join(launch)]
    if output:
        lines.append(f"cat {shlex.quote(output)}")
    return "\n".join(lines)
