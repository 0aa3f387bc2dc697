"""The lines to type to get a figure by hand, without the suite: pure text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from clustergate.launch.plan import IN_FRONT


def script(
    inputs: Mapping[str, str],
    variables: Mapping[str, str],
    launch: Sequence[str],
    output: str = "",
) -> str:
    """Return shell lines that repeat a launch in a folder of their own.

    ``inputs`` are the program's input files, ``variables`` what the stack needs, ``launch`` the
    words of the command, and ``output`` the file that the program writes its figures into, if any.
    """
    lines = ['cd "$(mktemp -d)"']
    for name, text in inputs.items():
        lines += _written(shlex.quote(name), text.splitlines())
    for name, value in variables.items():
        behind = f"${{{name}:+:${name}}}" if name in IN_FRONT else ""
        lines.append(f"export {name}={shlex.quote(value)}{behind}")
    lines.append(shlex.join(launch))
    if output:
        # A pattern is for the shell.
        lines.append(f"cat {output if '*' in output else shlex.quote(output)}")
    return "\n".join(lines)


def _written(file: str, lines: Sequence[str]) -> list[str]:
    if all(map(str.isdigit, lines)):  # sizes of messages would fill pages, one a line
        return [f"printf '%s\\n' {' '.join(lines)} > {file}"]
    return [f"cat > {file} <<'END_OF_INPUT'", *lines, "END_OF_INPUT"]
