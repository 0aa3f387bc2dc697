"""The environment every measurement starts from: what the shell brought along is taken out.

:func:`clean_environment` removes the inherited variables that can change a figure, and
:func:`describe_removed` says what each of them would have done. What a site or a stack declares
comes on top later and is no matter of this module. :func:`clean_call` does the same for the call
of ReFrame, from which jobs are submitted. Pure functions.

A variable may hold a credential (``SLURM_JWT``), and what is recorded goes into reports and CI
artifacts: only values of variables that are known to hold none are kept, all others are names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# Names and shell patterns of the variables that can change a figure, each with what it would do;
# the first that matches explains a variable, so the particular stand before the general. Effects
# are worded to follow "it would".
EFFECTS: Mapping[str, str] = {
    "OPENBLAS_CORETYPE": (
        "choose other BLAS kernels; Haswell's on a machine with AVX-512 left 40 % of the rate"
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
    "INTEL_ISA_DISABLE": "keep Intel MPI, and all of Intel's compilers, from vector instructions",
    "INTEL_LIBITTNOTIFY*": "load a profiler into Intel MPI and Intel's OpenMP",
    "OMP_NUM_THREADS": "give each rank another number of threads",
    "OMP_PROC_BIND": "bind threads against the launcher's binding",
    "OMP_PLACES": "bind threads against the launcher's binding",
    "OMP_*": "change how many threads run and where",
    "GOMP_*": "bind threads, or let them wait, in another way",
    "KMP_*": "bind threads, or let them wait, in another way",
    "LIBOMP_*": "bind threads, or let them wait, in another way",
    "TCM_*": "let Intel's thread manager give programs fewer threads",
    "TBB_*": "change how threads of oneTBB get memory",
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
    "YAKSA_*": "change how MPICH packs data types",
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
    "HPL_*": "change what some builds of the benchmark run",
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
    "HWLOC_*": "show the launcher and the library another machine than this one",
    "MPIEXEC_*": "make the launcher start the ranks in another way, or end them",
    "SLURM_CPU_FREQ_REQ": "let the processors run at another frequency",
    "SLURM_CPU_BIND": "bind the ranks elsewhere, or not at all",
    "SLURM_MEM_BIND": "bind the ranks' memory elsewhere, or not at all",
    "SLURM_HINT": "place or bind the ranks in another way",
    "SLURM_DIST*": "place the ranks in another way",
    "SLURM_THREAD_SPEC": "keep hardware threads from the ranks",
    "SLURM_CORE_SPEC": "keep cores from the ranks",
    "SRUN_*": "speak to srun as its options",
    "SLURM_*": "speak to srun of an allocation that is not there, or as its options",
}

# Read by srun as its options (its manual, INPUT ENVIRONMENT VARIABLES), without those that Slurm
# sets in every allocation. In a job it sets one of these where the job script asks for its option.
SRUN_INPUT = tuple(
    f"SLURM_{name}"
    for name in (
        *("ACCTG_FREQ", "BCAST", "BCAST_EXCLUDE", "CLUSTERS", "COMPRESS", "CONSTRAINT"),
        *("CORE_SPEC", "CPU_BIND", "CPU_FREQ_REQ", "DEBUG", "DEBUG_FLAGS", "DELAY_BOOT"),
        *("DEPENDENCY", "DISABLE_STATUS", "DISTRIBUTION", "DIST_PLANESIZE", "EPILOG", "EXACT"),
        *("EXCLUSIVE", "EXIT_ERROR", "EXIT_IMMEDIATE", "EXPORT_ENV", "GPU_BIND", "GPU_FREQ"),
        *("GRES_FLAGS", "HINT", "IMMEDIATE", "KILL_BAD_EXIT", "LABELIO", "MEM_BIND", "MPI_TYPE"),
        *("NETWORK", "NO_KILL", "OPEN_MODE", "OVERCOMMIT", "OVERLAP", "POWER", "PROFILE"),
        *("PROLOG", "REMOTE_CWD", "REQ_SWITCH", "RESV_PORTS", "SEND_LIBS", "SIGNAL"),
        *("SPREAD_JOB", "STDERRMODE", "STDINMODE", "STDOUTMODE", "STEP_GRES"),
        *("STEP_KILLED_MSG_NODE_ID", "TASK_EPILOG", "TASK_PROLOG", "TEST_EXEC", "THREADS"),
        *("THREADS_PER_CORE", "THREAD_SPEC", "TIMELIMIT", "UNBUFFEREDIO", "USE_MIN_NODES"),
        *("WAIT", "WAIT4SWITCH", "WORKING_DIR"),
    )
)
# By these Slurm's programs find their controller and are let in.
_REACHING_SLURM = ("SLURM_CONF*", "SLURM_JWT", "SLURM_SACK*", "SLURM_TIME_FORMAT")
# What a call of ReFrame does without, beside what jobs do.
_AT_SUBMISSION: Mapping[str, str] = {
    "RFM_*": "make ReFrame run otherwise than the suite asks",
}
# ReFrame's variables that change neither what is measured nor where the suite finds it.
_PASSED_ON = (
    *("RFM_GIT_TIMEOUT", "RFM_HTTPJSON_URL", "RFM_KEEP_STAGE_FILES", "RFM_POLL_*"),
    *("RFM_REPORT_JUNIT", "RFM_SQLITE_CONN_TIMEOUT", "RFM_SYSLOG_ADDRESS"),
)
REMOVED_AT_SUBMISSION = "CLUSTERGATE_REMOVED_AT_SUBMISSION"
"""The variable that tells the checks what :func:`clean_call` removed, as JSON."""

# Variables that one BLAS alone reads, with what the name of its file holds.
_READ_BY: Mapping[str, str] = {
    "OPENBLAS_*": "openblas",
    "GOTO_*": "openblas",
    "MKL_*": "mkl",
    "BLIS_*": "blis",
    "AOCL_*": "blis",
    "ARMPL_*": "armpl",
    "NVPL_*": "nvpl",
}
# Variables that one vendor's MPI alone reads, with how that library names itself.
_READ_BY_MPI: Mapping[str, str] = {
    "I_MPI_*": "Intel",
    "MV2_*": "MVAPICH",
    "MVP_*": "MVAPICH",
    "OMPI_*": "Open MPI",
}
# As the first words of MPI_Get_library_version. Others may be made of one of these.
_LIBRARIES = ("Intel(R) MPI Library", "MPICH Version", "MVAPICH", "Open MPI v")
# They only permit what a site's administrator runs anyway.
HARMLESS = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
# Names and shell patterns of the variables whose values are told: numbers, devices, and words of a
# manual. Whatever else may hold anything, and its name has to do.
SHOWN = (
    *("OPENBLAS_CORETYPE", "OPENBLAS_*NUM_THREADS", "OPENBLAS_VERBOSE", "GOTO_NUM_THREADS"),
    *("MKL_*NUM_THREADS", "MKL_DYNAMIC", "MKL_ENABLE_INSTRUCTIONS", "MKL_CBWR"),
    *("MKL_DEBUG_CPU_TYPE", "MKL_VERBOSE", "MKL_THREADING_LAYER", "MKL_INTERFACE_LAYER"),
    *("BLIS_ARCH_TYPE", "BLIS_NUM_THREADS", "ARMPL_NUM_THREADS"),
    *("OMP_DYNAMIC", "OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND", "OMP_SCHEDULE"),
    *("OMP_STACKSIZE", "OMP_THREAD_LIMIT", "OMP_WAIT_POLICY"),
    *("GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT", "KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_HW_SUBSET"),
    *("I_MPI_ADJUST_*", "I_MPI_DEBUG", "I_MPI_FABRICS", "I_MPI_OFI_PROVIDER", "I_MPI_PIN"),
    *("I_MPI_PIN_*", "I_MPI_SHM", "I_MPI_EAGER_THRESHOLD"),
    *("FI_PROVIDER", "FI_MR_CACHE*", "UCX_TLS", "UCX_NET_DEVICES", "UCX_*_THRESH"),
    *("MPIR_CVAR_CH4_*", "MPIR_CVAR_*_ALGORITHM", "MPIR_CVAR_ODD_EVEN_CLIQUES", "HYDRA_BINDING"),
    *("MV2_CPU_BINDING_POLICY", "MV2_ENABLE_AFFINITY", "MV2_HYBRID_BINDING_POLICY", "MV2_USE_*"),
    *("OMPI_MCA_btl", "OMPI_MCA_coll", "OMPI_MCA_mtl", "OMPI_MCA_osc", "OMPI_MCA_pml"),
    *("RFM_TRAP_JOB_ERRORS", "SLURM_CPU_BIND", "SLURM_CPU_FREQ_REQ", "SLURM_DIST*", "SLURM_HINT"),
    *("SLURM_CORE_SPEC", "SLURM_THREAD_SPEC", "SLURM_MEM_BIND"),
    *("PRTE_MCA_hwloc_*", "PRTE_MCA_rmaps_*", "MALLOC_*", "GLIBC_TUNABLES", "LD_BIND_NOW"),
)
HIDDEN = "(hidden)"
ON_COMMAND_LINE = "# sbatch"
"""What begins a line of a job script that tells an option with which it was submitted."""
# Numbers with a decimal point, messages in English.
LOCALE: Mapping[str, str] = {"LANG": "C", "LC_ALL": "C", "LC_NUMERIC": "C"}
_ALLOCATION = "SLURM_JOB_ID"
# Other options of sbatch for which Slurm sets such a variable, as cases of a shell.
_SHORT_OPTIONS = (
    'SLURM_DIST*) option="--distribution|-m";; SLURM_CORE_SPEC) option="$option|-S";; '
    'SLURM_OVERCOMMIT) option="$option|-O";; SLURM_THREADS_PER_CORE) option="$option|--hint";;'
)
_LONGEST_SHOWN = 60
_SECRET_NAME = re.compile(r"auth|cookie|cred|jwt|key|pass|secret|token", re.IGNORECASE)
# Words of manuals are short, and divided by punctuation. A credential is a long word, or is told by
# its beginning, or stands in an address. Bash knows this expression too.
_SECRET_VALUE = "@|//|[[:alnum:]_+/-]{20}|(gh[pousr]_|glpat-|AKIA|[Bb]earer)"


@dataclass(frozen=True)
class CleanEnvironment:
    """An environment to measure in, and what was done to get it.

    ``environment`` is what remains, with the locale set to C, whatever it was. ``removed`` holds
    the variables that could have changed a figure, each with what :func:`shown_value` shows of it.
    """

    environment: Mapping[str, str]
    removed: Mapping[str, str]


def clean_environment(inherited: Mapping[str, str]) -> CleanEnvironment:
    """Separate what may stay of an inherited environment from what can change a figure.

    In a Slurm allocation ``SLURM_*`` stays, without it srun would not find the nodes; but not
    :data:`SRUN_INPUT`.
    """
    allocated = _ALLOCATION in inherited
    removed = {
        name: shown_value(name, value)
        for name, value in inherited.items()
        if _effect(name) is not None
        and name not in (*HARMLESS, *LOCALE)
        and not (allocated and name.startswith("SLURM_") and name not in SRUN_INPUT)
    }
    remaining = {name: value for name, value in inherited.items() if name not in removed}
    return CleanEnvironment({**remaining, **LOCALE}, removed)


def reaches_slurm(name: str) -> bool:
    """Tell whether Slurm's programs find their controller by a variable, or are let in by it."""
    return any(fnmatchcase(name, pattern) for pattern in _REACHING_SLURM)


