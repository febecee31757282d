"""Have several agents do tasks over HTTP: the routes of tasks and of the presets that they take."""
