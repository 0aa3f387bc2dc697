"""Run a command of clustergate and say on standard error how much memory it took at most."""

from __future__ import annotations

import json
import sys

from clustergate.cli import main
from tools.bench.parse_child import peak_bytes

if __name__ == "__main__":
    status = main(sys.argv[1:])
    print(json.dumps({"peak_bytes": peak_bytes()}), file=sys.stderr)
    sys.exit(status)
