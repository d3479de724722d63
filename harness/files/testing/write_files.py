"""Writes one case in many formats into a folder, for files_test.cc to read.

Element (b, h, s, d) of array number r (q, k, v, o) is (160 r + 80 b + 40 h + 10 s + d) / 16, exact in
fp16; lse (b, h, s) is (80 b + 40 h + 10 s) / 16.
"""

import json
import pathlib
import sys

import h5py
import numpy as np

B, H, KV, SQ, SK, D = 2, 2, 1, 3, 4, 5


def values(role, heads, length, layout="BHSD"):
    b, h, s, d = np.meshgrid(*map(np.arange, (B, heads, length, D)), indexing="ij")
    x = (160 * role + 80 * b + 40 * h + 10 * s + d) / 16
    return x if layout == "BHSD" else x.transpose(0, 2, 1, 3).copy()


def case(layout="BHSD", names="qkvo", dtype=np.float16):
    sizes = [(H, SQ), (KV, SK), (KV, SK), (H, SQ)]
    return {n: values(r, *sizes[r], layout).astype(dtype) for r, n in enumerate(names)}


def lse():
    b, h, s = np.meshgrid(*map(np.arange, (B, H, SQ)), indexing="ij")
    return ((80 * b + 40 * h + 10 * s) / 16).astype(np.float32)


def bf16_bits(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def save_safetensors(path, arrays, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, (dtype, x) in arrays.items():
        header[name] = {"dtype": dtype, "shape": list(x.shape),
                        "data_offsets": [len(data), len(data) + x.nbytes]}
        data += x.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def main(to):
    np.savez(to / "stored.npz", **case())
    np.savez_compressed(to / "deflated.npz", **dict(zip(("query", "key", "value", "attn_output"),
                                                        case().values())),
                        softmax_lse=lse(), softmax_scale=np.float64(0.25),
                        mask=np.array("causal:bottom_right"), dq=case()["q"], softcap=np.int32(30))
    np.savez(to / "bshd.npz", **case("BSHD"), lse=lse(), is_causal=np.bool_(False))
    np.savez(to / "wide.npz", **case(dtype=np.float64))
    np.savez(to / "bits.npz", **{n: bf16_bits(x) for n, x in case().items()})
    np.savez(to / "no_batch.npz", **{n: x[1] for n, x in case().items()}, lse=lse()[1])
    np.savez(to / "no_heads.npz", **{n: x[1, 0] for n, x in case().items()}, lse=lse()[1, 0],
             bias=np.arange(SQ * SK, dtype=np.float32).reshape(SQ, SK))
    np.savez(to / "integers.npz", **{n: (16 * x).astype(np.int32) for n, x in case().items()})
    np.savez(to / "no_v.npz", **{n: x for n, x in case().items() if n != "v"})
    wrong = case()
    wrong["v"] = wrong["v"][:, :, :-1]
    np.savez(to / "short_v.npz", **wrong)
    fortran = {n: np.asfortranarray(x) for n, x in case().items()}
    np.savez(to / "fortran.npz", **fortran)
    np.savez(to / "big.npz", **{n: x.astype(">f2") for n, x in case().items()})
    np.savez(to / "causal.npz", **case(), causal=np.bool_(True))
    np.savez(to / "objects.npz", **case(), other=np.array([{}], dtype=object))

    (to / "folder").mkdir()
    for name, x in case(dtype=np.float32).items():
        np.save(to / "folder" / f"run7_{name}.npy", x)

    with h5py.File(to / "groups.h5", "w") as f:
        group = f.create_group("layer/attn")
        group.attrs["layout"] = "BSHD"
        group.attrs["sm_scale"] = np.float32(0.5)
        group.attrs["is_causal"] = False
        for name, x in case("BSHD").items():
            group[name.upper()] = x.astype(">f2")
        f["elsewhere"] = h5py.SoftLink("/nowhere")
    with h5py.File(to / "two.h5", "w") as f:
        for n in "01":
            for name, x in case().items():
                f[f"layer{n}/{name}"] = x + np.float16(int(n))

    save_safetensors(to / "bf16.safetensors", {
        **{f"model.attn.{n}": ("BF16", bf16_bits(x)) for n, x in case().items() if n != "o"},
        "model.attn.out": ("F32", case()["o"].astype(np.float32)),
        "steps": ("I64", np.arange(3)),
    }, {"scale": "0.125", "mask": "none"})


main(pathlib.Path(sys.argv[1]))