def clean_call(
    inherited: Mapping[str, str], own: Mapping[str, str], overriding: Collection[str]
) -> dict[str, str]:
    """Return the environment for a call of ReFrame, of which jobs inherit.

    What would reach ReFrame, sbatch or srun as an option is removed, and told the checks in
    :data:`REMOVED_AT_SUBMISSION`. ``own`` are the suite's variables, which replace those of the
    same name; ``overriding`` are the variables by which sbatch passes over what jobs ask for,
    which the run tells.
    """
    allocated = _ALLOCATION in inherited

    def is_option(name: str) -> bool:
        if name.startswith("RFM_"):
            return not any(fnmatchcase(name, pattern) for pattern in _PASSED_ON)
        if name.startswith("SLURM_") and not allocated:
            return not reaches_slurm(name)
        return name in SRUN_INPUT or name.startswith("SRUN_")

    removed = {
        name: shown_value(name, value)
        for name, value in inherited.items()
        if name not in own and is_option(name)
    }
    gone = {*removed, *overriding}
    remaining = {name: value for name, value in inherited.items() if name not in gone}
    return {**remaining, **own, REMOVED_AT_SUBMISSION: json.dumps(removed)}


def removed_at_submission(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that :func:`clean_call` removed, each with what is shown of it."""
    removed: dict[str, str] = json.loads(environ.get(REMOVED_AT_SUBMISSION, "{}"))
    return removed


def shown_value(name: str, value: str) -> str:
    """Return the value of a variable where it may be told, else :data:`HIDDEN`.

    That is an empty one, and one of :data:`SHOWN` that looks like no credential.
    """
    known = any(fnmatchcase(name, pattern) for pattern in SHOWN)
    tellable = known and len(value) <= _LONGEST_SHOWN and not is_secret(name, value)
    return value if tellable or not value else HIDDEN


def is_secret(name: str, value: str) -> bool:
    """Whether a variable's name or its value looks like a credential."""
    looks = _SECRET_VALUE.replace("[:alnum:]", "A-Za-z0-9")
    return bool(_SECRET_NAME.search(name) or re.search(looks, value))


def describe_removed(
    removed: Mapping[str, str],
    blas: Collection[str] | None = None,
    libraries: Collection[str] | None = None,
) -> list[str]:
    """Return a sentence for each removed variable: its value if it may be told, and what it does.

    One without a value did nothing, and LOADEDMODULES speaks for the module system's own account.
    Nor did one of a BLAS that is none of the files ``blas``, which ranks mapped, nor one of another
    vendor's MPI than the ``libraries`` that ran, by what they say of themselves; None: not known. A
    machine may set it in every shell, and every summary would tell it.
    """
    return [
        f"{_assignment(name, value)} was set in the shell and was removed: it would "
        f"{_of(name, {**EFFECTS, **_AT_SUBMISSION}) or 'change what is measured'}"
        for name, value in sorted(removed.items())
        if value and not name.startswith("_")
        if blas is None or not _is_of_another(name, blas)
        if libraries is None or not _is_of_another_mpi(name, libraries)
    ]


def _is_of_another(name: str, blas: Collection[str]) -> bool:
    """Tell whether a variable is of another BLAS than these, of which none may hide what it is."""
    own = next((word for pattern, word in _READ_BY.items() if fnmatchcase(name, pattern)), "")
    named = [{word for word in _READ_BY.values() if word in Path(file).name} for file in blas]
    return bool(own) and all(words and own not in words for words in named)


def _is_of_another_mpi(name: str, libraries: Collection[str]) -> bool:
    """Tell whether a variable is of another MPI library than these, each of which must be known."""
    own = next((word for pattern, word in _READ_BY_MPI.items() if fnmatchcase(name, pattern)), "")
    known = all(one.startswith(_LIBRARIES) for one in libraries)
    return bool(own and libraries) and known and not any(one.startswith(own) for one in libraries)


def _assignment(name: str, value: str) -> str:
    # Records of earlier versions hold every value.
    shown = shown_value(name, value)
    return name if shown == HIDDEN else f"{name}={shown}"


def _effect(name: str) -> str | None:
    return _of(name, EFFECTS)


def _of(name: str, effects: Mapping[str, str]) -> str | None:
    return next((effect for pattern, effect in effects.items() if fnmatchcase(name, pattern)), None)


def cleaning_script(record: str) -> str:
    """Return shell lines (bash) that clean a job's environment as :func:`clean_environment` does.

    What they take away is written to the file ``record`` in the job's folder, for
    :func:`read_removed`. They run on the node, where the variables arrive, and not where the job
    is submitted. An option of srun's stays that the job script itself asks for, as a site config
    may: Slurm sets its variable.
    """
    patterns = "|".join(EFFECTS)
    shown = "|".join(SHOWN)
    harmless = "|".join(HARMLESS)
    locale = " ".join(f"{name}={value}" for name, value in LOCALE.items())
    return (
        f": > {record}\n"
        f"secret='{_SECRET_VALUE}'\n"
        "for name in $(compgen -e); do\n"
        f'  case "${{{_ALLOCATION}:+in an allocation}} $name" in "in an allocation SLURM_"*)\n'
        f'    case "$name" in {"|".join(SRUN_INPUT)}) ;; *) continue;; esac\n'
        '    option="${name#SLURM_}"; option="${option%_REQ}"; option="${option%_ENV}"\n'
        '    option="${option,,}"; option="--${option//_/-}"\n'
        f'    case "$name" in {_SHORT_OPTIONS} esac\n'
        # The bracket keeps this line from looking like a line for sbatch.
        f'    if grep -qsE "^[#](SBATCH|{ON_COMMAND_LINE[1:]})(.*[[:space:]])?($option)" "$0"\n'
        "    then continue; fi;;\n"
        "  esac\n"
        f'  case "$name" in\n    {harmless}) ;;\n    {patterns})\n'
        # The record lies in the job's folder, which is kept: no value that is not told.
        f'      case "$name" in {shown}) told="=${{!name}}";; *) told="";; esac\n'
        '      [[ ! "${!name}" =~ $secret ]] || told=""; [ -n "${!name}" ] || told="="\n'
        f'      printf \'%s\\0\' "$name$told" >> {record}; unset -v "$name";;\n'
        "  esac\n"
        "done\n"
        f"export {locale}"
    )


def read_removed(record: Path) -> dict[str, str]:
    """Return the variables that :func:`cleaning_script` recorded, each with what is shown of it."""
    try:
        content = record.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return {}
    entries = (entry.partition("=") for entry in content.split("\0") if entry)
    return {name: shown_value(name, value) if equals else HIDDEN for name, equals, value in entries}
