"""Runs one recorded operator call again, and says whether its result is right. Needs PyTorch and NumPy alone.

    python repro.py                  judges the recorded result
    python repro.py --device npu:0   judges what that device computes now

A result is right if it is what the operator, computed in float64 on the same inputs, gives after rounding.
Exit status: 0 right, 1 wrong.
"""

import argparse
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

# ---- the call ----

OPERATOR = torch.ops.aten.gelu.default
DTYPES = {"input_0": torch.float32, "output_0": torch.float32}  # of the tensors; bfloat16 is saved as float32
STRIDES: dict[str, tuple[int, ...]] = {}  # of inputs that are not contiguous
TERMS = {"output_0": 1}  # how many terms are summed up in one element of a result
CHOOSES: Any = None  # for positions, as of topk: dimension and keepdim
IS_POINTWISE = True
CANCELS = True  # x/2 (1 + erf(...)): where the sum cancels, its rounding is one of x/2, for x the first input
IN_FLOAT64 = True  # False: the operator's meaning depends on the dtype


def call(x: Callable[[str], Any], number: Any, dtype: Any, device: Any) -> dict[str, Any]:
    """Call the operator with its recorded arguments; return its results by name."""
    input_0 = x("input_0")
    result = OPERATOR(input_0)
    return {"output_0": result}


# ---- the judgement ----

LARGEST_RATIO = 4  # of the error to what rounding explains
REACH = 8  # standard deviations that one element may be off
N_PERTURBED = 15
MARGIN = 0.002  # of a share of elements, above twice the usual one
RMS_FACTOR = 1.5  # of the error to the usual one, where many elements are usually not correctly rounded
LONELY_RATIO, LONELY_REACH = 12, 5  # of one element of a sum: to all others, and to what it may be off


def read(name: str) -> torch.Tensor:
    """Return a recorded tensor."""
    values = np.load(Path(__file__).with_name(f"{name}.npy"), allow_pickle=False)
    tensor = torch.from_numpy(np.array(values, order="K")).to(DTYPES[name])
    if name in STRIDES:
        tensor = torch.empty_strided(tensor.shape, STRIDES[name], dtype=tensor.dtype).copy_(tensor)
    return tensor


