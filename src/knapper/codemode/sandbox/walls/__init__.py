"""Put a second wall around a worker process, with what the system has."""
