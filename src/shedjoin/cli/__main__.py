"""`python -m shedjoin.cli`: the command line of this very Python."""

import sys

from shedjoin.cli import main

if __name__ == "__main__":
    sys.exit(main())
