"""``clustergate activate``: the lines that make a plain ReFrame call use a site's config."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from clustergate.cli.selection import add_site, choose_site
from clustergate.sites import configs as sites

DESCRIPTION = 'Print the exports for plain ReFrame calls: eval "$(clustergate activate)"'


def add_options(parser: argparse.ArgumentParser) -> None:
    add_site(parser)


def run(arguments: argparse.Namespace) -> int:
    # Also where no site config fits: then the command that says what to do is found.
    print(f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH")
    site = choose_site(arguments.site, sys.stderr).path
    for name, value in sites.reframe_variables(site, sites.load(site)).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0
