"""Faults planted into the operators of the verification benchmark's models.

A fault replaces one result of one operator's call while a dump is written; everything computed from it follows. Which
faults change a bit is found by a survey: one run in which each kind is tried on each operator.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from fxtap.compiled import CompiledGraph
from verify_models import HEADS, Session, Setting

HEAD_SIZES = (16, 32)
FLOATS = (torch.float32, torch.float16, torch.bfloat16)
PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "convolution"}
ATTENTION = {"_scaled_dot_product_flash_attention_for_cpu"}
NORMS = {"native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
         "native_group_norm"}  # fmt: skip
MOVES = {"view", "_unsafe_view", "t", "transpose", "permute", "expand", "unsqueeze", "squeeze", "slice", "select",
         "detach", "alias", "clone", "cat", "split", "_to_copy", "full_like", "scalar_tensor", "arange", "full",
         "copy", "native_dropout", "new_ones", "empty_like", "slice_backward", "embedding"}  # fmt: skip


@dataclass
class Call:
    """One call of an operator, with its right result.

    Attributes
    ----------
    out
        The result that a fault changes: the first that is floating, or else the first.
    stale
        The result of an earlier call of the same operator, of the same shape and dtype.
    """

    name: str
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Tensor
    stale: Tensor | None
    draw: random.Random

    def again(self, args: Sequence[Any] | None = None, **kwargs: Any) -> Tensor:
        """Return the result of the operator with other arguments."""
        return chosen(self.func(*(self.args if args is None else args), **{**self.kwargs, **kwargs}))

    def with_argument(self, place: int, value: Any) -> Tensor:
        """Return the result with one positional argument replaced."""
        return self.again([*self.args[:place], value, *self.args[place + 1 :]])

    def tensors(self) -> list[Tensor]:
        return [value for value in self.args if isinstance(value, Tensor)]


def place_of(result: Any) -> int | None:
    """Return the position of the result to change; None if it is the result itself."""
    if isinstance(result, Tensor):
        return None
    found = [i for i, item in enumerate(result) if isinstance(item, Tensor) and item.numel()]
    floating = [i for i in found if result[i].is_floating_point()]
    return (floating or found)[0]


def chosen(result: Any) -> Tensor:
    place = place_of(result)
    value: Tensor = result if place is None else result[place]
    return value


def replaced(result: Any, value: Tensor) -> Any:
    place = place_of(result)
    if place is None:
        return value
    return type(result)([*result[:place], value, *result[place + 1 :]])


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors have equal shapes, dtypes and bits; NaNs are all equal."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    return bool((((a == b) & (a.signbit() == b.signbit())) | (a.isnan() & b.isnan())).all())


def tanh_gelu(call: Call) -> Tensor | None:
    if call.name not in ("gelu", "gelu_backward") or call.kwargs.get("approximate") == "tanh":
        return None
    return call.again(approximate="tanh")


def other_eps(call: Call) -> Tensor | None:
    """Use 1e-3 in a norm, or in the sum that stands for one."""
    if call.name in NORMS:
        place = len(call.args) - 1
        return call.with_argument(place, 1e-3) if isinstance(call.args[place], float) else None
    literal = call.args[1] if call.name == "add" and len(call.args) > 1 else None
    return call.with_argument(1, 1e-3) if isinstance(literal, float) and 0 < literal < 1e-3 else None


def other_scale(call: Call) -> Tensor | None:
    """Use 1/sqrt(d + 1) in attention, or in the product that stands for it."""
    if call.name in ATTENTION:
        return call.again(scale=(call.args[0].shape[-1] + 1) ** -0.5)
    factor = call.args[1] if call.name in ("mul", "div") and len(call.args) > 1 else None
    if not isinstance(factor, float):
        return None
    for size in HEAD_SIZES:
        for power in (-0.5, -0.25, 0.5, 0.25):
            if abs(factor - size**power) < 1e-6:
                return call.with_argument(1, (size + 1) ** power)
    return None


def softmax_without_maximum(call: Call) -> Tensor | None:
    """Compute exp(x) / sum(exp(x)) in the operator's dtype."""
    if call.name not in ("_softmax", "_log_softmax", "_safe_softmax"):
        return None
    x, dim = call.args[0], call.args[1]
    grown = x.exp()
    if call.name == "_log_softmax":
        return x - grown.sum(dim, keepdim=True).log()
    return grown / grown.sum(dim, keepdim=True)


def added_in_bfloat16(terms: Tensor) -> Tensor:
    """Return the sum over the last dimension, term after term in bfloat16."""
    total = torch.zeros(terms.shape[:-1], dtype=torch.bfloat16)
    for term in terms.unbind(-1):
        total = (total.float() + term.float()).bfloat16()
    return total.float()


