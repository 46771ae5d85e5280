"""One trial: data, model, optimiser, checkpoints, readings and the proof of its mixers."""
