"""Map the folders at the top of the repository into packages; pyproject.toml has the rest.

evaluations/setup.py makes a package of its own of the papers: their code, and their files in these
folders.
"""

import os
import re
import shutil
from pathlib import Path
from typing import Any

from setuptools import find_namespace_packages, setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
# clustergate.core.paths finds them at the top of the clone, and here where the package is
# installed.
TOP = ("docs", "hostfiles", "references", "site_configs", "spack-repo")
# The papers' systems have hostfiles and references of the same name.
SYSTEMS = {
    site.stem
    for site in ROOT.glob("site_configs/*.py")
    if "from evaluations" in site.read_text(encoding="utf-8")
}


def folders(top: str) -> dict[str, str]:
    """Return what each folder is called as a package, from where the repository's top is."""
    return {
        f"clustergate.suite.{os.path.relpath(folder, top).replace(os.sep, '.')}": folder
        for name in TOP
        for folder, _, _ in os.walk(os.path.join(top, name))
        if "__pycache__" not in folder
    }


def is_of_papers(file: str) -> bool:
    """Tell whether a file of the top's folders is part of the published evaluations."""
    path = Path(file)
    return path.stem in SYSTEMS or "published" in path.parts


def chosen(of_papers: bool) -> type[build_py]:
    """Return what copies the papers' files of the top's folders, or all but them."""

    class Chosen(build_py):
        def run(self) -> None:
            # What a build before left there would be taken for a part of this one.
            shutil.rmtree(self.build_lib, ignore_errors=True)
            super().run()

        def find_package_modules(self, package: str, package_dir: str) -> list[Any]:
            modules = super().find_package_modules(package, package_dir)
            return [one for one in modules if self.takes(package, one[2])]

        def find_data_files(self, package: str, src_dir: str) -> list[Any]:
            return [
                one for one in super().find_data_files(package, src_dir) if self.takes(package, one)
            ]

        def takes(self, package: str, file: str) -> bool:
            if package.startswith("clustergate.suite.docs"):
                # Messages name pages; pictures and what makes a site of them stay in the clone.
                return not of_papers and file.endswith(".md")
            in_top = package.startswith("clustergate.suite")
            return not in_top or is_of_papers(file) == of_papers

    return Chosen


# Where this clone came from, as `make release` says it; a job of a CI has its token in there.
ORIGIN = re.sub(
    r"^(?:https://|(?:ssh://)?git@)(?:[^/@]*@)?([^/:]+)[/:](.+?)(?:\.git)?/?$",
    r"https://\1/\2",
    os.environ.get("PACKAGE_ORIGIN", ""),
)
URLS = {"Source": ORIGIN} if ORIGIN.startswith("https://") else {}

if __name__ == "__main__":
    mapped = folders("")
    setup(
        project_urls=URLS,
        packages=[*find_namespace_packages(include=["clustergate*", "reframe_checks*"]), *mapped],
        package_dir=mapped,
        package_data={package: ["*"] for package in mapped},
        cmdclass={"build_py": chosen(of_papers=False)},
    )
