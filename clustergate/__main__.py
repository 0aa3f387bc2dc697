"""``python -m clustergate``: what jobs and fixtures call, independent of PATH."""

import sys

from clustergate.cli import main

if __name__ == "__main__":
    sys.exit(main())
