"""``python -m clustergate.studies.screen PLAN``: what the job of a screening runs."""

import sys

from clustergate.studies.screen.driver import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
