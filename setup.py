"""Map the folders at the top of the repository into the package; pyproject.toml has the rest."""

import os
import re

from setuptools import find_namespace_packages, setup

# clustergate.paths finds them at the top of the clone, and here where the package is installed.
TOP = ("hostfiles", "references", "site_configs", "spack-repo")
FOLDERS = {
    f"clustergate.suite.{folder.replace(os.sep, '.')}": folder
    for name in TOP
    for folder, _, _ in os.walk(name)
    if "__pycache__" not in folder
}
# Where this clone came from, as `make release` says it; a job of a CI has its token in there.
ORIGIN = re.sub(
    r"^(?:https://|(?:ssh://)?git@)(?:[^/@]*@)?([^/:]+)[/:](.+?)(?:\.git)?/?$",
    r"https://\1/\2",
    os.environ.get("PACKAGE_ORIGIN", ""),
)

setup(
    project_urls={"Source": ORIGIN} if ORIGIN.startswith("https://") else {},
    packages=[
        *find_namespace_packages(include=["clustergate*", "evaluations*", "reframe_checks*"]),
        *FOLDERS,
    ],
    package_dir=FOLDERS,
    package_data={package: ["*"] for package in FOLDERS},
)
