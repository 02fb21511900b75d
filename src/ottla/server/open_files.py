"""How many files and sockets a server may have open."""

import logging
import resource

log = logging.getLogger(__name__)

OPEN_FILES_BESIDE_LOGS = 512


def raise_open_files_limit() -> None:
    """As many open files as the system allows us to ask for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:
            log.warning("the limit of open files stays at %d reason=%s", soft, error)


def warn_about_open_files(logs: int) -> None:
    """Each log may need a segment and two indexes open, each client and peer a socket."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit < 3 * logs + OPEN_FILES_BESIDE_LOGS:
        log.warning("the limit of open files is low for these logs limit=%d logs=%d", limit, logs)
