"""Pairs of sides that compute the same but are written differently: the clean variants of the pairing benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from pairing_models import NAMES, PLAIN
from pairing_record import Side

SDPA = "        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)\n"
EAGER = """\
        scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
        mask = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).tril()
        scores = scores.masked_fill(~mask, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
"""
QKV = "        self.qkv = nn.Linear(width, 3 * width)\n"
Q_K_V = "        self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)\n"
LOOP = "each = torch.stack([x @ self.weight[n] + self.bias[n] for n in range(4)])"
LEFT = "        left = torch.tanh(self.left(x))\n"
RIGHT = "        right = torch.sigmoid(self.right(x))\n"
RMS = "        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5) * self.scale\n"
MAX_POOL = ("x = F.max_pool2d(x, 2)", "x = F.avg_pool2d(x, 2)")
BREAK = "        torch._dynamo.graph_break()\n"
LOOPS = {"mlp": "        for block in self.blocks:\n", "gpt": "        for layer in self.layers:\n",
         "cnn": "        for stage in self.stages:\n", "cell": "        for step in range(x.shape[1]):\n",
         "experts": "        share = "}  # fmt: skip
BLOCKS = {"mlp": "blocks", "gpt": "layers", "cnn": "stages", "llama": "model.layers", "mixtral": "model.layers",
          "bert": "bert.encoder.layer", "vit": "vit.layers", "t5": "decoder.block"}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """Two sides, and the limits for equality.

    Attributes
    ----------
    equal
        Largest relative L2 distance of two values that are the same quantity.
    tolerances
        Keywords of `fxtap.compare`, if its defaults do not suit this variant.
    """

    name: str
    golden: Side
    target: Side
    equal: float = 1e-5
    tolerances: dict[str, Any] = field(default_factory=dict)


LOOSE: dict[str, Any] = {"equal": 0.06, "tolerances": {"rtol": 0.1, "atol": 0.3}}
CLOSE: dict[str, Any] = {"equal": 1e-4, "tolerances": {"rtol": 1e-3, "atol": 1e-4}}


def edited(side: Side, *edits: tuple[str, str], **changes: Any) -> Side:
    return replace(side, edits=edits, **changes)


def everywhere(model: str) -> Iterator[Variant]:
    """Return variants that apply to any model."""
    plain, training = Side(model), Side(model, grad="train")
    block = BLOCKS.get(model)

    def variant(name: str, golden: Side, target: Side, **options: Any) -> Variant:
        return Variant(f"{model}.{name}", golden, target, **options)

    yield variant("forward", plain, replace(plain, grad="forward"))
    yield variant("wrapped", plain, replace(plain, wrap=("_orig_mod", "module")))
    if model != "t5":  # its masks contain the smallest number of the dtype
        yield variant("float64", plain, replace(plain, dtype=torch.float64), **CLOSE)
    smooth = edited(plain, MAX_POOL) if model == "cnn" else plain  # the position of a maximum depends on rounding
    yield variant("autocast", smooth, replace(smooth, autocast=True), **LOOSE)
    yield variant("math", plain, replace(plain, math=True)) if model in ("gpt", "bert", "vit", "llama") else None
    yield variant("addmm", plain, replace(plain, passes=("addmm",)))
    yield variant("versions", plain, replace(plain, passes=("t_permute", "view_reshape", "addmm", "minus_one")))
    yield variant("extra", plain, replace(plain, passes=("clone", "dead_branch")))
    yield variant("missing", replace(plain, passes=("clone", "dead_branch")), plain)
    yield variant("reorder", plain, replace(plain, passes=("reorder",)))
    yield variant("train_wrapped", training, replace(training, wrap=("module",)))
    if block:
        yield variant("break", plain, replace(plain, breaks=(f"{block}.1",)))
        yield variant("train_break", training, replace(training, breaks=(f"{block}.1",)))
        yield variant("train_frozen", training, replace(training, frozen=(f"{block}.0",)))


def sources(model: str) -> Iterator[Variant]:
    """Return variants of plain models' source."""
    plain, training = Side(model), Side(model, grad="train")

    def variant(name: str, golden: Side, target: Side, **options: Any) -> Variant:
        return Variant(f"{model}.{name}", golden, target, **options)

    loop = LOOPS[model]
    yield variant("outer_break", plain, edited(plain, (loop, BREAK + loop)))
    yield variant("train_outer_break", training, edited(training, (loop, BREAK + loop)))
    yield variant("moved", plain, replace(plain, file="other/network.py", shift=37))
    yield variant("shifted_train", training, replace(training, shift=3))
    yield variant("no_sources", plain, replace(plain, passes=("no_sources",)))
    yield variant("renamed_nodes", plain, replace(plain, passes=("rename",)))
    yield variant("anonymous", plain, replace(plain, passes=("rename", "no_sources", "addmm")))
    yield variant("function", plain, replace(plain, wrap=("()",)))
    yield variant("dynamic", plain, replace(plain, dynamic=True))
    yield variant("steps", replace(plain, calls="abc"), replace(plain, calls="ab"))
    yield variant("train_steps", replace(training, calls="abc"), replace(training, calls="ab"))
    yield variant("detach", plain, replace(plain, passes=("detach",)))
    yield variant("algebra", plain, replace(plain, passes=("commute", "sub_neg", "bmm_matmul", "literals")))


def recompiled(model: str) -> Iterator[Variant]:
    """Return variants with another shape in between: a recompilation on one side, dynamic shapes on the other."""
    side = Side(model, calls="aBc")
    yield Variant(f"{model}.recompiled", side, replace(side, dynamic=True))


def mlp() -> Iterator[Variant]:
    """Return variants with rewritten lines of the MLP, and decompositions."""
    plain, training = Side("mlp"), Side("mlp", grad="train")
    silu = ("h = F.silu(h)", "h = h * torch.sigmoid(h)")
    yield Variant("mlp.rewritten", plain, edited(plain, silu))
    yield Variant("mlp.train_rewritten", training, edited(training, silu))
    number = edited(plain, ("return x + y", "return x + y * torch.tensor(0.7)"))
    yield Variant("mlp.constant", number, replace(number, passes=("constant",)))
    yield Variant("mlp.swapped", plain, edited(plain, (LEFT + RIGHT, RIGHT + LEFT)))
    yield Variant("mlp.rms_norm", plain, edited(plain, (RMS, "        y = F.rms_norm(y, (32,), self.scale, 1e-5)\n")))
    added = ("x = x + h\n        left", "x = x.clone()\n        x += h\n        left")
    yield Variant("mlp.in_place", plain, edited(plain, added, ("x = F.relu(x)", "x.relu_()")))
    yield Variant("mlp.train_in_place", training, edited(training, added))
    yield Variant("mlp.logged", plain, edited(plain, ("h = F.gelu(h)", "h = F.gelu(h)\n        self.seen = h.sum()")))
    yield Variant("mlp.line_break", plain, edited(plain, (LEFT, BREAK + LEFT)))
    yield Variant("mlp.train_line_break", training, edited(training, (LEFT, BREAK + LEFT)))
    for name in ("native_layer_norm", "gelu", "silu", "_log_softmax", "addmm"):
        yield Variant(f"mlp.decomposed_{name}", plain, replace(plain, decompose=(name,)))
    names = ("native_layer_norm", "gelu", "silu", "_log_softmax", "addmm", "t")
    yield Variant("mlp.decomposed_all", plain, replace(plain, decompose=names))
    backward = ("native_layer_norm_backward", "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward")
    yield Variant("mlp.train_decomposed", training, replace(training, decompose=(*names, *backward)))
    yield Variant("mlp.rewritten_passes", plain, replace(plain, passes=("layer_norm", "gelu", "silu")))
    yield Variant("mlp.renamed_class", plain, edited(plain, ("Gated", "Block"), ("blocks", "stack")))
    yield Variant("mlp.bfloat16", plain, replace(plain, dtype=torch.bfloat16), **LOOSE)
    yield Variant("mlp.train_autocast", training, replace(training, autocast=True), **LOOSE)


def gpt() -> Iterator[Variant]:
    """Return variants of attention, projections and checkpoints of the GPT."""
    plain, training = Side("gpt"), Side("gpt", grad="train")
    projections = [(QKV, Q_K_V), ("self.qkv(x).chunk(3, dim=-1)", "self.q(x), self.k(x), self.v(x)")]
    checkpoint = ("x = layer(x)", "x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)")
    yield Variant("gpt.eager_attention", plain, edited(plain, (SDPA, EAGER)))
    yield Variant("gpt.train_eager_attention", training, edited(training, (SDPA, EAGER)))
    yield Variant("gpt.train_math", training, replace(training, math=True))
    yield Variant("gpt.projections", plain, edited(plain, *projections))
    yield Variant("gpt.train_projections", training, edited(training, *projections))
    yield Variant("gpt.projections_eager", plain, edited(plain, *projections, (SDPA, EAGER)))
    yield Variant("gpt.checkpoint", training, edited(training, checkpoint))
    yield Variant("gpt.checkpoint_inference", plain, edited(plain, checkpoint))
    for name in ("native_layer_norm", "gelu", "embedding", "addmm"):
        yield Variant(f"gpt.decomposed_{name}", plain, replace(plain, decompose=(name,)))
    eager = edited(plain, (SDPA, EAGER))
    yield Variant("gpt.decomposed_softmax", eager, replace(eager, decompose=("_softmax",)))
    names = ("native_layer_norm", "gelu", "_softmax", "embedding", "addmm", "t", "split", "masked_fill")
    yield Variant("gpt.decomposed_all", eager, replace(eager, decompose=names))
    yield Variant("gpt.decomposed_math", plain, replace(plain, decompose=names, math=True))
    yield Variant("gpt.train_decomposed", training, replace(training, decompose=(*names, "gelu_backward")))
    yield Variant("gpt.to_copy", replace(plain, autocast=True), replace(plain, autocast=True, passes=("to_copy",)))
    yield Variant("gpt.bfloat16", plain, replace(plain, dtype=torch.bfloat16), **LOOSE)
    yield Variant("gpt.train_autocast", training, replace(training, autocast=True), **LOOSE)


def others() -> Iterator[Variant]:
    """Return variants of CNN, cell, experts, two models at once, and transformers' attention."""
    for side, name in ((Side("cnn"), "cnn"), (Side("cnn", grad="train"), "cnn.train")):
        prefix = f"{name}_" if "." in name else f"{name}."
        names = ("native_group_norm", "native_batch_norm", "_native_batch_norm_legit", "hardswish", "mean")
        yield Variant(f"{prefix}decomposed_group_norm", side, replace(side, decompose=("native_group_norm",)))
        yield Variant(f"{prefix}decomposed_all", side, replace(side, decompose=names))
        line = ("h = F.relu(h)\n        h = self.conv2", "h = h.clamp(min=0)\n        h = self.conv2")
        yield Variant(f"{prefix}rewritten", side, edited(side, line))
    plain = Side("cell")
    hoisted = [("gates = self.input(x[:, step])", "gates = projected[:, step]"),
               ("        outputs = []\n", "        outputs, projected = [], self.input(x)\n")]  # fmt: skip
    late = [("outputs.append(self.out(self.norm(h)))", "outputs.append(h)"),
            ("torch.stack(outputs, dim=1)", "self.out(self.norm(torch.stack(outputs, dim=1)))")]  # fmt: skip
    yield Variant("cell.hoisted", plain, edited(plain, *hoisted))
    yield Variant("cell.late", plain, edited(plain, *late))
    yield Variant("cell.swapped", plain, edited(plain, ("self.input(x[:, step]) + self.hidden(h)",
                                                        "self.hidden(h) + self.input(x[:, step])")))  # fmt: skip
    for side, prefix in ((Side("experts"), "experts."), (Side("experts", grad="train"), "experts.train_")):
        yield Variant(f"{prefix}bmm", side, edited(side, (LOOP, "each = x @ self.weight + self.bias[:, None]")))
        vmap = "each = torch.vmap(lambda w, b: x @ w + b)(self.weight, self.bias)"
        yield Variant(f"{prefix}vmap", side, edited(side, (LOOP, vmap)))
    two = Side("mlp+cell")
    yield Variant("two.order", two, replace(two, model="cell+mlp"))
    yield Variant("two.one_alone", two, Side("cell"))
    for model in ("llama", "mixtral", "bert", "vit"):
        for side, prefix in ((Side(model), f"{model}."), (Side(model, grad="train"), f"{model}.train_")):
            yield Variant(f"{prefix}eager_attention", side, replace(side, attention="eager"))
        yield Variant(f"{model}.decomposed", side_of(model), replace(side_of(model), decompose=DECOMPOSED))
    yield Variant("t5.decomposed", side_of("t5"), replace(side_of("t5"), decompose=DECOMPOSED))


def cache() -> Iterator[Variant]:
    """Return variants of writes to a cache, in place or not."""
    side = Side("cache", calls="abc")
    copies = [(f"self.{name}[:, position] = {value}", f"self.{name}.index_copy_(1, position, {value})")
              for name, value in (("keys", "k.unsqueeze(1)"), ("values", "v.unsqueeze(1)"))]  # fmt: skip
    wheres = [(f"self.{name}[:, position] = {value}",
               f"self.{name}.copy_(torch.where((torch.arange(6) == position)[None, :, None], {value}, self.{name}))")
              for name, value in (("keys", "k.unsqueeze(1)"), ("values", "v.unsqueeze(1)"))]  # fmt: skip
    yield Variant("cache.index_copy", side, edited(side, *copies))
    yield Variant("cache.where", side, edited(side, *wheres))
    yield Variant("cache.moved", side, replace(side, file="other.py", shift=5, wrap=("module",)))
    yield Variant("cache.steps", side, replace(side, calls="ab"))
    yield Variant("cache.versions", side, replace(side, passes=("t_permute", "addmm", "minus_one")))
    yield Variant("cache.extra", side, replace(side, passes=("clone", "dead_branch")))
    yield Variant("cache.float64", side, replace(side, dtype=torch.float64), **CLOSE)
    line = "        scores = (self"
    yield Variant("cache.break", side, edited(side, (line, BREAK + line)))


DECOMPOSED = ("native_layer_norm", "gelu", "silu", "_softmax", "addmm", "embedding")


def side_of(model: str) -> Side:
    return Side(model)


def all_variants() -> list[Variant]:
    """Return all clean variants, in a fixed order."""
    found: list[Variant | None] = []
    for model in NAMES:
        if model != "cache":
            found += everywhere(model)
            found += sources(model) if model in PLAIN else ()
    for model in ("mlp", "gpt", "cnn"):
        found += recompiled(model)
    found += [*mlp(), *gpt(), *others(), *cache()]
    variants = [variant for variant in found if variant is not None]
    assert len({variant.name for variant in variants}) == len(variants)
    return variants
