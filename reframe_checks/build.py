"""The build fixture: a stack is put on disk once, by whoever provides it."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Sequence

import reframe as rfm
from reframe.core.builtins import run_before, sanity_function, variable
from reframe.core.meta import make_test

from clustergate.core.paths import state_dir
from clustergate.stacks.manifest import SET_UP, read_manifest
from reframe_checks.system import begin_clean, stack_of


class StackBuild(rfm.CompileOnlyRegressionTest):
    """Put a stack on disk once, whoever provides it; what is there already costs nothing."""

    build_system = "CustomBuild"
    build_locally = True
    sourcesdir = None
    #: Options of ``clustergate setup`` for what is not always built.
    wanted: Sequence[str] = ()
    #: Accepted because a mode sets it on every test; a build is the same in all of them.
    mode = variable(str, value="smoke")

    @run_before("compile")
    def call_the_provider(self) -> None:
        """Let the provider that the site config names do its work."""
        asked = stack_of(self).request
        if not self.wanted and asked.stack in os.environ.get(SET_UP, "").split(","):
            self.build_system.commands = ["true"]
            return
        command = [sys.executable, "-m", "clustergate", "setup", "--stack", asked.stack]
        command += [
            "--provider",
            asked.provider,
            "--settings",
            json.dumps(asked.settings, default=str),
            *self.wanted,
        ]
        self.build_system.commands = [shlex.join(command)]

    @run_before("compile")
    def begin_clean(self) -> None:
        begin_clean(self.build_job)

    @sanity_function
    def manifest_is_readable(self) -> bool:
        read_manifest(state_dir(), self.current_environ.name)
        return True


def build_with(benchmark: str) -> type[StackBuild]:
    """Return the fixture that puts a stack on disk with a benchmark on request."""
    body = {"wanted": ("--applications", benchmark)}
    made: type[StackBuild] = make_test(f"{benchmark.title()}Build", (StackBuild,), body)
    return made
