"""The second wall around a worker process: the isolation that the operating system offers."""
