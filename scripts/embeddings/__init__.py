"""Make the table of word vectors that is built in: see ``python -m scripts.embeddings --help``."""
