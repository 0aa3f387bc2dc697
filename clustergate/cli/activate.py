"""``clustergate activate``: the lines that make a plain ReFrame call use a site's config."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from clustergate.cli.selection import taken
from clustergate.sites import configs as sites


def register(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "activate",
        description='Print the exports for plain ReFrame calls: eval "$(clustergate activate)"',
    )
    parser.add_argument("--site", metavar="NAME", help="site config (default: the one that fits)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the exports."""
    site = taken(arguments.site, sys.stderr).path
    for name, value in sites.reframe_variables(site, sites.load(site)).items():
        print(f"export {name}={shlex.quote(value)}")
    print(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    return 0
