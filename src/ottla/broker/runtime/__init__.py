"""What every room stands on: clock, timers, tasks, ZooKeeper, and what is counted."""
