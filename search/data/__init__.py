"""Text for tasks: one loader for three sources, three splits, a tokenizer, a safe cache."""
