"""``clustergate setup``: install the stacks of a site."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from clustergate.benchmarks.registry import builds_on_request
from clustergate.cli.passing_on import option
from clustergate.cli.progress import Progress
from clustergate.cli.selection import add_repeatable, add_site, choose_site
from clustergate.core.files.whole import parse_json
from clustergate.sites import configs as sites
from clustergate.stacks import PROVIDERS, StackRequest
from clustergate.stacks.manifest import Manifest
from clustergate.stacks.set_up import NotSetUp, error_of, provide_each

DESCRIPTION = (
    "Install the MPI stacks of a site and their benchmarks. What is installed "
    "already is kept; an interrupted set-up resumes."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    add_site(parser)
    add_repeatable(parser, "--stack", "only this stack (repeatable)")
    option(parser, "--provider", "with --stack: its provider", choices=PROVIDERS)
    option(
        parser,
        "--settings JSON",
        "with --provider: its settings, as in the site config",
        type=_settings,
        default={},
    )
    option(parser, "--refresh", "retry downloads that were unavailable last time")
    option(parser, "--required", "exit 2 when a stack is not available here")
    known = list(builds_on_request())
    means = f"also build applications that only their own checks need: {', '.join(known)}; no "
    means += "name: all (with Spack this is a setting of the stack)"
    option(parser, "--applications NAME", means, nargs="*", choices=known, default=())


def run(arguments: argparse.Namespace) -> int:
    """Provide the stacks; an unavailable one is reported, and an error if it is required."""
    if arguments.stack and arguments.provider:
        provider, settings = arguments.provider, arguments.settings
        wanted = [StackRequest(name, provider, settings) for name in arguments.stack]
    else:
        site = sites.load(choose_site(arguments.site, sys.stderr).path)
        wanted = [stack.request for stack in site.stacks_named(arguments.stack)]
    # The option without a name is an empty list, and no option an empty tuple.
    every = arguments.applications == []
    applications = tuple(builds_on_request()) if every else arguments.applications
    with Progress(arguments.invocation) as say:
        results = provide_each(
            wanted, say=say, refresh=arguments.refresh, applications=applications
        )
    failed = [one for one in results if isinstance(one, NotSetUp)]
    manifests = [one for one in results if isinstance(one, Manifest)]
    for manifest in manifests:
        if manifest.unavailable:
            line = f"{manifest.mpi_name}: not available here: {manifest.unavailable}"
            print(arguments.invocation.completed(line))
            continue
        print(f"{manifest.mpi_name} {manifest.mpi_version} in {manifest.mpi_prefix}")
        if manifest.lock:
            print(f"  from {manifest.lock}")
        for reason, names in absences(manifest).items():
            line = f"  {', '.join(names)}: not available here: {reason}"
            print(arguments.invocation.completed(line))
    if failed and len(failed) == len(wanted):
        raise error_of(failed)
    for one in failed:
        print(f"clustergate: {arguments.invocation.completed(one)}", file=sys.stderr)
    absent = any(manifest.unavailable for manifest in manifests)
    return 2 if failed or (arguments.required and absent) else 0


def absences(manifest: Manifest) -> dict[str, list[str]]:
    """Return the names of the unavailable programs by the reason.

    The name of an application stands for all of its programs.
    """
    whole = {program: name for name, one in builds_on_request().items() for program in one.programs}
    by_reason: dict[str, list[str]] = {}
    for name, program in manifest.programs.items():
        if program.unavailable:
            names = by_reason.setdefault(program.unavailable, [])
            if (shown := whole.get(name, name)) not in names:
                names.append(shown)
    return by_reason


def _settings(text: str) -> dict[str, Any]:
    try:
        settings = parse_json(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from None
    if not isinstance(settings, dict):
        raise argparse.ArgumentTypeError("must be a JSON object")
    return settings
