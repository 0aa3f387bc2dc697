"""What the package says of itself to those who install it."""

import email
import shutil
import subprocess
import sys

from clustergate.cli import COMMANDS
from clustergate.paths import checkout


def test_a_package_made_of_the_clone_carries_its_licence_and_that_of_what_it_bundles(tmp_path):
    bundled = "clustergate/report/templates/uplot.LICENSE"
    (tmp_path / bundled).parent.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "setup.py", bundled):
        shutil.copy(checkout() / name, tmp_path / name)
    made = "import setuptools.build_meta as b; print(b.prepare_metadata_for_build_wheel('.'))"
    ended = subprocess.run(
        [sys.executable, "-c", made], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    information = tmp_path / ended.stdout.split()[-1]
    told = email.message_from_string((information / "METADATA").read_text())
    assert told["License-Expression"] == "BSD-3-Clause AND MIT"
    assert told.get_all("License-File") == ["LICENSE", bundled]
    (licence,) = information.rglob("LICENSE")
    assert "Copyright (c) 2026, the clustergate authors" in licence.read_text()


def test_every_command_is_held_apart_from_the_others():
    contracts = (checkout() / "pyproject.toml").read_text()
    independent = contracts[contracts.index('name = "No command imports another"') :]
    for command in COMMANDS:
        assert f'"clustergate.cli.{command}"' in independent, command
