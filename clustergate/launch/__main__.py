"""``python -m clustergate.launch PLAN``: what a job runs in place of a single launch."""

import sys

from clustergate.launch.driver import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
