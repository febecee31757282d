"""Step 5: SIF weights, ridge map onto e5's whitened vectors, 800 steps of Adam (contrastive + cosine to e5), the mixture -> table.npy."""

import pickle
import random
import time

import numpy as np
import scipy.sparse as sp
from common import W, folded, nrm, speaking

DIM, ALPHA, SIF, MIXED = 256, 0.5, 5e-5, 0.6
STEPS, N, LR, TAU, COS, DROP = 800, 1024, 0.003, 0.07, 6.0, 0.1
MIX = dict(tldr=0.17, guide=0.13, prompting=0.04, cldr=0.12, osm=0.14, ict=0.07, ictx=0.07, head=0.15, ict2=0.11)

P, M = folded()
sc, SP = np.array([s for _, s in P]), speaking([p for p, _ in P])
D = pickle.load(open(W("corpus.pkl"), "rb"))
GR, ICT, T = D["groups"], D["ict"], D["teach"]
C = (sp.load_npz(W("C.npz")).tocsr() @ sp.diags(SP.astype(np.float32))).tocsr()
C.eliminate_zeros()
C.data = C.data.astype(np.float32)
Y = np.load(W("Y.npy"))
TY = {t: i for i, t in enumerate(T)}


def teacher():
    y = nrm(Y.astype(np.float64))
    y -= y.mean(0)
    w, U = np.linalg.eigh(y.T @ y / len(y))
    w, U = w[::-1][:DIM], U[:, ::-1][:, :DIM]
    return nrm((y @ U) * w**-ALPHA).astype(np.float32)


def start(y):
    X = M @ np.load(W("tok.npy")).astype(np.float32)
    X[0] = 0
    p = np.where(SP, np.exp(np.clip(sc, -20, 0) / 2), 0)
    X -= (X * p[:, None]).sum(0) / p.sum()
    X[~SP] = 0
    X = (X * (SIF / (SIF + np.exp(sc)))[:, None]).astype(np.float32)
    rows, tgt = list(T), list(range(len(T)))
    for _, _, g in GR:
        j = TY.get(g.get("en"))
        if j is not None:
            rows += g.values()
            tgt += [j] * len(g)
    A, Yt = nrm(C[rows] @ X), y[tgt]
    ok = np.abs(A).sum(1) > 0
    A, Yt = A[ok].astype(np.float64), Yt[ok]
    H = A.T @ A
    B = np.linalg.solve(H + 1e-3 * np.trace(H) / len(H) * np.eye(len(H)), A.T @ Yt)
    print("ridge rows", len(A), "cosine to the teacher %.3f" % (nrm(A @ B) * Yt).sum(1).mean(), flush=True)
    return (X @ B).astype(np.float32)


