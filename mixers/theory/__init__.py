"""The theorems of Yun et al. 2020 (arXiv 1912.10077) as networks with given weights."""
