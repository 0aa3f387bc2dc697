"""What speaks against a launch having been the one asked for."""

_WHO = "{ranks:ranks} on {hosts:names}"
_PROCESSES = "{processes:process|processes} on {hosts:names}"
_WRAPPER = "check whether the program is a wrapper that prints a stored file"
_OTHER_OUTPUT = "this is the output of another launch"

WORDS = {
    "proof.stuck-in-init": "no rank returned from MPI_Init",
    "proof.late-ranks": (
        "it waited for ranks that never reached MPI_Init; those that did: {came:names}"
    ),
    "proof.silent-ranks": (
        _WHO + " did not respond to the signal that ended the job, but the others did",
        *("stopped, or stuck in the kernel", ""),
    ),
    "proof.hung-ranks": (
        _WHO + " never reached MPI_Finalize, but the others did",
        "see the end of the job's output, and whether that node or its fabric hangs",
    ),
    "proof.no-record": (
        "no process left a record of this run",
        "the program never reached MPI_Init, is linked statically, or was started without the "
        "preloaded proof library",
        "the end of the job's output says which",
    ),
    "proof.used-folder": (
        "the proof folder holds {records:record|records} of another run (nonce {nonces:list})",
        *("it was used before", "give each run an empty folder"),
    ),
    "proof.other-family": (
        _PROCESSES + " could not be asked for a rank",
        "the proof library was compiled for another family of MPI than {version} ({library}), "
        "which the program loaded",
        "the program or LD_LIBRARY_PATH is not the stack's, or the proof library is not: compile "
        "both with the stack's mpicc",
    ),
    "proof.singleton": (
        "1 process believes it is rank 0 of 1, not one of {expected}",
        "started by another MPI's mpirun or without its process manager (PMI)",
        "it runs {version}, so start it with the mpirun of that library, or with the srun --mpi= "
        "type it understands",
    ),
    "proof.singletons": (
        "{processes} processes each believe they are rank 0 of 1, not one of {expected}",
        "started by another MPI's mpirun or without its process manager (PMI)",
        "they run {version}, so start them with the mpirun of that library, or with the srun "
        "--mpi= type it understands",
    ),
    "proof.other-size": (
        _PROCESSES + " belong to a job of {size:rank|ranks}, where {expected} were asked for",
        "compare the launcher's -n with the slots of the hostfile or the allocation",
    ),
    "proof.started-twice": (
        "{ranks:ranks} left more than one record",
        "the program was started more than once in this run",
        "look at the job's script",
    ),
    "proof.missing-ranks": (
        "{ranks:ranks} of {expected} left no record",
        "killed before MPI_Init ended, started without the preloaded proof library, or on a node "
        "that cannot write the proof folder",
        "see that it is on a file system that all nodes share",
    ),
    "proof.other-mpi": (
        _WHO + " loaded {library}, not {expected}",
        "a module, LD_LIBRARY_PATH or the program's RUNPATH led there",
        "'ldd {executable}' on the node shows by which",
    ),
    "proof.several-mpi": (
        _WHO + " loaded {count} MPI libraries at once ({libraries:list})",
        "the program or one of its libraries was linked with another MPI than the stack's",
        "compile it again with the stack's mpicc",
    ),
    "proof.other-version": (
        _WHO + " ran {version}, which does not match '{expected}'",
        "another version was loaded, or installed over {library}",
        "load the expected version or correct it; where clustergate installed the library, remove "
        "the folder of this installation, and `clustergate setup` makes it anew",
    ),
    "proof.preloaded": (
        _WHO + ": {libraries:list} was preloaded without being requested",
        "what is loaded before the program's own libraries can change any figure and any clock",
        "take it out of /etc/ld.so.preload, or, if all jobs of the site run with it, name it in "
        "LD_PRELOAD among the env_vars of the site config",
    ),
    "proof.audited": (
        _WHO + " ran under an audit library of the loader, which can intercept any function",
        "remove LD_AUDIT from what the shell of the node sets",
    ),
    "proof.mistimed": (
        _WHO + ": MPI_Wtime ran at {speed} times CLOCK_MONOTONIC_RAW, so that no time and no rate "
        "counts",
        "the MPI library calibrated its timer wrongly, as it does on a busy core",
        "run again on an idle node; if it stays so, look at what is preloaded there",
    ),
    "proof.launched-again": (
        "a launch was made again, since MPI_Wtime of {ranks:ranks} on {hosts:names} ran at {speed} "
        "times CLOCK_MONOTONIC_RAW",
        "the MPI library calibrated its timer wrongly, as it does on a busy core",
        "nothing, unless it happens often: then measure on idle nodes",
    ),
    "proof.wrong-clocks": (
        _WHO + ": clocks ran at another speed than the kernel's ({clocks} times "
        "CLOCK_MONOTONIC_RAW), so that no time and no rate counts",
        "something intercepts the clocks of the C library or of MPI, as libfaketime does",
        "look at what is preloaded on the node",
    ),
    "proof.clock-was-set": (
        _WHO + ": the clock of the node was set by {set_by_s:+.2g} s in {seconds:.1f} s while the "
        "program ran, and {clocks:and} followed, so no time counts",
        "let the time service settle (chronyc tracking, timedatectl), then run again",
    ),
    "proof.clocks-apart": (
        "{hosts:names} counted {longest_s:.1f} s between MPI_Init and MPI_Finalize of a launch "
        "that took {launch_s:.1f} s on the node that started it",
        *("one of the two clocks runs wrong", "compare both with a third"),
    ),
    "proof.other-launcher": (
        _WHO + ": {version}, yet started by {launcher}, so binding and fabric settings of the "
        "wrong launcher were in force",
        "use the stack's own launcher, with its bin first on PATH",
    ),
    "proof.aborted": (
        _WHO + " called MPI_Abort",
        "the program gave up by itself and says why at the end of the job's output",
        "its figures do not count",
    ),
    "proof.unfinished": (
        _WHO + " never reached MPI_Finalize",
        "killed or crashed, its figures do not count",
        "look for the signal at the end of the job's output and for 'Out of memory' in the node's "
        "kernel log",
    ),
    "proof.one-node": (
        "all {ran:rank|ranks} ran on {hosts:names}, not on {expected:node|nodes} as asked for",
        "the hostfile or the allocation did not reach the launcher, or the ranks per node (-ppn) "
        "did not",
        "",
    ),
    "proof.other-nodes": (
        "the ranks ran on {nodes:node|nodes} ({hosts:names}), not on {expected:node|nodes} as "
        "asked for",
        "the hostfile or the allocation did not reach the launcher, or the ranks per node (-ppn) "
        "did not",
        "",
    ),
    "proof.uneven": (
        "{ran:names}, not {expected} per node as asked for",
        "the launcher filled the nodes by its own count",
        "give it -ppn, or slots in the hostfile",
    ),
    "proof.strange-hosts": (
        "{ranks:ranks} ran on {hosts:names}, none of the nodes asked for ({expected:names})",
        *("the launcher took another hostfile or allocation", ""),
    ),
    "proof.unknown-cores": (
        _WHO + " could not tell which cores it may use (sched_getaffinity failed), so its binding "
        "is not proven",
        "a security profile of the node's containers may forbid it",
    ),
    "proof.few-cores": (
        _WHO + " had {cores:core|cores} each, where {expected} were asked for",
        "the threads of a rank share them",
        "give the launcher the cores per rank",
    ),
    "proof.shared-cores": (
        "{ranks:ranks} on {host} share {cores:cores}, where {needed} are needed",
        "the node has too few cores for its ranks, or the launcher bound two ranks to one place "
        "(two launches on one node do, each starting at its first core)",
        "",
    ),
    "proof.shared-cores-elsewhere": (
        "ranks on {hosts:names} share too few cores as well",
        "the cause is the same",
        "",
    ),
    "proof.other-cpus": "it ran on the CPUs {ran}, not on {wanted}",
    "proof.unbound": (
        _WHO + " may run on all {cores} cores of the node, not on {expected:core|cores} each",
        "the ranks are not bound",
        "check the launcher's binding option, and for a variable that overrides it",
    ),
    "proof.wide-binding": (
        _WHO + " may run on {cores} cores, not on {expected:core|cores} each",
        *("the binding is wider than it should be", "check the launcher's binding option"),
    ),
    "proof.bound-anew": (
        _WHO + " ended with other cores than it started with",
        "something in the process rebinds it (OpenMP's or the BLAS's own affinity)",
        "switch that off",
    ),
    "proof.few-threads": (
        _WHO + " ended with fewer threads than the {expected} asked for",
        *("the program is not threaded, or OMP_NUM_THREADS did not reach it", ""),
    ),
    "proof.blas-threads": (
        _WHO + " let the BLAS use {threads:thread|threads}, not {expected} as asked for",
        "OMP_NUM_THREADS (or the BLAS's own variable) did not reach the rank, or the program sets "
        "the number itself",
        "",
    ),
    "proof.other-blas": (
        _WHO + " loaded {library}, not {expected}",
        "a module, LD_LIBRARY_PATH or the way the program was linked decides",
        "'ldd {executable}' on the node shows it",
    ),
    "proof.other-blas-kernels": (
        _WHO + " used the BLAS kernels {kernel}, not {expected}",
        "a variable like OPENBLAS_CORETYPE chose them, or the library was built for another "
        "processor",
        "",
    ),
    "proof.output-without-word": (
        "{source}: rank 0 wrote '{mark} {word}' to its standard output, and that is not here",
        f"{_OTHER_OUTPUT}, or standard output went elsewhere",
        _WRAPPER,
    ),
    "proof.output-of-another": (
        "{source}:{line}: launch {found} printed this, not {word}",
        *(_OTHER_OUTPUT, _WRAPPER),
    ),
    "proof.no-date": ("{source}:{line}: {date!r} is no date", "the text is damaged", ""),
    "proof.wrong-date": (
        "{source}:{line}: dated {date}, and the ranks ran from {began} to {ended}",
        *(_OTHER_OUTPUT, f"{_WRAPPER}, and for what changes the clock of the ranks"),
    ),
    "proof.slow-timer": (
        "{source}:{line}: the program took {passed_s:.0f} s by the dates it prints, and "
        "{told_s:.2f} s by its timer",
        "the clock of the timer runs slow, or the text was changed",
        "look at what is preloaded, and whether the program is a wrapper",
    ),
    "proof.too-long": (
        "{source}: what was measured took {reported_s:.1f} s in all by its own account, and the "
        "ranks ran for {seconds:.1f} s from MPI_Init to MPI_Finalize",
        *(_OTHER_OUTPUT, f"{_WRAPPER}, and for a clock that runs fast"),
    ),
}
