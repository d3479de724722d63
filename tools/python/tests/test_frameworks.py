"""xray(), properties(), sweep() and shrink() of functions of torch and of JAX: arrays of the framework go in, exceptions
come out, other threads run."""

import importlib
import importlib.util
import threading

import pytest

import attn_diag


class Torch:
    name = "torch"

    def __init__(self):
        self.lib = importlib.import_module("torch")

    def attention(self, q, k, v, keys=None):
        f = self.lib.nn.functional.scaled_dot_product_attention
        return f(q, k[..., :keys, :], v[..., :keys, :])


class Jax:
    name = "jax"

    def __init__(self):
        self.lib = importlib.import_module("jax")

    def attention(self, q, k, v, keys=None):
        np = self.lib.numpy
        k, v = k[..., :keys, :], v[..., :keys, :]
        s = np.einsum("bhid,bhjd->bhij", q, k, preferred_element_type=np.float32) * q.shape[-1] ** -0.5
        return (self.lib.nn.softmax(s) @ v.astype(np.float32)).astype(q.dtype)


@pytest.fixture(params=["torch", "jax"])
def framework(request):
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not here")
    return {"torch": Torch, "jax": Jax}[request.param]()


def inputs(framework, dtype="fp32", **sizes):
    return attn_diag.inputs(dtype=dtype, framework=framework.name, **{"heads": 2, "seqlen": 20, "head_dim": 16, **sizes})


def test_everything_that_takes_a_function(framework):
    seen = set()

    def fn(q, k, v):
        seen.update(type(x).__module__.partition(".")[0] for x in (q, k, v))
        return framework.attention(q, k, v)

    def forgets_one(q, k, v):
        return framework.attention(q, k, v, -1) if k.shape[-2] > 6 else framework.attention(q, k, v)

    arrays = inputs(framework)
    assert attn_diag.xray(fn, *arrays) and attn_diag.properties(fn, *arrays)
    assert attn_diag.sweep(fn, dict(seqlen=[1, 7], head_dim=16), dtypes=["fp16", "bf16"], framework=framework.name)
    assert seen <= {framework.name, "jaxlib"}
    assert not attn_diag.xray(forgets_one, *arrays)
    assert "permuted-keys" in attn_diag.properties(forgets_one, *arrays).broken
    shrunk = attn_diag.shrink(forgets_one, *arrays, hold=["head_dim"], keep_values=True, seconds=600)
    assert shrunk.problem["seqlen_k"] == 7 and shrunk.passes["seqlen_k"] == 6, str(shrunk)
    assert {"torch": "import torch\n", "jax": "import jax.numpy as jnp\n"}[framework.name] in shrunk.test


@pytest.mark.parametrize("dtype", ["bf16"])
def test_the_arrays_of_a_test_are_those_of_the_smallest_case(framework, dtype):
    def forgets_one(q, k, v):
        return framework.attention(q, k, v, -1) if k.shape[-2] > 2 else framework.attention(q, k, v)

    shrunk = attn_diag.shrink(forgets_one, *inputs(framework, dtype, seqlen=4), hold=["head_dim"], seconds=600)
    body = shrunk.test.partition('"""\n')[2].partition("    returned")[0]
    space = {}
    exec({"torch": "import torch", "jax": "import jax.numpy as jnp"}[framework.name], space)
    exec("\n".join(line[4:] for line in body.splitlines()), space)
    for role, expected in zip("qkv", shrunk.arrays):
        got = space[role]
        got = got.float().numpy() if framework.name == "torch" else got
        assert got.shape == expected.shape and (got.astype("float32") == expected.astype("float32")).all()


def test_what_it_raises_is_raised(framework):
    class Own(Exception):
        pass

    def fails(q, k, v):
        raise Own("no such tile")

    for ask in attn_diag.xray, attn_diag.properties, attn_diag.check_function, attn_diag.shrink:
        with pytest.raises(Own, match="no such tile"):
            ask(fails, *inputs(framework))


@pytest.mark.parametrize("ask", [attn_diag.xray, attn_diag.properties])
def test_other_threads_run_while_its_output_is_judged(framework, ask):
    """A counter goes on between the calls, where it could not if the GIL were held."""
    ticks, inside, stop = [0], threading.Event(), threading.Event()

    def count():
        while not stop.wait(0.001):
            ticks[0] += not inside.is_set()

    def fn(q, k, v):
        inside.set()
        try:
            return framework.attention(q, k, v)
        finally:
            inside.clear()

    arrays = inputs(framework, seqlen=256, head_dim=64)
    counting = threading.Thread(target=count)
    counting.start()
    try:
        for _ in range(20):
            ask(fn, *arrays)
            if ticks[0] > 20:
                break
    finally:
        stop.set()
        counting.join()
    assert ticks[0] > 20, ticks
