"""`knap serve` as a service of the system: systemd, launchd or the Task Scheduler."""
