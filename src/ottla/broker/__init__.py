"""One node: joins log, replication, controller and coordinators; synchronous, without I/O of its own."""
