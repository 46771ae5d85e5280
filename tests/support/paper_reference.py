"""Every mixer once more, slowly and in the paper's orientation: X is d x n, tokens are columns.

NumPy, float64, written from the formulas of Yun et al. 2020 and the works it cites. `keep` marks
real tokens; a paper without padding is the case of all True. Each function returns the update.
"""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Flags = NDArray[np.bool_]


def softmax_columns(A: Matrix) -> Matrix:
    E = np.exp(A - A.max(axis=0, keepdims=True))
    return E / E.sum(axis=0, keepdims=True)


def hardmax_columns(A: Matrix, keep: Flags) -> Matrix:
    """One-hot of the largest entry of each column; k equal ones share as 1/k."""
    best = A[keep].max(axis=0, keepdims=True)
    hits = (best == A) & keep[:, None]
    return hits / hits.sum(axis=0, keepdims=True)


def visible(n: int, keep: Flags, causal: bool) -> Flags:
    """Entry (k, j): may query j see key k?"""
    seen = np.repeat(keep[:, None], n, axis=1)
    return seen & np.triu(np.ones((n, n), dtype=bool)) if causal else seen


def rotate(Q: Matrix) -> Matrix:
    """Turn rows (i, i + m/2) of column j by the angle j 10000^(-2i/m)."""
    m, n = Q.shape
    R = np.zeros_like(Q)
    for j in range(n):
        for i in range(m // 2):
            angle = j * 10000.0 ** (-2 * i / m)
            a, b = Q[i, j], Q[i + m // 2, j]
            R[i, j] = a * np.cos(angle) - b * np.sin(angle)
            R[i + m // 2, j] = b * np.cos(angle) + a * np.sin(angle)
    return R


def attention(
    X: Matrix,
    W_Q: Matrix, b_Q: Matrix, W_K: Matrix, b_K: Matrix, W_V: Matrix, b_V: Matrix,
    W_O: Matrix, b_O: Matrix,
    h: int, keep: Flags, *, rotary: bool = False, causal: bool = False,
) -> Matrix:  # fmt: skip
    """Equation (1) with biases and scores divided by sqrt(m)."""
    d, n = X.shape
    m = d // h
    update = np.repeat(b_O[:, None], n, axis=1)
    for i in range(h):
        rows = slice(i * m, (i + 1) * m)
        Q = W_Q[rows] @ X + b_Q[rows, None]
        K = W_K[rows] @ X + b_K[rows, None]
        V = W_V[rows] @ X + b_V[rows, None]
        if rotary:
            Q, K = rotate(Q), rotate(K)
        scores = np.where(visible(n, keep, causal), K.T @ Q / np.sqrt(m), -np.inf)
        update = update + W_O[:, rows] @ V @ softmax_columns(scores)
    return update


def psi(X: Matrix, u: Matrix, b: float, keep: Flags) -> Matrix:
    """Row vector u^T X hardmax[(u^T X)^T (u^T X - b 1^T)] of appendix B.5."""
    s = u @ X
    return s @ hardmax_columns(np.outer(s, s - b), keep)


def hardmax_shift(
    X: Matrix, U: Matrix, V: Matrix, lower: Matrix, upper: Matrix | None, keep: Flags
) -> Matrix:
    """Sum over heads of v psi(X; b), less v psi(X; b') if there is an upper threshold."""
    update = np.zeros_like(X)
    for head in range(len(U)):
        row = psi(X, U[head], lower[head], keep)
        if upper is not None:
            row = row - psi(X, U[head], upper[head], keep)
        update = update + np.outer(V[:, head], row)
    return update


def bproj(X: Matrix, W_O: Matrix, b_O: Matrix, W_P: Matrix) -> Matrix:
    """Equation (5): W_O X W_P."""
    n = X.shape[1]
    return W_O @ X @ W_P[:n, :n] + b_O[:, None]


def sepconv(
    X: Matrix, W_G: Matrix, b_G: Matrix, W_C: Matrix, W_O: Matrix, b_O: Matrix,
    keep: Flags, *, causal: bool = False,
) -> Matrix:  # fmt: skip
    """GLU, then equation (6) with filter c // (d / F) for row c, token by token."""
    d, n = X.shape
    F, K = W_C.shape
    G = gated(X, W_G, b_G, keep)
    before = K - 1 if causal else (K - 1) // 2
    mixed = np.zeros_like(X)
    for c in range(d):
        for j in range(n):
            for k in range(K):
                i = j - before + k
                if 0 <= i < n:
                    mixed[c, j] += W_C[c // (d // F), k] * G[c, i]
    return W_O @ mixed + b_O[:, None]


def gated(X: Matrix, W_G: Matrix, b_G: Matrix, keep: Flags) -> Matrix:
    """The gated linear unit; padded tokens count as zero."""
    d = len(X)
    A = W_G @ X + b_G[:, None]
    return A[:d] / (1.0 + np.exp(-A[d:])) * keep


def lightconv(
    X: Matrix, W_G: Matrix, b_G: Matrix, W: Matrix, W_O: Matrix, b_O: Matrix,
    keep: Flags, *, causal: bool = False,
) -> Matrix:  # fmt: skip
    """Wu et al. 2019, section 3: O_i,c = sum_j softmax(W_ceil(cH/d))_j X_(i+j-..),c."""
    taps = np.repeat(softmax_columns(W.T).T[None], X.shape[1], axis=0)
    return W_O @ correlated(gated(X, W_G, b_G, keep), taps, causal=causal) + b_O[:, None]


def dynamicconv(
    X: Matrix, W_G: Matrix, b_G: Matrix, W_Q: Matrix, W_O: Matrix, b_O: Matrix,
    H: int, keep: Flags, *, causal: bool = False,
) -> Matrix:  # fmt: skip
    """Wu et al. 2019, section 4: the taps of head h at token i are softmax(W^Q_h X_i)."""
    G = gated(X, W_G, b_G, keep)
    K = len(W_Q) // H
    taps = np.stack(
        [
            [softmax_columns((W_Q[h * K : (h + 1) * K] @ G[:, i])[:, None])[:, 0] for h in range(H)]
            for i in range(X.shape[1])
        ]
    )
    return W_O @ correlated(G, taps, causal=causal) + b_O[:, None]


def correlated(X: Matrix, taps: Matrix, *, causal: bool) -> Matrix:
    """Row c of column i: sum over k of taps[i, head of c, k] X[c, i - before + k]."""
    d, n = X.shape
    H, K = taps.shape[1:]
    before = K - 1 if causal else (K - 1) // 2
    out = np.zeros_like(X)
    for c in range(d):
        for i in range(n):
            for k in range(K):
                at = i - before + k
                if 0 <= at < n:
                    out[c, i] += taps[i, c * H // d, k] * X[c, at]
    return out


def fourier(X: Matrix, keep: Flags, *, orthonormal: bool) -> Matrix:
    """Lee-Thorp et al. 2021, section 3, of the real tokens alone, from the matrices."""
    d, n = len(X), int(keep.sum())
    along_features = np.exp(-2j * np.pi * np.outer(np.arange(d), np.arange(d)) / d)
    along_tokens = np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    update = np.zeros_like(X)
    update[:, keep] = (along_features @ X[:, keep] @ along_tokens).real
    return update / np.sqrt(n * d) if orthonormal else update


def sparsity_set(pattern: str, part: int, k: int, n: int, w: int) -> set[int]:
    """A^part_k of Yun et al. 2020 (arXiv 2006.04862); tokens count from 1 to n."""
    tokens = set(range(1, n + 1))
    near = set(range(k - w, k + w + 1))
    block = -(-k // w)
    match pattern, part:
        case ("sliding_window", 1) | ("strided", 1):
            return tokens & near
        case "strided", 2:
            return {i for i in tokens if (i - k) % w == 0}
        case "fixed", 1:
            return tokens & set(range(block * w - w + 1, block * w + 1))
        case "fixed", 2:
            return {k} | {i for i in tokens if i % w == 0}
        case "star", 1:
            return tokens if k == 1 else tokens & (near | {1})
    raise ValueError((pattern, part))


def sparse_attention(
    X: Matrix,
    W_Q: Matrix, b_Q: Matrix, W_K: Matrix, b_K: Matrix, W_V: Matrix, b_V: Matrix,
    W_O: Matrix, b_O: Matrix,
    sets: list[list[set[int]]], keep: Flags, *, rotary: bool = False, causal: bool = False,
) -> Matrix:  # fmt: skip
    """Sparse attention of arXiv 2006.04862, token by token; head i's token k sees sets[i][k].

    Here tokens count from 0; of a set, real tokens count, and those up to k if causal.
    """
    n = X.shape[1]
    h = len(sets)
    m = len(X) // h
    update = np.repeat(b_O[:, None], n, axis=1)
    for i in range(h):
        rows = slice(i * m, (i + 1) * m)
        Q, K = W_Q[rows] @ X + b_Q[rows, None], W_K[rows] @ X + b_K[rows, None]
        V = W_V[rows] @ X + b_V[rows, None]
        if rotary:
            Q, K = rotate(Q), rotate(K)
        for k in np.flatnonzero(keep):
            A = sorted(j for j in sets[i][k] if keep[j] and (j <= k or not causal))
            weights = softmax_columns(K[:, A].T @ Q[:, [k]] / np.sqrt(m))
            update[:, [k]] += W_O[:, rows] @ V[:, A] @ weights
    return update


def average(X: Matrix, W: Matrix, b: Matrix, keep: Flags, *, causal: bool = False) -> Matrix:
    """Appendix D: the attention matrix replaced by 1/n."""
    n = X.shape[1]
    seen = visible(n, keep, causal)
    A = seen / np.maximum(seen.sum(axis=0, keepdims=True), 1)
    return (W @ X) @ A + b[:, None]


def identity(X: Matrix) -> Matrix:
    return np.zeros_like(X)
