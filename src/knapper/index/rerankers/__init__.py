"""What puts the best passages of a search into a better order, one module for each kind."""
