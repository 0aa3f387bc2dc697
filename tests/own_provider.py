"""A copy of the tree that has one provider more, as a package or a site's fork would have it."""

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from clustergate.core.paths import checkout

# Where providers are listed, and where their modules are imported.
_LISTED, _ROOM = "modules.PROVIDER)", "from clustergate.stacks import "


def tree_with(provider: Path, name: str, top: Path) -> Path:
    """Copy the tree into a folder, put a file among its providers, and return its command."""
    listed = subprocess.run(
        ["git", "-C", str(checkout()), "ls-files"], capture_output=True, text=True, check=True
    )
    for file in listed.stdout.splitlines():
        if not file.startswith(("tests/", "evaluations/")):
            (top / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(checkout() / file, top / file)
    room = top / "clustergate" / "stacks"
    shutil.copy(provider, room / f"{name}.py")
    text = (room / "__init__.py").read_text()
    for old, new in (
        (_LISTED, f"modules.PROVIDER, {name}.PROVIDER)"),
        (f"{_ROOM}modules,", f"{_ROOM}{name}, modules,"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (room / "__init__.py").write_text(text)
    venv.create(top / "venv", symlinks=True)
    there = Path(sysconfig.get_path("purelib", vars={"base": str(top / "venv")}))
    suites = sysconfig.get_path("purelib")
    (there / "suite.pth").write_text(f"{top}\nimport site; site.addsitedir({suites!r})\n")
    binaries = top / "venv" / "bin"
    own = Path(sys.executable).parent
    # A script for a shell, which looks for Python beside itself.
    shutil.copy(own / "clustergate", binaries)
    lines = (own / "reframe").read_text().splitlines(keepends=True)
    (binaries / "reframe").write_text("".join([f"#!{binaries / 'python'}\n", *lines[1:]]))
    (binaries / "reframe").chmod(0o755)
    return binaries / "clustergate"
