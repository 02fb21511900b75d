"""Files: the ``Disk`` port, its real and its simulated side, log directories, checkpoint files."""
