"""Map the folders at the top of the repository into the package; pyproject.toml has the rest."""

import os

from setuptools import find_namespace_packages, setup

# clustergate.paths finds them at the top of the clone, and here where the package is installed.
TOP = ("hostfiles", "references", "site_configs", "spack-repo")
FOLDERS = {
    f"clustergate.suite.{folder.replace(os.sep, '.')}": folder
    for name in TOP
    for folder, _, _ in os.walk(name)
    if "__pycache__" not in folder
}

setup(
    packages=[
        *find_namespace_packages(include=["clustergate*", "evaluations*", "reframe_checks*"]),
        *FOLDERS,
    ],
    package_dir=FOLDERS,
    package_data={package: ["*"] for package in FOLDERS},
)
