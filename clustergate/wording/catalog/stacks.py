"""Stacks: their providers, sources and builds."""

_NOT_PINNED = "has the checksum {actual}… where {pinned}… is pinned, so it is refused"
_BOOTSTRAP = "let `clustergate bootstrap` fetch the pinned one"
_AGAIN = "run `clustergate setup`"
_ELSEWHERE = (
    "try again where there is a network, or name a git repository that has the tag {tag} in "
    "{variable}"
)
_STORE = "the stack's setting 'store' or in CLUSTERGATE_HOME"

WORDS = {
    "stack.cannot-screen": (
        "{stack} cannot screen",
        "{program} is unavailable here ({why})",
        "use another stack",
    ),
    "stack.not-set-up": ("the stack {stack} is not set up ({path} is missing)", _AGAIN),
    "stack.build-changed": (
        "{files:names} in {folder} is not what was compiled there",
        "something was put in its place",
        "see what it is; `rm -r {folder}` and `clustergate setup` compile it anew",
    ),
    "stack.prefix-changed": (
        "{files:names} in {folder} is not what was installed there",
        "something was put in its place",
        "see what it is; `{remove}` and `clustergate setup` install it anew",
    ),
    "stack.no-wheels": ("the stack {stack!r} has no wheels", "stacks with wheels: {known:list}"),
    "stack.not-provided": "{stack} could not be set up: {why}",
    "stack.failed": (
        "setting up {stack} failed",
        "{why} ({path})",
        "have it opened to you, or name another folder in CLUSTERGATE_HOME, and run the command "
        "again",
    ),
    # Each was told in full when it failed.
    "stack.some-failed": (
        "{stacks:list} could not be set up",
        "the lines above say why",
        "fix it, and run the command again",
    ),
    "stack.lacks": "{lacks}",
    "program.on-request": (
        "it is compiled on request",
        "run `clustergate setup --applications {application}`",
        "",
    ),
    "program.wheel": (
        "its wheel of {megabytes} MB is downloaded on request",
        "run `clustergate setup --applications {application}`",
        "",
    ),
    "path.separators": (
        "the path {path} contains {separators}, which separates folders in PATH",
        "put the suite into another folder, or name one in CLUSTERGATE_HOME",
    ),
    "manifest.other-version": ("{path}: another version wrote it", _AGAIN),
    "manifest.damaged": ("{path} is damaged ({why})", _AGAIN),
    "disk.full": (
        "the disk is full {doing}",
        "free some space, or {larger}, and run the command again: completed steps are kept",
    ),
    "compiler.missing": (
        "there is no C compiler (cc or gcc) on PATH",
        "install one (Debian: apt install gcc libc6-dev, Red Hat: dnf install gcc) and run the "
        "command again",
    ),
    "compiler.not-started": ("{command} cannot be started", "{why}", "see {log}"),
    "compiler.no-show": (
        "the compiler wrapper {wrapper} does not say what it calls",
        "`{wrapper} -show` fails, so that nothing can be compiled with it",
        "repair the MPI library, or compile with another one",
    ),
    "compiler.failed": ("{complaint}", "the compiler's output is in {log}"),
    "wheels.unpinned": "{path} does not pin {package}",
    "wheels.other-checksum": (
        "a download for {what} does not match its pinned checksum, so it is refused",
        "ask who runs your package index what it serves",
    ),
    "wheels.not-downloaded": (
        "{what} could not be downloaded ({why})",
        "check the network, or name a package index you reach in PIP_INDEX_URL, and run the "
        "command again: completed downloads are kept",
    ),
    "modules.nobody": (
        "`{loading}` cannot be tried: there is no such command here",
        "install Lmod or Environment Modules, or correct the root of Spack in the site config",
    ),
    "modules.not-loaded": (
        "`{loading}` failed",
        "{why}",
        "run `{search}`, which lists what there is and what must be loaded first, and correct "
        "`load` of the stack in the site config",
    ),
    "modules.late": (
        "`{loading}` did not end within {limit_s:g} s",
        "try it in a shell; its file system may be slow, or its cache of modules old",
    ),
    "modules.no-wrapper": (
        "`{loading}` puts no mpicc on PATH",
        "load the module of an MPI library with its compiler wrappers",
    ),
    "modules.no-launcher": (
        "`{loading}` puts neither mpirun nor mpiexec on PATH",
        "also load the module of the MPI library's launcher",
    ),
    "modules.not-asked": (
        "a test program could not be built with {wrapper} (`{loading}`) or started here",
        "{why}",
        "also load the compiler and the libraries that it needs",
    ),
    "modules.unknown-library": (
        "`{loading}` loads an MPI library that identifies itself as {answer!r}",
        "known: {known:list}",
    ),
    "modules.preload": (
        "`{loading}` preloads {preload} into every program",
        "load another module, or declare it by LD_PRELOAD in the stack's env_vars",
    ),
    "archive.damaged": "{path} is damaged or truncated ({why})",
    "archive.tops": "{path} must contain a single top-level folder, but contains {named}",
    "source.other-checksum": "{origin} " + _NOT_PINNED,
    "source.other-copy": (
        "{origin} " + _NOT_PINNED,
        "remove it, or put upstream's own archive there",
    ),
    "source.unavailable": (
        "{source} could not be fetched ({failures})",
        "put {file_name} (sha256 {pinned}…) in a folder and name it in CLUSTERGATE_SOURCES",
    ),
    "source.known-unavailable": "{sentence}",
    "source.answers": "answers {status}",
    "source.timed-out": "timed out",
    "source.unreachable": "cannot be reached",
    "apt.missing": "this machine has no apt-get",
    "apt.no-source": "/etc/apt configures no package source",
    "apt.failed": "{why}",
    "apt.timed-out": "apt-get took more than ten minutes",
    "spack.failed": ("{doing} failed", "{why}", "Spack's output is in {log}"),
    "spack.missing": (
        "there is no Spack here (looked for SPACK_ROOT, `spack` on PATH and {root})",
        "`clustergate bootstrap` fetches the pinned one, or take the stacks from wheels "
        "(CLUSTERGATE_PROVIDER=wheels), which need none",
    ),
    "spack.no-spack": (
        "{root}, named by {named_by}, is not a Spack installation",
        f"correct it, or unset it and {_BOOTSTRAP}",
    ),
    "spack.too-old": (
        "the Spack in {root}, named by {named_by}, is {version}; {needed} or later is needed",
        f"name another one in SPACK_ROOT, or take it off PATH and {_BOOTSTRAP}",
        "",
    ),
    "spack.path-with-space": (
        "Spack cannot build below a path with a space ({path})",
        "put the suite into another folder, or name one in CLUSTERGATE_HOME, or take the stacks "
        "from wheels (CLUSTERGATE_PROVIDER=wheels)",
    ),
    "spack.long-store": (
        "the path of the store {store} has {length} characters, and Spack cannot install into one "
        "of more than {longest}",
        f"name a shorter one in {_STORE}",
    ),
    "spack.store-not-writable": (
        "the store {store} is not writable, so nothing is built",
        "name another folder in the stack's setting 'store', or let the owner of this one build "
        "the stack",
    ),
    "spack.stack-failed": (
        "setting {stack} up failed: {why} ({path})",
        "name a folder that you may write to in CLUSTERGATE_HOME or in the stack's setting 'store'",
    ),
    "spack.linkage": (
        "{mpi} was built but does not match its lock",
        "{complaints}",
        "remove {store} or correct the site's scopes, and run `clustergate setup` again",
    ),
    "spack.not-installed": (
        "the lock pins {spec}, which Spack has not installed",
        "run `clustergate setup --refresh` to build it again",
    ),
    "spack.other-mpi": "{package} is not built with the root {mpi}",
    "spack.no-ldd": (
        "ldd cannot be started ({why}), so that what {program} is linked with cannot be proven",
        "it belongs to the C library's tools (Debian: libc-bin)",
    ),
    "spack.external-machine": (
        "the OpenBLAS wheel cannot be Spack's external on {machine}",
        "leave 'externals' out of the stack's settings, so that Spack builds its BLAS",
    ),
    "spack.external-tool": (
        "{command} cannot be started ({why}), and the OpenBLAS wheel needs it to become Spack's "
        "external",
        "install a C compiler with its binutils",
    ),
    "spack.external-failed": ("the OpenBLAS wheel cannot become Spack's external", "{why}", ""),
    "spack.mpi-specs": (
        "'specs' must name one MPI library, and names {count} of those that can be launched here "
        "({known:list})",
        "to launch another one, add it to {module}",
    ),
    "spack.no-specs": "it needs 'spack:' with a list of 'specs:', each a string",
    "lock.lacks": (
        "{lock} holds no {package}",
        "the environment does not list it, or the lock belongs to another environment",
        "remove the lock, so that the environment is concretized again",
    ),
    "lock.no-provider": "{package} needs {virtual}, and no package of the lock provides it",
    "lock.damaged": (
        "{path} is not a Spack lock ({why})",
        "remove it, so that the environment is concretized again",
    ),
    "spack.unknown-setting": (
        "the stack {stack}: Spack has no setting {name!r}",
        "known: {known:list}",
    ),
    "spack.externals": (
        "the stack {stack}: the setting 'externals' is {value!r}",
        "it is 'wheels' or left out (a site's own externals are a folder with packages.yaml in "
        "'scopes')",
    ),
    "spack.target": (
        "the stack {stack}: the target {target!r} is not a processor family such as x86_64_v4"
    ),
    "spack.scope": (
        "the stack {stack}: 'scopes' names {scope}, which does not exist",
        "a scope is a folder with Spack's packages.yaml, mirrors.yaml and the like",
    ),
    "spack.unknown-choice": (
        "the stack {stack}: unknown {kind} {name!r}",
        "{folder} holds {known:list}",
    ),
    "release.other-commit": (
        "the tag {tag} of {place} is commit {actual}… where {pinned}… is pinned, so it is refused",
        "{path} holds the pins",
    ),
    "release.no-git": (
        "git is not installed, so {pin} cannot be fetched from {place}",
        "install it",
    ),
    "release.timed-out": ("fetching {pin} from {place} took over an hour", _ELSEWHERE),
    "release.not-fetched": ("{pin} cannot be fetched from {place} ({why})", _ELSEWHERE),
}