def product_in_bfloat16_sums(a: Tensor, b: Tensor) -> Tensor:
    total = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=torch.bfloat16)
    for k in range(a.shape[-1]):
        total = (total.float() + a[..., k : k + 1].float() @ b[..., k : k + 1, :].float()).bfloat16()
    return total.float()


def bfloat16_sum(call: Call) -> Tensor | None:
    """Accumulate in bfloat16."""
    dtype = call.out.dtype
    if dtype not in FLOATS:
        return None
    if call.name in ("sum", "mean") and call.tensors()[0].is_floating_point():
        x = call.tensors()[0]
        dims = [d % x.dim() for d in (call.args[1] if len(call.args) > 1 else range(x.dim()))]
        rest = [d for d in range(x.dim()) if d not in dims]
        terms = x.permute(*rest, *dims).reshape(*(x.shape[d] for d in rest), -1)
        if not 8 <= terms.shape[-1] <= 2048:
            return None
        total = added_in_bfloat16(terms) / (terms.shape[-1] if call.name == "mean" else 1)
        return total.reshape(call.out.shape).to(dtype)
    if call.name in ("mm", "bmm", "addmm") and 8 <= call.tensors()[-1].shape[-2] <= 512:
        a, b = call.tensors()[-2:]
        total = product_in_bfloat16_sums(a, b)
        return (total + call.args[0].float() if call.name == "addmm" else total).to(dtype)
    if call.name in ("_softmax", "_safe_softmax"):
        grown = (call.args[0].float() - call.args[0].float().amax(call.args[1], keepdim=True)).exp()
        return (grown / added_in_bfloat16(grown.movedim(call.args[1], -1)).unsqueeze(call.args[1])).to(dtype)
    return None


def bfloat16_product(call: Call) -> Tensor | None:
    """Round the factors to bfloat16 where the result is float32."""
    factors = [value for value in call.tensors() if value.is_floating_point()]
    if call.name not in PRODUCTS | {"mul"} or call.out.dtype != torch.float32 or len(factors) < 2:
        return None
    rounded = [v.bfloat16().to(v.dtype) if isinstance(v, Tensor) and v.is_floating_point() else v for v in call.args]
    return call.again(rounded)


def bfloat16_rotary(call: Call) -> Tensor | None:
    """Compute the rotary embedding's tables in bfloat16."""
    if call.name not in ("cos", "sin") or call.out.dtype != torch.float32:
        return None
    return call.again([call.args[0].bfloat16()]).float()


def wrong_heads(call: Call) -> Tensor | None:
    """Give each query head another key head's group, or read features as heads."""
    out = call.out
    if not out.is_floating_point():
        return None
    if call.name in ("clone", "expand") and out.dim() == 5 and out.shape[1] > 1 and out.shape[2] > 1:
        return out.transpose(1, 2).reshape(out.shape).clone()
    if call.name in ("view", "_unsafe_view") and out.dim() == 4 and out.shape[2] == HEADS and call.args[0].dim() == 3:
        batch, tokens, heads, size = out.shape
        return call.args[0].reshape(batch, tokens, size, heads).transpose(2, 3).contiguous()
    return None


def shifted_mask(call: Call) -> Tensor | None:
    """Move a mask by one place."""
    other = {"le": torch.lt, "lt": torch.le, "ge": torch.gt, "gt": torch.ge}.get(call.name)
    if other is not None and call.out.dtype == torch.bool:
        return other(*call.args)
    if call.name in ("triu", "tril"):
        return call.again([call.args[0], (call.args[1] if len(call.args) > 1 else 0) + 1])
    if call.name == "where" and len(call.args) == 3 and call.args[0].numel() > 1:
        return call.with_argument(0, call.args[0].roll(1, -1))
    if call.name == "masked_fill":
        return call.with_argument(1, call.args[1].roll(1, -1))
    if call.name in ATTENTION:
        mask = call.kwargs.get("attn_mask")
        if mask is not None:
            return call.again(attn_mask=mask.roll(1, -1))
        if len(call.args) > 4 and call.args[4]:
            sizes = call.args[0].shape[-2], call.args[1].shape[-2]
            return call.again([*call.args[:4], False], attn_mask=torch.ones(sizes, dtype=torch.bool).tril(1))
    return None


def is_product(call: Call) -> bool:
    return call.name in PRODUCTS and call.out.is_floating_point() and call.out.numel() > 64


def wrong_element(call: Call) -> Tensor | None:
    """Give one element of a product its neighbour's value, or zero."""
    if not is_product(call):
        return None
    wrong = call.out.clone().contiguous()
    flat, i = wrong.view(-1), call.draw.randrange(wrong.numel() - 1)
    flat[i] = call.draw.choice([flat[i + 1].item(), 0.0])
    return wrong


