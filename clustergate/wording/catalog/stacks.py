"""Stacks: their providers, sources and builds."""

WORDS = {
    "stack.cannot-screen": (
        "{stack} cannot screen",
        *("{program} is unavailable here ({why})", "use another stack"),
    ),
    "path.separators": (
        "the path {path} contains {separators}, which separates folders in PATH",
        *("", "clone to another folder, or name one in CLUSTERGATE_HOME"),
    ),
    "spack.failed": ("{doing} failed", "{why}", "Spack's output is in {log}"),
}
