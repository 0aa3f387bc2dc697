"""Commands in sentences, written so that they go on with a call when they are typed below it.

Where the call was given a site, nodes or other options that a command in code marks takes as well,
and the sentence does not speak of them, they are added: where the sentence leaves, by whoever
renders it. A reason by itself knows of no call.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_PROGRAM = "clustergate"
_SITE = frozenset({"--site"})
_OF_JOBS = _SITE | {"--nodes", "--exclude", "--reservation", "--qos", "--account"}
TAKEN: Mapping[str, Collection[str]] = {
    **dict.fromkeys(("check", "gate", "ab"), _OF_JOBS | {"--"}),
    **dict.fromkeys(("screen", "roll"), _OF_JOBS),
    **dict.fromkeys(("setup", "baseline", "expect", "doctor", "dry-run", "golden pin"), _SITE),
}
"""Which options of a call another command takes as well; what stands behind ``--`` is one."""
# Of the call itself, not of what it does: the same command is told all others again.
_OF_THE_CALL = {
    *("--resume", "--stored", "--json", "--csv", "--copy-to", "--dry-run", "--yes", "--wait"),
    *("--confirm-wait", "--no-confirm"),
}
# What nobody reaches behind a pipeline's job: a folder of its machine, its browser, its options.
_FOLDER = re.compile(r"(?:/[^\s:;,()]+)?/results/runs/")
_PAGE = re.compile(rf"`\S*{_PROGRAM} open (\S+?)`")
_BUDGET = re.compile(rf"`\S*{_PROGRAM} gate[^`]* --budget[ =]([^\s`]+)[^`]*`")
_NAMED = re.compile(rf"`{_PROGRAM} ((?:golden )?[a-z-]+)([^`]*)`")


@dataclass(frozen=True)
class Invocation:
    """How a command was called.

    ``call`` is its name, then each option by its long name with its values, in their order; ``--``
    with what is behind it is one. ``program`` is how the same shell finds this program,
    ``artifacts`` the folder of a pipeline's job, in its project, to which the run is copied.
    """

    call: tuple[tuple[str, ...], ...] = ()
    program: str = _PROGRAM
    artifacts: str = ""

    def of(self, call: Iterable[Iterable[str]]) -> Invocation:
        """Return it as called at another time, such as that of what is resumed."""
        return replace(self, call=tuple(map(tuple, call)))

    def with_value(self, name: str, value: str) -> Invocation:
        """Return it with another value of an option that it has."""
        return self.of((name, value) if group[0] == name else group for group in self.call)

    def completed(self, sentence: object) -> str:
        """Return a sentence with the options of the call in the commands that it names.

        In a pipeline it names the artifact and the variable instead, which whoever reads it has.
        """
        text = str(sentence)
        text = _NAMED.sub(lambda match: self._completed(match[1], match[2], text), text)
        if self.artifacts:
            text = _FOLDER.sub(f"{self.artifacts}/", text)
            text = _PAGE.sub(rf"{self.artifacts}/\1/report.html of this job's artifacts", text)
            if self.call[:1] == (("gate",),):
                text = _BUDGET.sub(r"`CLUSTERGATE_BUDGET=\1`", text)
                text = re.sub("`?--budget`?", "CLUSTERGATE_BUDGET", text)
        return text

    def in_json(self, content: Any) -> Any:
        """Return plain data with its sentences completed; facts, which are data, stay as they are.

        So do the keys of a mapping.
        """
        if isinstance(content, str):
            return self.completed(content)
        if isinstance(content, Mapping):
            return {k: v if k == "facts" else self.in_json(v) for k, v in content.items()}
        return [*map(self.in_json, content)] if isinstance(content, list | tuple) else content

    def _completed(self, name: str, words: str, sentence: str) -> str:
        # A run that is resumed has the options that it began with.
        options = [] if name in ("check", "screen") and "--resume" in words else self.call[1:]
        taken = TAKEN.get(name, ())
        more = [
            shlex.join(group)
            for group in options
            if (group[0] in taken or (name == self.call[0][0] and group[0] not in _OF_THE_CALL))
            and not re.search(rf"(?<![\w-]){group[0]}(?![\w-])", sentence)
        ]
        return f"`{' '.join([self.program, name + words, *more])}`"


NO_CALL = Invocation()
"""That of whoever was not called from a command line: sentences stay as they are written."""


def settings_given(options: Sequence[str]) -> list[str]:
    """Return the settings of options for ReFrame: ``NAME=VALUE``, of a sweep ``NAME=VALUE,…``."""
    by_option = r"(?:^|\0)(?:-[SP]\0?|--(?:setvar|parameterize)[=\0])([^=\0]+=[^\0]*)"
    return re.findall(by_option, "\0".join(options))


def sweeps_given(options: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each variable that options for ReFrame sweep over (``-P``)."""
    by_option = r"(?:^|\0)(?:-P\0?|--parameterize[=\0])([^=\0]+)=([^\0]*)"
    return {name: v.split(",") for name, v in re.findall(by_option, "\0".join(options))}


def systems_given(options: Sequence[str]) -> list[str]:
    """Return the systems, or partitions of them, that options for ReFrame name (``--system``)."""
    return re.findall(r"(?:^|\0)--system[=\0]([^\0]*)", "\0".join(options))