def wrong_row(call: Call) -> Tensor | None:
    """Give one row of a product the row before it."""
    if not is_product(call) or call.out.shape[-2] < 2:
        return None
    wrong = call.out.clone().contiguous()
    rows = wrong.view(-1, wrong.shape[-1])
    i = call.draw.randrange(1, rows.shape[0])
    rows[i] = rows[i - 1].clone()
    return wrong


def wrong_tile(call: Call) -> Tensor | None:
    """Leave the last quarter of the sum out of one tile of a matrix product, or leave it unwritten."""
    if not is_product(call) or call.name == "convolution":
        return None
    wrong = call.out.clone().contiguous()
    rows, columns = (min(16, max(1, n // 2)) for n in wrong.shape[-2:])
    tile = wrong[..., -rows:, -columns:]
    a, b = call.tensors()[-2:]
    last = max(1, a.shape[-1] // 4)
    if call.draw.random() < 0.5:
        tile.zero_()
    else:
        tile -= (a[..., -rows:, -last:].float() @ b[..., -last:, -columns:].float()).to(tile.dtype)
    return wrong


def wrong_zero_sign(call: Call) -> Tensor | None:
    """Give zeros the other sign."""
    named = {"relu", "threshold_backward", "mul", "where", "clone", "cat", "neg", "silu", "_to_copy", "hardswish",
             "constant_pad_nd", "add", "sub"}  # fmt: skip
    if call.name not in named or not call.out.is_floating_point():
        return None
    return torch.where(call.out == 0, -call.out, call.out)


def lost_nan(call: Call) -> Tensor | None:
    """Return a number where the result is NaN."""
    if not call.out.is_floating_point() or not bool(call.out.isnan().any()):
        return None
    return call.out.nan_to_num(nan=call.draw.choice([0.0, 1.0]))


def clamped_index(call: Call) -> Tensor | None:
    """Clamp an index to the last but one of those that occur."""
    if call.name in ("embedding", "embedding_dense_backward", "gather"):
        place = {"embedding": 1, "embedding_dense_backward": 1, "gather": 2}[call.name]
        index = call.args[place]
        return call.with_argument(place, index.clamp(max=int(index.max()) - 1)) if int(index.max()) > 0 else None
    if call.name in ("index", "_unsafe_index", "index_select", "index_put"):
        indices = list(call.args[1]) if isinstance(call.args[1], (list, tuple)) else None
        if indices is None:
            return None
        place = next((i for i, item in enumerate(indices) if item is not None and item.dtype == torch.int64), -1)
        if place < 0 or not indices[place].numel() or int(indices[place].max()) < 1:
            return None
        indices[place] = indices[place].clamp(max=int(indices[place].max()) - 1)
        return call.with_argument(1, indices)
    return None


def stale_buffer(call: Call) -> Tensor | None:
    """Return what an earlier call of the operator returned."""
    return call.stale if call.name not in MOVES and call.out.is_floating_point() else None


def raced_block(call: Call) -> Tensor | None:
    """Add one block's contribution twice, or lose it."""
    if call.name in MOVES or not call.out.is_floating_point() or call.out.numel() < 64:
        return None
    wrong = call.out.clone().contiguous()
    flat = wrong.view(-1)
    start = call.draw.randrange(flat.numel() - 31)
    flat[start : start + 32] *= call.draw.choice([0.0, 2.0])
    return wrong


KINDS: dict[str, Callable[[Call], Tensor | None]] = {
    "tanh gelu": tanh_gelu, "other eps": other_eps, "scale 1/sqrt(d+1)": other_scale,
    "softmax without maximum": softmax_without_maximum, "bfloat16 sum": bfloat16_sum,
    "bfloat16 product": bfloat16_product, "bfloat16 rotary": bfloat16_rotary, "wrong heads": wrong_heads,
    "mask off by one": shifted_mask, "one element": wrong_element, "one row": wrong_row, "one tile": wrong_tile,
    "sign of zero": wrong_zero_sign, "NaN lost": lost_nan, "index clamped": clamped_index,
    "stale buffer": stale_buffer, "race on a block": raced_block
}  # fmt: skip
"""Faults inside a kernel: the graph is right, the results are not. None where a kind does not apply."""

STATES = {"NaN lost": "poisoned", "softmax without maximum": "hot"}
"""The state of the weights in which faults of a kind are planted; "plain" for others."""


@dataclass
class Fault:
    """One planted fault: its kind and the node's place in the dump.

    Attributes
    ----------
    position
        The number of the graph among those of the session; `graph` is its number in the dump.
    """

    kind: str
    position: int
    node: str
    operator: str
    seed: int
    graph: int = 0
    changed: bool = False

    @property
    def state(self) -> str:
        return STATES.get(self.kind, "plain")


@dataclass
class Saboteur:
    """Replaces the operators of a session's graphs while they run.

    Attributes
    ----------
    faults
        What is planted, by position of the graph and name of the node. None: a survey.
    found
        Survey: for each kind, the (position, node, operator) whose result it changes.
    unchanged
        Survey: for each kind, the number of operators to which it applies without changing a bit.
    """

    session: Session
    faults: dict[tuple[int, str], Fault] | None
    kinds: Sequence[str]
    found: dict[str, list[tuple[int, str, str]]] = field(default_factory=lambda: defaultdict(list))
    unchanged: Counter[str] = field(default_factory=Counter)
    before: dict[Any, Tensor] = field(default_factory=dict)

    @contextlib.contextmanager
    def around(self, graph: CompiledGraph) -> Iterator[None]:
        """Replace the operators of a graph during one call."""
        position = self.session.backend.graphs.index(graph)
        targets: dict[Node, Any] = {}
        graph.record  # noqa: B018  the record is that of the right graph
        for node, flags in zip(graph.gm.graph.nodes, graph.record.flags, strict=True):
            is_known = isinstance(node.target, torch._ops.OpOverload) and node.target.namespace == "aten"
            if is_known and not flags & {"mutates", "undefined"}:
                targets[node] = node.target
                node.target = self.operator(node, position)
        try:
            yield
        finally:
            for node, target in targets.items():
                node.target = target
            for fault in (self.faults or {}).values():
                if fault.position == position:
                    fault.graph = graph._number

    def operator(self, node: Node, position: int) -> Callable[..., Any]:
        """Return the operator of a node, as the fault planned for it makes it; a survey tries all kinds."""
        func: Any = node.target
        name = func._schema.name.partition("::")[2]
        fault = self.faults.get((position, node.name)) if self.faults is not None else None

        def run(*args: Any, **kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            items = [result] if isinstance(result, Tensor) else result
            if not isinstance(items, (list, tuple)) or not any(isinstance(t, Tensor) and t.numel() for t in items):
                return result
            out = chosen(result)
            key = (func, out.shape, out.dtype)
            call = Call(name, func, args, kwargs, out, self.before.get(key), random.Random(0))
            if self.faults is None:
                self.survey(call, (position, node.name, str(func)))
            elif fault is not None:
                call.draw = random.Random(fault.seed)
                wrong = KINDS[fault.kind](call)
                if wrong is not None:
                    fault.changed = not same_bits(wrong, out)
                    result = replaced(result, torch.empty_like(out).copy_(wrong))
            self.before[key] = out.clone()
            return result

        return run

    def survey(self, call: Call, where: tuple[int, str, str]) -> None:
        for kind in self.kinds:
            try:
                wrong = KINDS[kind](call)
            except (RuntimeError, TypeError, IndexError):  # an overload with other arguments
                continue
            if wrong is not None:
                if same_bits(wrong, call.out):
                    self.unchanged[kind] += 1
                else:
                    self.found[kind].append(where)


@contextlib.contextmanager
def state(session: Session, name: str) -> Iterator[None]:
    """Change the weights: "poisoned" has a NaN in the input, "hot" large logits."""
    kept = {key: value.clone() for key, value in session.model.state_dict().items()}
    inputs = {key: value.clone() for key, value in session.inputs.items()}
    with torch.no_grad():
        if name == "poisoned":
            session.poison()
        elif name == "hot":
            for parameter in session.model.parameters():
                if parameter.dim() == 2:
                    parameter *= 100
    try:
        yield
    finally:
        session.model.load_state_dict(kept)
        session.model.zero_grad()
        for key, value in inputs.items():
            session.inputs[key].copy_(value)


def run(session: Session, root: Path, setting: Setting, saboteur: Saboteur, weights: str) -> None:
    """Dump one run with a saboteur at work."""
    session.extra = saboteur.around
    try:
        with state(session, weights):
            session.run(root, setting)
    finally:
        session.extra = lambda _graph: contextlib.nullcontext()


def draw_faults(
    found: dict[str, list[tuple[int, str, str]]], used: Counter[str], taken: set[tuple[int, str]], count: int,
    draw: random.Random,
) -> list[Fault]:  # fmt: skip
    """Choose places that are not taken for the kinds that are rarest so far, at most one fault a node."""
    faults: list[Fault] = []
    here: Counter[str] = Counter()
    while len(faults) < count:
        open_kinds = {
            kind: [place for place in places if place[:2] not in taken] for kind, places in sorted(found.items())
        }
        kinds = [kind for kind, places in open_kinds.items() if places]
        if not kinds:
            break
        kind = min(kinds, key=lambda name: (used[name] + 3 * here[name], draw.random()))
        position, node, operator = draw.choice(open_kinds[kind])
        taken.add((position, node))
        used[kind] += 1
        here[kind] += 1
        faults.append(Fault(kind, position, node, operator, draw.randrange(1 << 30)))
    return faults
