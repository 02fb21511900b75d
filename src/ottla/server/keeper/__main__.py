"""The built-in keeper as a process of its own: ``python -m ottla.server.keeper --data-dir DIR``."""

import sys

from ottla.server.keeper.app import main

sys.exit(main(sys.argv[1:]))
