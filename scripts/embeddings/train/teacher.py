"""Step 4: e5's vectors ("passage: ", at most 160 tokens, 600 characters) of the English texts that corpus.py chose."""

import pickle
import time

import numpy as np
from common import W, clean_text, full_tokenizer
from teach import Teacher

D = pickle.load(open(W("corpus.pkl"), "rb"))
t, a, n = Teacher(), time.time(), 0
I = [
    [0] + e.ids[:160] + [2]
    for e in full_tokenizer().encode_batch_fast(
        ["passage: " + clean_text(D["texts"][i][:600]) for i in D["teach"]], add_special_tokens=False
    )
]
o = sorted(range(len(I)), key=lambda i: len(I[i]))
Y = np.zeros((len(I), 384), np.float32)
for s in range(0, len(o), 64):
    b = o[s : s + 64]
    Y[b] = t.run([I[i] for i in b])
    n += sum(len(I[i]) for i in b)
    if s % 6400 == 0:
        print(s, n, round(time.time() - a), flush=True)
np.save(W("Y.npy"), Y)
print("Y.npy", len(o), "texts", n, "tokens", round(time.time() - a), "s")
