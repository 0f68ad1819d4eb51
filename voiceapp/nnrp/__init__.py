"""Chat completions over the Neural Network Runtime Protocol, NNRP/1 preview 4."""
