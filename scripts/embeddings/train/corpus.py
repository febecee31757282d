"""Step 3: parallel text and English Markdown sections of cleared repositories -> texts, groups, pairs, token counts."""

import collections
import io
import json
import os
import pickle
import random
import re
import subprocess
import tarfile
import zlib

import scipy.sparse as sp
from common import W, clean_text, csr, folded, folded_tokenizer
from sources import SECTIONS

rnd = random.Random(5)
REPOS = os.environ.get("REPOS", "repos")
SAME = {
    "zh_cn": "zh",
    "zh-hans": "zh",
    "zh-Hans": "zh",
    "zh_tw": "zh-TW",
    "zh-hant": "zh-TW",
    "zh-Hant": "zh-TW",
    "zh_TW": "zh-TW",
    "pt_BR": "pt",
    "pt_PT": "pt",
    "pt-br": "pt",
    "pt-BR": "pt",
    "pt-PT": "pt",
    "nb": "no",
    "nn": "no",
    "kr": "ko",
    "jp": "ja",
}
LANG = "en de fr es it pt nl pl cs sk ru uk bg tr ar fa he hi bn ja zh zh-TW ko vi th id sv da no fi hu el ro ca hr sr lt".split()


def lg(x):
    return SAME.get(x, x)


def git(repo):
    """REPOS/owner+name as a clone or a bare one, or with the git directory in repo/"""
    d = os.path.join(REPOS, repo.replace("/", "+"))
    return ["git", "-C", os.path.join(d, "repo") if os.path.isdir(os.path.join(d, "repo", "objects")) else d]


def archive(repo, *paths):
    p = subprocess.run(git(repo) + ["archive", "--format=tar", "HEAD", *paths], capture_output=True)
    assert p.returncode == 0, (repo, p.stderr[:300])
    t = tarfile.open(fileobj=io.BytesIO(p.stdout))
    return {m.name: t.extractfile(m).read().decode("utf8", "replace") for m in t if m.isfile()}


def names(repo, *a):
    return subprocess.run(
        git(repo) + ["ls-tree", "-z", "--name-only", *a, "HEAD"], capture_output=True, text=True, check=True
    ).stdout.split("\0")


def body(t):
    m = re.match(r"^---\r?\n(.*?)\n---\r?\n", t, re.S)
    return t[m.end() :] if m else t


def clean(t):
    t = re.sub(r"```.*?```", "", t, flags=re.S)
    t = re.sub(r"\{%.*?%\}|<[^>]+>|\{\{.*?\}\}", "", t)
    t = re.sub(r"!?\[\[([^\]|]*\|)?([^\]]*)\]\]", r"\2", t)
    return re.sub(r"https?://\S+", "", re.sub(r"\]\([^)]*\)", "]", t))


def sections(t):
    out, cur = [], ""
    for x in t.splitlines():
        if re.match(r"^#{1,6}\s", x):
            out.append(cur.strip())
            cur = x + "\n"
        else:
            cur += x + "\n"
    return out + [cur.strip()]


def paras(t):
    return [p.strip() for p in re.split(r"\n\s*\n", t) if p.strip()]


G = []  # (source, key, {language: text})


def align(src, key, docs, split, least=3):
    """{language: text}: pieces aligned with the English by equal count"""
    if "en" not in docs:
        return
    P = {x: split(t) for x, t in docs.items()}
    n = len(P["en"])
    ok = {x: p for x, p in P.items() if len(p) == n}
    for i in range(n):
        d = {x: p[i] for x, p in ok.items() if len(p[i]) > least}
        if "en" in d and len(d) > 1:
            G.append((src, key, d))


def tldr():
    R = "tldr-pages/tldr"
    D = collections.defaultdict(dict)
    for p, t in archive(R, *[x for x in names(R) if x.startswith("pages")]).items():
        a = p.split("/")
        x = lg(a[0][6:] or "en")
        if x in LANG and p.endswith(".md"):
            D["/".join(a[1:])].setdefault(x, re.sub(r"`[^`]*`", "", re.sub(r"<[^>]*>", "", t)))
    for k, docs in sorted(D.items()):
        if len(docs) > 1:
            G.append(("tldr", k, docs))
            align("tldr", k, docs, lambda t: [x for x in t.splitlines() if x.startswith(("- ", "> "))])


