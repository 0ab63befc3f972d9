"""The documents are right: their commands and Python code run, their links exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from documents import DOCUMENTS, HOME, PAGES, Piece, links, of_document, of_page
from program_run import Run

PIECES = [piece for path in DOCUMENTS for piece in of_document(path)]
PIECES += [piece for path in PAGES for piece in of_page(path)]
SHELL = [piece for piece in PIECES if piece.kind == "shell"]
RULES = [piece for piece in PIECES if piece.kind == "toml"]

NOT_RUN = {
    "scripts/": "is the way here",
    "cmake ": "the C suite was built and installed so",
    "torchrun --nnodes": "wants eight machines",
    "python examples/minilm": "scripts/demo runs it",
    "python repro-": "the line before it writes the script; test_repro.py runs such scripts",
    "fxtap run --path dump torchrun": "as the line before it, for which torchrun need not be on PATH",
    "fxtap run --path good torchrun": "as the line before it, for which torchrun need not be on PATH",
}

# Dumps under the names used in the documents, of one small model: several steps, two ranks, two graphs.
MODEL = """
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(8, 8, bias=False)
        self.norm = nn.LayerNorm(8)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.norm(self.attn(x))) + 1

class Model(nn.ModuleList):
    def forward(self, x, y=0):
        for block in self:
            x = block(x)
        return x + y

def make():
    torch.manual_seed(0)
    return Model(Block() for _ in range(5)).eval()

model, x, y = make(), torch.randn(4, 8), torch.randn(4, 8)
"""
DUMPS = """
import shutil
import numpy
import fxtap
from model import *

def dump(name, model, calls=1):
    torch.compiler.reset()
    compiled = torch.compile(model, backend="fxtap")
    with torch.no_grad(), fxtap.dump(name):
        for _ in range(calls):
            compiled(x)

def split(x):
    x = x.sin()
    torch._dynamo.graph_break()
    return nn.functional.gelu(x)

numpy.save("any.npy", numpy.arange(6.0))
wrong = make()
wrong[3].act = nn.GELU(approximate="tanh")
dump("dump", model, 6)
dump("two", split)
for name in ("good", "out/float32", "GOLDEN"):
    dump(name, make())
for name in ("bad", "out/wrong", "out/kernel", "out/decomposed", "TARGET"):
    dump(name, wrong)
dump("out/bfloat16", lambda x: make().to(torch.bfloat16)(x.to(torch.bfloat16)))
dump("out/bfloat16-wrong", lambda x: wrong.to(torch.bfloat16)(x.to(torch.bfloat16)))
for name, source in {"float32": "out/float32", "bfloat16": "out/bfloat16", "test": "good"}.items():
    shutil.copytree(source, name)
for rank in range(2):
    shutil.copytree("good/worldsize1_global_rank0", f"DUMP/worldsize2_global_rank{rank}")
"""
TRAIN = "import sys\nfrom model import *\nassert sys.argv[1:] in ([], ['--epochs', '1'])\ntorch.compile(model)(x)\n"


@pytest.fixture(scope="session")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the dumps that the documents use, once."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "model.py").write_text(MODEL)
    (folder / "train.py").write_text(TRAIN)
    (folder / "make.py").write_text(DUMPS)
    subprocess.run([sys.executable, "make.py"], cwd=folder, check=True, capture_output=True, timeout=120)
    return folder


@pytest.fixture
def place(dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty folder with links to the dumps."""
    for path in dumps.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def choose_dump(place: Path, command: str) -> None:
    """Link "dump" to the dump that the command needs; remove what the command itself creates."""
    made = re.search(r"(?:--path |FXTAP_PATH=)(\w+)", command)
    if made:
        (place / made.group(1)).unlink()
    elif "--graph 2" in command:
        (place / "dump").unlink()
        (place / "dump").symlink_to((place / "two").resolve())
    elif "--across-ranks" in command:
        (place / "dump").unlink()
        (place / "dump").symlink_to((place / "DUMP").resolve())


@pytest.mark.parametrize("piece", SHELL, ids=[f"{piece.name} {piece.text[:60]}" for piece in SHELL])
def test_command_runs(piece: Piece, place: Path, program: str) -> None:
    for beginning, reason in NOT_RUN.items():
        if piece.text.startswith(beginning):
            pytest.skip(reason)
    if shutil.which(piece.text.split()[0]) is None and piece.text.startswith("sqlite3"):
        pytest.skip("no sqlite3")
    choose_dump(place, piece.text)
    command = piece.text.replace("dot | dot -T", "dot | cat #") if shutil.which("dot") is None else piece.text
    path = f"{Path(program).parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": path, "FXTAP_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    allowed = (0, 1) if re.search("fxtap (compare|verify)", command) else (0,)
    assert done.returncode in allowed, f"{command}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr
    written = re.search(r"(?:--(?:html|json|csv) |> )([\w.]+)", command)
    if written:
        assert (place / written.group(1)).stat().st_size > 0


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_runs(document: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python code of a document runs from top to bottom, in one session."""
    pieces = [piece for piece in of_document(document) if piece.kind == "python" and "from torchair" not in piece.text]
    if not pieces:
        pytest.skip("no Python in it")
    import torch

    import fxtap

    module = ModuleType("document")
    monkeypatch.setitem(sys.modules, "document", module)  # torch looks up the globals of a function there
    names: dict[str, Any] = vars(module)
    names.update(torch=torch, fxtap=fxtap, config=fxtap.CompilerConfig())
    exec((place / "model.py").read_text(), names)
    for name in ("dump", "good"):  # the text writes these before it reads them
        if f'fxtap.dump("{name}"' in document.read_text() or f'path = "./{name}"' in document.read_text():
            (place / name).unlink()
    for piece in pieces:
        torch.compiler.reset()
        exec(compile(piece.text, piece.name, "exec"), names)


def test_documents_have_what_is_tested() -> None:
    """The finders above find something: an empty list would pass every test."""
    assert len(SHELL) > 25
    assert RULES
    assert sum(piece.kind == "python" for piece in PIECES) > 8


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_paths_lead_somewhere(document: Path) -> None:
    missing = [link for link in links(document) if not (document.parent / link.partition("#")[0]).exists()]
    named = re.findall(
        r"`((?:docs|src|python|scripts|tests|examples|include|programs)/[\w./-]+)`", document.read_text()
    )
    missing += [path for path in named if not (HOME / path).exists()]
    assert not missing


@pytest.mark.parametrize("piece", RULES, ids=lambda piece: piece.name)
def test_rules_are_read(piece: Piece, place: Path, run: Run) -> None:
    (place / "rules.toml").write_text(piece.text)
    done = run("compare", "good", "bad", "--rules", "rules.toml", "--quiet")
    assert done.returncode in (0, 1), done.stderr


@pytest.mark.parametrize("example", ["custom_filter.py", "training_step.py"])
def test_example_runs(example: str, tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, HOME / "examples" / example, tmp_path / "out"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert list(tmp_path.rglob("*.OUTPUT.0.*.npy"))
