"""The models of which the pairing benchmark compares variants: plain ones from edited source, tiny transformers."""

from __future__ import annotations

import importlib.util
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

SOURCE = Path(__file__).with_name("pairing_source.py")
PLAIN = {"mlp": "MLP", "gpt": "GPT", "cnn": "CNN", "cell": "Cell", "experts": "Experts", "cache": "Cache"}


class Wrapper(nn.Module):
    """A module around a model, as DDP or torch.compile add one."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.name = name
        setattr(self, name, model)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Forward the call."""
        return getattr(self, self.name)(*inputs, **kwargs)


def load_source(path: Path, edits: tuple[tuple[str, str], ...], shift: int) -> ModuleType:
    """Write an edited copy of the plain models to `path` and import it; each edit must apply."""
    text = SOURCE.read_text()
    for old, new in edits:
        if old not in text:
            raise ValueError(f"the source of the plain models has no {old!r}")
        text = text.replace(old, new)
    if shift:
        head, separator, rest = text.partition("class Gated")
        text = head + "# moved\n" * shift + separator + rest.replace("    def forward", "    # moved\n    def forward")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    name = f"pairing_source_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def generator(name: str) -> torch.Generator:
    """Return a random stream that depends only on a name."""
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def fused_row(name: str) -> tuple[str, int] | None:
    """Return the fused weight that contains a projection's weight, and its position in it."""
    for place, letter in enumerate("qkv"):
        if f".{letter}." in name:
            return name.replace(f".{letter}.", ".qkv."), place
    return None


def draw(name: str, like: Tensor) -> Tensor:
    """Return values of a scale that keeps activations near 1; one-dimensional weights are near 1, biases near 0."""
    random = torch.randn(like.shape, generator=generator(name))
    if like.dim() > 1:
        fan_in = like.shape[1:].numel() if like.dim() != 3 else like.shape[1]
        return random if "embed" in name or "token" in name else random / fan_in**0.5
    if name.endswith("bias"):
        return 0.3 * random
    return 1 + 0.2 * random


@torch.no_grad()
def initialise(model: nn.Module) -> None:
    """Set every parameter and statistic to values that depend only on its name."""
    for full_name, parameter in model.named_parameters():
        name = full_name.replace("stack.", "blocks.")  # a variant renames it
        fused = fused_row(name)
        if fused is not None:
            full = draw(fused[0], torch.empty(3 * parameter.shape[0], *parameter.shape[1:]))
            parameter.copy_(full.chunk(3)[fused[1]])
        else:
            parameter.copy_(draw(name, parameter))
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(0.3 * torch.randn(buffer.shape, generator=generator(name)))
        elif name.endswith("running_var"):
            buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator(name)))


def _llama(attention: str) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                    num_key_value_heads=2, max_position_embeddings=32, attn_implementation=attention, use_cache=False)
    )  # fmt: skip


def _mixtral(attention: str) -> nn.Module:
    from transformers import MixtralConfig, MixtralForCausalLM

    return MixtralForCausalLM(
        MixtralConfig(vocab_size=64, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
                      num_key_value_heads=2, max_position_embeddings=32, num_local_experts=4, num_experts_per_tok=2,
                      attn_implementation=attention, use_cache=False)
    )  # fmt: skip


def _bert(attention: str) -> nn.Module:
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                   max_position_embeddings=32, attn_implementation=attention, hidden_dropout_prob=0.0,
                   attention_probs_dropout_prob=0.0)
    )  # fmt: skip


def _vit(attention: str) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(
        ViTConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=16,
                  patch_size=4, num_labels=7, attn_implementation=attention)
    )  # fmt: skip


def _t5(attention: str) -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(
        T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0,
                 use_cache=False, decoder_start_token_id=0)
    )  # fmt: skip


TRANSFORMERS: dict[str, Callable[[str], nn.Module]] = {
    "llama": _llama, "mixtral": _mixtral, "bert": _bert, "vit": _vit, "t5": _t5
}  # fmt: skip
NAMES = (*PLAIN, *TRANSFORMERS)


def make_model(name: str, source: ModuleType | None, attention: str) -> nn.Module:
    """Return a model in evaluation mode with random values in all weights."""
    torch.manual_seed(0)
    if source is not None:
        model: nn.Module = getattr(source, PLAIN[name])()
    else:
        model = TRANSFORMERS[name](attention)
    initialise(model)
    return model.eval()


def make_inputs(name: str, call: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments of a call: random values by the call's letter, of another size for a capital letter."""
    random = torch.Generator().manual_seed(ord(call))
    size = 6 if call.isupper() else 8

    def ids(length: int = size) -> Tensor:
        return torch.randint(1, 60, (2, length), generator=random)

    def floats(*shape: int) -> Tensor:
        return torch.randn(shape, generator=random)

    if name in ("llama", "mixtral", "bert"):
        return (), {"input_ids": ids()}
    if name == "t5":
        return (), {"input_ids": ids(), "decoder_input_ids": ids(5)}
    if name == "vit":
        return (), {"pixel_values": floats(10 - size, 3, 16, 16)}
    if name == "gpt":
        return (ids(),), {}
    if name == "cache":
        return (floats(2, 16), torch.tensor([ord(call) - ord("a")])), {}
    shapes = {"mlp": (size, 24), "cnn": (size - 4, 3, 16, 16), "cell": (4, size - 3, 12), "experts": (size, 16)}
    return (floats(*shapes[name]),), {}
