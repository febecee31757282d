"""Models of passages: embedders, and rerankers."""