class Run:
    def __init__(s, E, seed=1):
        s.E, s.m, s.v, s.t = E.copy(), np.zeros_like(E), np.zeros_like(E), 0
        s.r, s.np, s.by = random.Random(seed), np.random.default_rng(seed), {}
        for i, (src, _, _) in enumerate(GR):
            s.by.setdefault(src, []).append(i)
        for p in D["pairs"]:
            s.by.setdefault(p[2], []).append(p)

    def pairs(s):
        a, b, key, y = [], [], [], []
        r = s.r
        for src, w in MIX.items():
            for _ in range(int(N * w)):
                if src in ("head", "ict2"):
                    q, p, _, k = r.choice(s.by[src])
                    k = -1 - k
                elif src in ("ict", "ictx"):
                    q, p, k, gi = r.choice(ICT)
                    if src == "ictx" and len(GR[gi][2]) > 1:  # the passage in another language
                        p = r.choice(list(GR[gi][2].values()))
                else:
                    _, k, g = GR[r.choice(s.by[src])]
                    ls = list(g)
                    l1, l2 = "en" if r.random() < 0.5 else r.choice(ls), r.choice(ls)
                    while l2 == l1 and len(ls) > 1:
                        l2 = r.choice(ls)
                    l1, l2 = (l2, l1) if r.random() < 0.5 else (l1, l2)
                    a.append(g.get(l1, g[l2]))
                    b.append(g[l2])
                    key.append(k)
                    y.append(TY.get(g.get("en"), -1))
                    continue
                a.append(q)
                b.append(p)
                key.append(k)
                y.append(TY.get(p, -1))
        return a, b, np.array(key), np.array(y)

    def step(s, a, b, key, yi, lr, Yw):
        n = len(a)
        S = C[a + b]
        S.data = np.minimum(S.data, 4) * (s.np.random(len(S.data)) > DROP)
        S.eliminate_zeros()
        cols, inv = np.unique(S.indices, return_inverse=True)
        S = sp.csr_matrix((S.data.astype(np.float32), inv.reshape(-1), S.indptr), shape=(2 * n, len(cols)))
        Es = s.E[cols]
        R = S @ Es
        ln = np.maximum(np.linalg.norm(R, axis=1, keepdims=True), 1e-6)
        U = R / ln
        A, B = U[:n], U[n:]
        L = A @ B.T / TAU
        L[(key[:, None] == key[None, :]) & ~np.eye(n, dtype=bool)] = -1e4
        P1 = np.exp(L - L.max(1, keepdims=True))
        P1 /= P1.sum(1, keepdims=True)
        P2 = np.exp(L - L.max(0, keepdims=True))
        P2 /= P2.sum(0, keepdims=True)
        i = np.arange(n)
        loss, acc = -np.log(P1[i, i] + 1e-9).mean(), (L.argmax(1) == i).mean()
        dL = (P1 + P2) / 2
        dL[i, i] -= 1
        dL /= n * TAU
        dU = np.concatenate([dL @ B, dL.T @ A])
        k = yi >= 0
        kk = np.concatenate([k, k])
        t = Yw[np.concatenate([yi, yi])[kk]]
        cos = float((U[kk] * t).sum(1).mean())
        dU[kk] -= COS * t / n
        g = S.T @ ((dU - U * (U * dU).sum(1, keepdims=True)) / ln)
        s.t += 1
        m, v = s.m[cols] * 0.9 + 0.1 * g, s.v[cols] * 0.999 + 0.001 * g * g
        s.m[cols], s.v[cols] = m, v
        s.E[cols] = Es - lr * (m / (1 - 0.9**s.t)) / (np.sqrt(v / (1 - 0.999**s.t)) + 1e-8)
        return loss, acc, cos


def spread(E, E0, cnt, k=5.0, least=20):
    """what training did to the tokens that it saw, as one linear map, for the tokens that it saw seldom or never"""
    s = np.flatnonzero((cnt >= least) & SP)
    w = np.sqrt(np.minimum(cnt[s], 500))[:, None]
    A, B = E0[s].astype(np.float64) * w, E[s] * w
    H = A.T @ A
    B0 = E0 @ np.linalg.solve(H + 1e-2 * np.trace(H) / DIM * np.eye(DIM), A.T @ B).astype(np.float32)
    return B0 + (cnt / (cnt + k))[:, None].astype(np.float32) * (E - B0), B0


Yw = teacher()
E0 = start(Yw)
r, a0, L = Run(E0), time.time(), []
for st in range(STEPS):
    L.append(r.step(*r.pairs(), LR * (1 - st / STEPS) * min(1, (st + 1) / 20), Yw))
    if st % 100 == 99:
        print(
            st + 1,
            "loss %.3f accuracy %.3f cosine %.3f" % tuple(np.mean(L[-50:], 0)),
            round(time.time() - a0),
            "s",
            flush=True,
        )
F, R0 = spread(r.E, E0, np.asarray(C.sum(0)).ravel())
X = ((1 - MIXED) * R0 + MIXED * F).astype(np.float32)
X[~SP] = 0
np.save(W("table.npy"), X)
