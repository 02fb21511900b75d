"""One broker as a process of its own: ``python -m ottla.server server.properties``."""

import sys

from ottla.server.app import main

sys.exit(main(sys.argv[1:]))
