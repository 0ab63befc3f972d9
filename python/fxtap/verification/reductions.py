"""K: how many terms one element of a result is accumulated from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from torch import Tensor

from .operators import Operator

__all__ = ["reduction_length"]


def _numel(sizes: Sequence[int]) -> int:
    return math.prod(sizes)


def _last(tensor: Tensor) -> int:
    return tensor.shape[-1] if tensor.ndim else 1


def _product(tensors: Sequence[Tensor], _result: Tensor) -> int:
    """mm, bmm, mv, dot, linear, matmul: the inner dimension."""
    return _last(tensors[0])


def _sum_and_product(tensors: Sequence[Tensor], _result: Tensor) -> int:
    """addmm and its like: the first argument is added."""
    return _last(tensors[1]) if len(tensors) > 1 else 1


def _batched_sum(tensors: Sequence[Tensor], _result: Tensor) -> int:
    """addbmm: the products of a batch are added, too."""
    return tensors[1].shape[0] * _last(tensors[1]) if len(tensors) > 1 and tensors[1].ndim == 3 else 1


def _convolution(tensors: Sequence[Tensor], _result: Tensor) -> int:
    """C_in / groups times the kernel; for a transposed one at most as many as the weight has for one channel."""
    weight = tensors[1]
    return max(_numel(weight.shape[1:]), weight.shape[0] * _numel(weight.shape[2:])) if weight.ndim > 1 else 1


def _convolution_backward(tensors: Sequence[Tensor], result: Tensor) -> int:
    """Gradients of weight and bias: N times the output's spatial size; of the input: as for a convolution."""
    gradient, inputs, weight = tensors[0], tensors[1], tensors[2]
    if result.shape == inputs.shape:
        return weight.shape[0] * _numel(weight.shape[2:])
    return gradient.shape[0] * _numel(gradient.shape[2:]) if gradient.ndim > 1 else 1


def _attention(tensors: Sequence[Tensor], _result: Tensor) -> int:
    """Scores over the head's size, then a softmax and a sum over the keys (or, backward, the queries)."""
    sizes = [tensor.shape[-2] for tensor in tensors if tensor.ndim >= 3]
    return _last(tensors[0]) + max(sizes, default=1)


def _scatter(tensors: Sequence[Tensor], result: Tensor) -> int:
    """All elements of the source may fall on one element of the result."""
    longest = max((tensor.numel() for tensor in tensors), default=1)
    row = _last(result) if result.ndim > 1 else 1
    return max(1, longest // max(1, row))


def _per_channel(tensors: Sequence[Tensor], _result: Tensor) -> int:
    """Normalisations over batch and space, or over a group of channels: at most the elements of one of both."""
    largest = max(tensors, key=Tensor.numel)
    channels = max(1, largest.shape[1]) if largest.ndim > 1 else 1
    return max(largest.numel() // channels, largest.numel() // max(1, largest.shape[0]))


_TABLE: dict[str, Callable[[Sequence[Tensor], Tensor], int]] = {
    **dict.fromkeys(
        ("mm", "bmm", "mv", "dot", "vdot", "linear", "matmul", "_int_mm", "inner", "_grouped_mm"), _product
    ),
    **dict.fromkeys(("addmm", "baddbmm", "addmv", "_addmm_activation"), _sum_and_product),
    "addbmm": _batched_sum,
    **dict.fromkeys(("convolution", "_convolution", "conv1d", "conv2d", "conv3d", "mkldnn_convolution"), _convolution),
    "convolution_backward": _convolution_backward,
    **dict.fromkeys(
        ("embedding_dense_backward", "embedding_backward", "index_put", "_index_put_impl", "_unsafe_index_put",
         "index_add", "scatter_add", "scatter_reduce", "index_reduce"), _scatter,
    ),
    **dict.fromkeys(("native_group_norm", "native_group_norm_backward", "native_batch_norm_backward"), _per_channel),
}  # fmt: skip


def reduction_length(operator: Operator, tensors: Sequence[Tensor], result: Tensor) -> int:
    """Return K for one result of an operator.

    Parameters
    ----------
    tensors
        Its tensor arguments, in order.
    result
        The result.

    Notes
    -----
    Where the operator is not in the table: 1 for pointwise ones; the ratio of elements where the result is smaller than
    the largest argument; else the last dimension of that argument.
    """
    if operator.is_elementwise or not tensors:
        return 1
    rule = _TABLE.get(operator.name)
    try:
        if rule is not None:
            return max(1, rule(tensors, result))
        if "scaled_dot_product" in operator.name:
            return max(1, _attention(tensors, result))
    except IndexError:  # other arguments than expected
        pass
    return _generic(tensors, result)


def _generic(tensors: Sequence[Tensor], result: Tensor) -> int:
    largest = max(tensors, key=Tensor.numel)
    if 0 < result.numel() < largest.numel():
        return max(1, largest.numel() // result.numel())
    return max(1, _last(largest))