def is_floating(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def run(device: str = "cpu", exact: bool = False, unit: float = 0, seed: int = 0) -> dict[str, torch.Tensor]:
    """Call the operator: as recorded, or (exact) in float64, with its inputs changed by `unit`, up or down."""
    generator = torch.Generator().manual_seed(seed)
    wide = {torch.float32, torch.float16, torch.bfloat16} if exact else set()

    def x(name: str) -> torch.Tensor:
        tensor = read(name)
        if exact and is_floating(tensor):
            tensor = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
            if unit:
                tensor = tensor * (1 + unit * (torch.randint(0, 2, tensor.shape, generator=generator) * 2 - 1))
        return tensor.to(device)

    def number(value: float) -> float:
        sign = int(torch.randint(0, 2, (), generator=generator)) * 2 - 1
        is_narrow = torch.float64 not in DTYPES.values() and torch.complex128 not in DTYPES.values()
        return float(np.float32(value) if exact and is_narrow else value) * (1 + unit * sign)

    torch.set_default_dtype(torch.float64 if exact else torch.float32)
    results = call(x, number, lambda dtype: torch.float64 if dtype in wide else dtype, device)
    return {name: torch.as_tensor(result).detach().cpu().resolve_conj() for name, result in results.items()}


def spread(exact: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    """Return the root mean square of an exact result's change if the inputs change by half a unit in the last place."""
    unit = torch.finfo(DTYPES[name]).eps / 2
    changes = [run(exact=True, unit=unit, seed=seed)[name] - exact[name] for seed in range(N_PERTURBED)]
    square = parts(torch.stack(changes)).square().mean(0)
    if CANCELS:
        square += (read("input_0").double() * unit / 2) ** 2
    return square.sqrt().nan_to_num()


def parts(tensor: torch.Tensor) -> torch.Tensor:
    """Return real numbers in float64; of complex ones both parts."""
    return (torch.view_as_real(tensor.to(torch.complex128)) if tensor.is_complex() else tensor).double()


class Measured:
    """A result against the exact one.

    ratio: RMS error in units of what rounding explains; share: of elements that are not the correctly rounded exact
    ones; odd: the share that arithmetic in the kernel's own precision does not explain; unfaithful: of those that are
    not even next to the exact value; largest: error of one element in units of what it may be; rest: RMS of the others;
    n_far, n_special: elements far off; NaN, infinite (or of the other sign of zero) on one side only.
    """

    def __init__(self, value: torch.Tensor, exact: torch.Tensor, change: torch.Tensor, name: str) -> None:
        dtype, terms = DTYPES[name], TERMS[name]
        limits = torch.finfo(dtype)
        unit = limits.eps / 2
        rho = min(1.0, 2.0 ** (-24 if unit > 2.0**-53 else -53) / unit)  # kernels sum in float32 at least
        size = exact.abs().double()
        size = size.unsqueeze(-1).expand(*size.shape, 2) if exact.is_complex() else size
        saved, true, rounded = parts(value), parts(exact), parts(exact.to(dtype))
        flush = 0 if dtype is torch.float16 or limits.bits < 16 else limits.smallest_normal
        half = unit * (size / torch.frexp(size).mantissa / 2).nan_to_num().clamp(min=limits.smallest_normal)
        allowed = half**2 + change**2 * (1 + rho**2 * terms / 2) + (rho * unit * size) ** 2 * terms / 3 + flush**2
        inner = ((rho * change) ** 2 * (1 + terms / 2) + (rho * unit * size) ** 2 * (1 + terms / 3)).sqrt() + flush
        allowed = (allowed * (2 if unit <= 2.0**-53 else 1)).sqrt()
        finite = saved.isfinite() & rounded.isfinite()
        error, half, allowed, inner = (item[finite] for item in ((saved - true).abs(), half, allowed, inner))
        differs = ~finite & (saved != rounded) & ~(saved.isnan() & rounded.isnan())
        signs = IS_POINTWISE & (saved == 0) & (rounded == 0) & (saved.signbit() != rounded.signbit())
        self.n = np.unique(true[finite].numpy()).size
        self.rms = float(error.square().mean().sqrt()) if self.n else 0.0
        self.ratio = self.rms / float(allowed.square().mean().sqrt()) if self.n else 0.0
        self.share = float((error > half).double().mean()) if self.n else 0.0
        is_odd = error - half > REACH * inner
        self.odd = float(is_odd.double().mean()) if self.n else 0.0
        self.unfaithful = float((is_odd & (error >= 2 * half)).double().mean()) if self.n else 0.0
        ratios = error / allowed
        self.largest = float(ratios.max()) if self.n else 0.0
        others = error[ratios < self.largest].square().sum() / max(error.numel(), 1)
        self.rest = float((others / allowed.square().mean()).sqrt()) if self.n else 0.0
        self.n_far = int((error > REACH * allowed).sum())
        self.n_special = int(differs.sum() + signs.sum())
        self.is_coarse, self.is_sum = rho < 1, terms > 1


def is_more(share: float, usual: float, n: int) -> bool:
    """Return whether a share of n elements is more than chance makes of twice the usual one (Chernoff, 6 sigma)."""
    p = 2 * usual + MARGIN
    if n < 1 or share <= p or p >= 1:
        return False
    rest = (1 - share) * math.log((1 - share) / (1 - p)) if share < 1 else 0.0
    return n * (share * math.log(share / p) + rest) > 6**2 / 2 + math.log(6 * 2.5)


def problem(found: Measured, usual: Measured) -> str:
    """Return what is wrong with a result, or ""."""
    is_shared = usual.rms >= found.rms / 2 and usual.n_far >= found.n_far
    if found.n_special > usual.n_special:
        return f"{found.n_special - usual.n_special:,} NaN, infinities or signs of zero on one side only"
    if found.ratio > LARGEST_RATIO and not is_shared:
        return f"the error is {found.ratio:,.3g} times what rounding explains"
    if found.n_far > usual.n_far:
        return f"{found.n_far:,} elements are far from the exact ones"
    if found.is_sum and found.largest > max(LONELY_RATIO * found.rest, LONELY_REACH * max(1, usual.largest)):
        return "one element is far from the exact one"
    is_coarser = found.rms > RMS_FACTOR * usual.rms and is_more(found.unfaithful, usual.unfaithful, found.n)
    if found.is_coarse and (is_more(found.odd, usual.odd, found.n) or is_coarser):
        return f"{found.share:.1%} of its elements are not correctly rounded; {usual.share:.1%} is usual here"
    if found.is_coarse and found.is_sum and found.unfaithful > 0 and usual.odd == 0:
        return "an element is not next to the exact one"
    return ""


def selected(indices: torch.Tensor) -> torch.Tensor:
    """Return the values that positions select."""
    values, (dim, keep) = read("input_0"), CHOOSES
    if dim is None:
        values, indices, dim = values.reshape(-1), indices.reshape(-1), 0
    return values.gather(dim, indices.clamp(0) if keep else indices.clamp(0).unsqueeze(dim))


def count_wrong(value: torch.Tensor, exact: torch.Tensor, usual: torch.Tensor) -> int:
    """Return how many integers or bools differ from the exact ones and from those that this CPU computes."""
    wrong = (value != exact) & (value != usual)
    if CHOOSES is not None and wrong.any() and value.max() < read("input_0").numel():
        wrong = selected(value) != selected(exact)
    return int(wrong.sum())


def judge(name: str, legs: dict[str, torch.Tensor], exact: dict[str, torch.Tensor]) -> str:
    """Print one result's numbers; return what is wrong with the last leg, or ""."""
    *others, last = legs
    if legs[last].shape != exact[name].shape:
        return f"its shape is {list(legs[last].shape)}, not {list(exact[name].shape)}"
    if not is_floating(exact[name]) or not IN_FLOAT64:
        n = count_wrong(legs[last], exact[name], legs[others[0]])
        print(f"{name}: {n:,} of {legs[last].numel():,} elements differ")
        return f"{n:,} elements differ" if n else ""
    change = spread(exact, name)
    measured = {leg: Measured(value, exact[name], change, name) for leg, value in legs.items()}
    for leg, found in measured.items():
        print(f"{name}  {leg:<12}{found.ratio:>12,.3g}{found.share:>18.2%}")
    return problem(measured[last], measured[others[0]])


def main() -> int:
    """Print the numbers and the verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="judge what this device computes, such as npu:0, cuda or cpu")
    device = parser.parse_args().device
    if device is not None and device.startswith("npu"):
        __import__("torch_npu")  # registers the device
    exact, here = run(exact=IN_FLOAT64), run()
    judged = {name: read(name) for name in TERMS} if device is None else run(device)
    print(f"{OPERATOR}, torch {torch.__version__}")
    print(f"{'':<{max(map(len, TERMS)) + 2}}{'':<12}{'error/allowed':>14}{'misrounded':>16}")
    problems = {
        name: judge(name, {"on this CPU": here[name], device or "recorded": judged[name]}, exact) for name in TERMS
    }
    for name, text in problems.items():
        if text:
            print(f"WRONG  {name}: {text}")
    if not any(problems.values()):
        print("RIGHT")
    return int(any(problems.values()))


if __name__ == "__main__":
    torch.set_grad_enabled(False)
    sys.exit(main())
