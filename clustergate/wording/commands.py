"""Commands in sentences, written so that they go on with this call when they are typed below it.

Where the call was given a site, nodes or other options that a command in code marks takes as well,
and the sentence does not speak of them, they are added.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Mapping, Sequence

_PROGRAM = "clustergate"
_SITE = frozenset({"--site"})
_OF_JOBS = _SITE | {"--nodes", "--exclude", "--reservation", "--qos", "--account"}
TAKEN: Mapping[str, Collection[str]] = {
    **dict.fromkeys(("check", "gate", "ab"), _OF_JOBS | {"--"}),
    "screen": _OF_JOBS,
    **dict.fromkeys(("setup", "baseline", "expect", "doctor", "dry-run", "golden pin"), _SITE),
}
"""Which options of a call another command takes as well; what stands behind ``--`` is one."""
# Of the call itself, not of what it does: the same command is told all others again.
_OF_THE_CALL = {
    *("--resume", "--stored", "--json", "--csv", "--copy-to", "--dry-run", "--yes", "--wait"),
    *("--confirm-wait", "--no-confirm"),
}
_NAMED = re.compile(rf"`{_PROGRAM} ((?:golden )?[a-z-]+)([^`]*)`")

_program = _PROGRAM
called: list[Sequence[str]] = []
"""The call: its command, then each option by its long name with its values, as :mod:`argparse`
comes upon them; ``--`` with what is behind it."""


def begin(call: Sequence[Sequence[str]], program: str = "") -> None:
    """Take a call for this one; the ``program`` is found by that name in the same shell."""
    global _program
    _program = program or _program
    called[:] = call


def begin_with(name: str, value: str) -> None:
    """Let the commands that sentences name have another value of an option of this call."""
    called[:] = [[name, value] if group[0] == name else group for group in called]


def completed(sentence: str) -> str:
    """Return a sentence with the options of the call in the commands that it names."""
    return _NAMED.sub(lambda match: _completed(match[1], match[2], sentence), sentence)


def settings_given(options: Sequence[str]) -> list[str]:
    """Return the settings of options for ReFrame: ``NAME=VALUE``, of a sweep ``NAME=VALUE,…``."""
    by_option = r"(?:^|\0)(?:-[SP]\0?|--(?:setvar|parameterize)[=\0])([^=\0]+=[^\0]*)"
    return re.findall(by_option, "\0".join(options))


def swept(options: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each variable that options for ReFrame sweep over (``-P``)."""
    by_option = r"(?:^|\0)(?:-P\0?|--parameterize[=\0])([^=\0]+)=([^\0]*)"
    return {name: v.split(",") for name, v in re.findall(by_option, "\0".join(options))}


def systems_given(options: Sequence[str]) -> list[str]:
    """Return the systems, or partitions of them, that options for ReFrame name (``--system``)."""
    return re.findall(r"(?:^|\0)--system[=\0]([^\0]*)", "\0".join(options))


def _completed(name: str, words: str, sentence: str) -> str:
    # A run that is resumed has the options that it began with.
    options = [] if name in ("check", "screen") and "--resume" in words else called[1:]
    taken = TAKEN.get(name, ())
    more = [
        shlex.join(group)
        for group in options
        if (group[0] in taken or ([name] == called[0] and group[0] not in _OF_THE_CALL))
        and not re.search(rf"(?<![\w-]){group[0]}(?![\w-])", sentence)
    ]
    return f"`{' '.join([_program, name + words, *more])}`"
