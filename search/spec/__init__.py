"""What is asked: a study, its checks, its file, its limits, and the space of stacks it spans."""