def guide():
    D = collections.defaultdict(dict)
    for p, t in archive("github/opensource.guide", "_articles").items():
        a = p.split("/")
        if p.endswith(".md"):
            x = "en" if len(a) == 2 else lg(a[1])
            if x in LANG:
                D[a[-1]].setdefault(x, clean(body(t)))
    for k, docs in sorted(D.items()):
        align("guide", k, docs, sections)
        align("guide", k, docs, paras)


def prompting():
    D = collections.defaultdict(dict)
    for p, t in archive("dair-ai/Prompt-Engineering-Guide", "pages").items():
        m = re.match(r"(.*)\.(\w+)\.mdx$", p)
        if m and lg(m[2]) in LANG:
            D[m[1]][lg(m[2])] = clean(t)
    for k, docs in sorted(D.items()):
        align("prompting", k, docs, paras, 25)


def cldr():
    R = "unicode-org/cldr-json"
    A, B = collections.defaultdict(dict), collections.defaultdict(dict)
    for p, t in archive(
        R, "cldr-json/cldr-annotations-full/annotations", "cldr-json/cldr-localenames-full/main"
    ).items():
        loc = p.split("/")[3]
        x = lg(loc)
        if x not in LANG or loc in ("pt-PT", "nn"):
            continue
        if p.endswith("annotations.json"):
            for e, v in json.loads(t)["annotations"]["annotations"].items():
                if v.get("tts"):
                    B[e][x] = v["tts"][0]
                if v.get("default"):
                    A[e][x] = ", ".join(v["default"])
        elif p.endswith(("territories.json", "languages.json")):
            for _, m in json.loads(t)["main"].items():
                for kind, v in m["localeDisplayNames"].items():
                    if isinstance(v, dict):
                        for c, n in v.items():
                            if "-alt" not in c and not re.match(r"^\d+$", c) and isinstance(n, str) and n != c:
                                B[kind + c][x] = n
    for S in (A, B):
        for e, d in S.items():
            if "en" in d and len(d) > 3:
                G.append(("cldr", e, d))


def osm():
    D, seen = collections.defaultdict(dict), set()
    for p, t in archive("openstreetmap/id-tagging-schema", "dist/translations").items():
        stem = os.path.basename(p)[:-5]
        x = lg(stem)
        if p.endswith(".min.json") or x not in LANG or x in seen:
            continue
        seen.add(x)
        j = json.loads(t)
        j = j.get(stem, j)["presets"]
        for kind in ("presets", "fields", "categories"):
            for k, v in j.get(kind, {}).items():
                if v.get("name"):
                    D[kind + k][x] = v["name"]
                if v.get("terms") and isinstance(v["terms"], str):
                    D[kind + k + "#t"][x] = v.get("name", "") + ", " + v["terms"].replace(",", ", ")
                for o, y in (v.get("options") or {}).items():
                    y = y.get("title") if isinstance(y, dict) else y
                    if isinstance(y, str):
                        D[kind + k + o][x] = y
    for k, d in D.items():
        if "en" in d and len(d) > 2:
            G.append(("osm", k, d))


NS = {"tldr": tldr, "guide": guide, "prompting": prompting, "cldr": cldr, "osm": osm}
for f in NS.values():
    f()
texts, idx = [], {}


def add(t):
    if t not in idx:
        idx[t] = len(texts)
        texts.append(t)
    return idx[t]


CUT = re.compile(r"(?<=[.!?。！？])\s*")
groups, ict = [], []
for src, k, d in G:
    if src == "tldr" and rnd.random() < 0.35:
        continue
    g = {x: add(t[:1200]) for x, t in d.items()}
    groups.append((src, zlib.crc32(k.encode()), g))
    if src == "guide":  # a sentence -> the rest of its section, in the same or another language
        for x, t in d.items():
            s = [
                y.strip()
                for y in CUT.split(t[:1200])
                if len(y.strip()) > (8 if x in ("ja", "zh", "zh-TW", "ko") else 20)
            ]
            if len(s) >= 3 and rnd.random() < 0.5:
                j = rnd.randrange(len(s))
                ict.append(
                    (add(s[j][:200]), add(" ".join(s[:j] + s[j + 1 :])), zlib.crc32(k.encode()), len(groups) - 1)
                )

