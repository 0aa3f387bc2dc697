"""Make a package of the papers, of the version of the suite that they are written for."""

import runpy
import sys

from setuptools import find_namespace_packages, setup

# It lies beside modules that are imported.
if __name__ == "__main__":
    from setuptools_scm import get_version

    if "sdist" in sys.argv:
        sys.exit("the source archive of the suite holds the papers as well: build a wheel of it")
    suite = runpy.run_path("../setup.py")
    # A clone has them at its top, and finds the suite itself no more where this maps them.
    mapped = {} if "editable_wheel" in sys.argv else suite["folders"]("..")
    version = get_version("..", fallback_version="0.1.0.dev0")

    setup(
        script_name="setup.py",  # is no module of the package
        # What is built is none either.
        options={"build": {"build_base": "../build/evaluations"}},
        version=version,
        project_urls=suite["URLS"],
        install_requires=[f"clustergate=={version}"],
        packages=[*find_namespace_packages("..", include=["evaluations*"]), *mapped],
        package_dir={"": "..", **mapped},
        package_data={package: ["*"] for package in (*mapped, "evaluations.templates")},
        cmdclass={"build_py": suite["chosen"](of_papers=True)},
    )
