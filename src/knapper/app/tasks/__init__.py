"""Do tasks with several agents, as a vault's owner and whoever asks have set them."""
