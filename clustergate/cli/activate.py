"""``clustergate activate``: the lines that make a plain ReFrame call use a site's config."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from clustergate.cli.selection import taken
from clustergate.sites import configs as sites

DESCRIPTION = 'Print the exports for plain ReFrame calls: eval "$(clustergate activate)"'


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument("--site", metavar="NAME", help="site config (default: the one that fits)")


def run(arguments: argparse.Namespace) -> int:
    """Print the exports."""
    site = taken(arguments.site, sys.stderr).path
    for name, value in sites.reframe_variables(site, sites.load(site)).items():
        print(f"export {name}={shlex.quote(value)}")
    print(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    return 0
