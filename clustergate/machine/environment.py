"""The environment every measurement starts from: what the shell brought along is taken out.

:func:`clean_environment` removes the inherited variables that can change a figure, and
:func:`describe_removed` says what each of them would have done. What a site or a stack declares
comes on top later and is no matter of this module. Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

# Names and shell patterns of the variables that can change a figure, each with what it would do;
# the first that matches explains a variable, so the particular stand before the general. Effects
# are worded to follow "it would".
EFFECTS: Mapping[str, str] = {
    "OPENBLAS_CORETYPE": (
        "choose other BLAS kernels; with Haswell's on a machine with AVX-512 HPL fell to 40 %"
    ),
    "OPENBLAS_*NUM_THREADS": "give each rank another number of BLAS threads",
    "OPENBLAS_*": "change how OpenBLAS computes",
    "GOTO_*": "change how OpenBLAS computes, by the names of its forerunner",
    "MKL_ENABLE_INSTRUCTIONS": "choose other BLAS kernels",
    "MKL_CBWR": "choose other BLAS kernels, slower for the sake of reproducible bits",
    "MKL_DEBUG_CPU_TYPE": "choose other BLAS kernels",
    "MKL_VERBOSE": "print a line for every BLAS call, amid the figures",
    "MKL_*": "change how MKL computes, or with how many threads",
    "BLIS_ARCH_TYPE": "choose other BLAS kernels",
    "BLIS_*": "change how BLIS computes, or with how many threads",
    "AOCL_*": "choose other BLAS kernels, or print amid the figures",
    "ARMPL_*": "change how Arm's BLAS computes, or with how many threads",
    "NVPL_*": "change how NVIDIA's BLAS computes, or with how many threads",
    "FLEXIBLAS*": "put another BLAS behind FlexiBLAS",
    "OMP_NUM_THREADS": "give each rank another number of threads",
    "OMP_PROC_BIND": "bind threads against the launcher's binding",
    "OMP_PLACES": "bind threads against the launcher's binding",
    "OMP_*": "change how many threads run and where",
    "GOMP_*": "bind threads, or let them wait, in another way",
    "KMP_*": "bind threads, or let them wait, in another way",
    "I_MPI_FABRICS": "make Intel MPI use another fabric",
    "I_MPI_OFI_PROVIDER": "make Intel MPI use another fabric",
    "I_MPI_PIN*": "bind the ranks of Intel MPI elsewhere, or not at all",
    "I_MPI_ADJUST_*": "choose other algorithms for collectives",
    "I_MPI_DEBUG": "print amid the figures",
    "I_MPI_ROOT": "lead to another installation of Intel MPI",
    "I_MPI_*": "change how Intel MPI starts, binds or communicates",
    "FI_PROVIDER": "make libfabric use another fabric, TCP instead of InfiniBand for one",
    "FI_*": "change how libfabric communicates",
    "UCX_TLS": "make UCX use other transports, TCP instead of InfiniBand for one",
    "UCX_NET_DEVICES": "make UCX use another network device",
    "UCX_*": "change how UCX communicates",
    "UCC_*": "choose other algorithms for collectives",
    "HCOLL_*": "choose other algorithms for collectives",
    "SHARP_*": "move collectives into the switches, or keep them out of there",
    "MPICH_*": "change how MPICH communicates",
    "MPIR_*": "change how MPICH communicates, or which algorithms its collectives use",
    "HYDRA_*": "make MPICH's launcher start or bind the ranks in another way",
    "MV2_*": "change how MVAPICH2 communicates or binds its ranks",
    "MVP_*": "change how MVAPICH communicates or binds its ranks",
    "OMPI_MCA_*": "override a parameter of Open MPI: transport, collectives or binding",
    "OMPI_*": "change how Open MPI compiles, starts or communicates",
    "OPAL_PREFIX": "lead to another installation of Open MPI",
    "OPAL_*": "change how Open MPI finds its parts",
    "PMIX_*": "tie the ranks to another launch, or change how Open MPI starts them",
    "PMI_*": "tie the ranks to another launch: each would be rank 0 of 1",
    "PRTE_*": "make Open MPI's launcher start or bind the ranks in another way",
    "MPI_LOCAL*": "tie the ranks to another launch",
    "PSM2_*": "change how Omni-Path communicates",
    "PSM3_*": "change how libfabric's PSM3 provider communicates",
    "HFI_*": "change how Omni-Path communicates",
    "IBV_*": "change how InfiniBand's user library works",
    "MLX5_*": "change how the InfiniBand adapter is driven",
    "MLX4_*": "change how the InfiniBand adapter is driven",
    "RDMAV_*": "change how memory is registered for InfiniBand",
    "HPL_*": "change what some builds of HPL run",
    "MALLOC_*": "make memory allocation faster or slower",
    "GLIBC_TUNABLES": "make memory allocation, or the choice of memcpy, faster or slower",
    "MEMKIND_*": "put memory elsewhere",
    "LD_PRELOAD": "load a library into every program, the measured one too",
    "LD_LIBRARY_PATH": "let programs find other libraries than they were built with, MPI's first",
    "LD_BIND_NOW": "move the cost of finding symbols into the start of the program",
    "LD_*": "make the loader find or do something else",
    "PYTHONPATH": "make Python import something else than what is installed",
    "PYTHONHOME": "make Python import something else than what is installed",
    "CC": "compile with another compiler than the stack's",
    "CXX": "compile with another compiler than the stack's",
    "FC": "compile with another compiler than the stack's",
    "F77": "compile with another compiler than the stack's",
    "CFLAGS": "compile the benchmarks with other options",
    "CXXFLAGS": "compile the benchmarks with other options",
    "CPPFLAGS": "compile the benchmarks with other options",
    "FFLAGS": "compile the benchmarks with other options",
    "FCFLAGS": "compile the benchmarks with other options",
    "LDFLAGS": "link the benchmarks with other options",
    "LDLIBS": "link the benchmarks with other libraries",
    "CPATH": "compile the benchmarks with other headers",
    "C_INCLUDE_PATH": "compile the benchmarks with other headers",
    "CPLUS_INCLUDE_PATH": "compile the benchmarks with other headers",
    "LIBRARY_PATH": "link the benchmarks with other libraries",
    "COMPILER_PATH": "compile the benchmarks with another assembler or linker",
    "GCC_EXEC_PREFIX": "compile the benchmarks with parts of another compiler",
    # The module system's own account: without LD_LIBRARY_PATH the loaded modules are no longer what
    # it says.
    "LOADEDMODULES": "let a later 'module load' of the same module do nothing",
    "_LMFILES_*": "belong to LOADEDMODULES",
    "_ModuleTable*": "belong to LOADEDMODULES",
    "__LMOD_REF_COUNT_*": "belong to LOADEDMODULES",
    "__MODULES_*": "belong to LOADEDMODULES",
    "SLURM_*": "speak to srun of an allocation that is not there, or as its options",
}

# They only permit what a site's administrator runs anyway.
HARMLESS = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
# Numbers with a decimal point, messages in English.
LOCALE: Mapping[str, str] = {"LANG": "C", "LC_ALL": "C", "LC_NUMERIC": "C"}
_ALLOCATION = "SLURM_JOB_ID"
_VALUE_SHOWN = 60


@dataclass(frozen=True)
class CleanEnvironment:
    """An environment to measure in, and what was done to get it.

    ``environment`` is what remains, with the locale set to C, whatever it was. ``removed`` holds
    the variables that could have changed a figure, with their values; ``kept`` those which could as
    well and stay because they were declared, or because they describe the job's allocation.
    """

    environment: Mapping[str, str]
    removed: Mapping[str, str]
    kept: Mapping[str, str]


def clean_environment(inherited: Mapping[str, str], keep: Iterable[str] = ()) -> CleanEnvironment:
    """Separate what may stay of an inherited environment from what can change a figure.

    ``keep`` names variables (shell patterns allowed: ``FI_*``) that stay all the same. In a Slurm
    allocation ``SLURM_*`` stays, without it srun would not find the nodes.
    """
    declared = (*keep, "SLURM_*") if _ALLOCATION in inherited else tuple(keep)
    suspects = {
        name: value
        for name, value in inherited.items()
        if _effect(name) is not None and name not in HARMLESS and name not in LOCALE
    }
    kept = {name: value for name, value in suspects.items() if _matches(name, declared)}
    removed = {name: value for name, value in suspects.items() if name not in kept}
    remaining = {name: value for name, value in inherited.items() if name not in removed}
    return CleanEnvironment({**remaining, **LOCALE}, removed, kept)


def describe_removed(removed: Mapping[str, str]) -> list[str]:
    """Return a sentence for each removed variable: its value, and what it would have done.

    One without a value did nothing, and LOADEDMODULES speaks for the module system's own account.
    """
    return [
        f"{name}={_shortened(value)} was set in the shell and was removed: it would "
        f"{_effect(name) or 'change what is measured'}"
        for name, value in sorted(removed.items())
        if value and not name.startswith("_")
    ]


def _effect(name: str) -> str | None:
    return next((effect for pattern, effect in EFFECTS.items() if fnmatchcase(name, pattern)), None)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _shortened(value: str) -> str:
    """Write a value in one line: module systems and paths put thousands of characters into one."""
    line = " ".join(value.split())
    return line if len(line) <= _VALUE_SHOWN else line[: _VALUE_SHOWN - 1] + "…"


def cleaning_script(record: str) -> str:
    """Return shell lines (bash) that clean a job's environment as :func:`clean_environment` does.

    What they take away is written to the file ``record`` in the job's folder, for
    :func:`read_removed`. They run on the node, where the variables arrive, and not where the job
    is submitted.
    """
    patterns = "|".join(EFFECTS)
    harmless = "|".join(HARMLESS)
    locale = " ".join(f"{name}={value}" for name, value in LOCALE.items())
    return (
        f": > {record}\n"
        "for name in $(compgen -e); do\n"
        f'  case "${{{_ALLOCATION}:+in an allocation}} $name" in "in an allocation SLURM_"*) '
        "continue;; esac\n"
        f'  case "$name" in\n    {harmless}) ;;\n    {patterns})\n'
        f'      printf \'%s=%s\\0\' "$name" "${{!name}}" >> {record}; unset -v "$name";;\n'
        "  esac\n"
        "done\n"
        f"export {locale}"
    )


def read_removed(content: str) -> dict[str, str]:
    """Return the variables that :func:`cleaning_script` recorded, with their values."""
    entries = (entry.partition("=") for entry in content.split("\0") if entry)
    return {name: value for name, _, value in entries}
