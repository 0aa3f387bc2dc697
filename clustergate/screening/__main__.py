"""``python -m clustergate.screening PLAN``: what the job of a screening runs."""

import sys

from clustergate.screening.driver import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