pairs, per = [], collections.Counter()  # (question, passage, kind, key)
CUT2 = re.compile(r"(?<=[.!?])\s+")
OTHER = r"(?i)changelog|release|license|/(zh|ja|ko|de|fr|es|ru|i18n|translations)[/_-]|\.(zh|ja|ko)"
for repo in SECTIONS:
    R = "dair-ai" in repo
    fs = [
        x for x in names(repo, "-r") if (x.endswith(".en.mdx") if R else x.endswith(".md") and not re.search(OTHER, x))
    ]
    p = subprocess.run(
        git(repo) + ["cat-file", "--batch"], input="\n".join("HEAD:" + x for x in fs).encode(), capture_output=True
    ).stdout
    o = 0
    for x in fs:
        e = p.find(b"\n", o)
        h = p[o:e].split()
        if len(h) < 3 or h[-1] == b"missing" or h[1] != b"blob":
            o = e + 1
            continue
        n = int(h[2])
        t = clean(body(p[e + 1 : e + 1 + n].decode("utf8", "replace")))
        o = e + 1 + n + 1
        title = os.path.basename(x).split(".")[0].replace("-", " ").replace("_", " ")
        if title.lower() in ("readme", "index", "changelog", "license", "contributing"):
            title = repo.split("/")[1].replace("-", " ")
        for s in sections(t):
            m = re.match(r"#+\s*(.*)", s)
            b = re.sub(r"^#+.*\n?", "", s).strip()[:1200]
            if len(b) < 120 or sum(c.isalpha() for c in b) < 0.6 * len(b) or sum(c.isascii() for c in b) < 0.9 * len(b):
                continue
            j = add(f"{title} {b}" if rnd.random() < 0.5 else b)
            if m and len(m[1]) > 3:
                pairs.append((add(m[1] if rnd.random() < 0.5 else f"{title} {m[1]}"), j, "head", j))
                per[repo] += 1
            q = [y.strip() for y in CUT2.split(b) if 25 < len(y.strip()) < 200]
            if len(q) >= 3:
                i = rnd.randrange(len(q))
                pairs.append((add(q[i]), add(" ".join(q[:i] + q[i + 1 :])), "ict2", j))
                per[repo] += 1

P, _ = folded()
ids = [e.ids for e in folded_tokenizer(P).encode_batch_fast([clean_text(t) for t in texts], add_special_tokens=False)]
C = csr(ids, len(P))
sp.save_npz(W("C.npz"), C)
# English texts for the teacher
en = list(dict.fromkeys(g["en"] for s, _, g in groups if "en" in g))
short, long_ = [i for i in en if len(texts[i]) < 60], [i for i in en if len(texts[i]) >= 60]
head, sent = [list(dict.fromkeys(p[i] for p in pairs if p[2] == k)) for k, i in (("head", 1), ("ict2", 0))]
for z in (short, long_, head, sent):
    rnd.shuffle(z)
T = list(dict.fromkeys(short[:9000] + long_[:9000] + head[:10000] + sent[:5000]))
pickle.dump(dict(texts=texts, groups=groups, ict=ict, pairs=pairs, teach=T, per=per), open(W("corpus.pkl"), "wb"))
print("texts", len(texts), "groups", dict(collections.Counter(g[0] for g in groups)), "sentence pairs", len(ict))
print("section pairs", sum(per.values()), dict(collections.Counter(p[2] for p in pairs)), dict(per))
print("languages", dict(collections.Counter(x for _, _, g in groups for x in g).most_common()))
print("teacher texts", len(T), "tokens in the table seen", int((C.sum(0) > 0).sum()), "of", len(P))
