"""A process with a decimal comma writes the same graphs, statistics and reports as any other process."""

import locale
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import ctypes, ctypes.util, json, sys
from pathlib import Path
import torch, fxtap
torch.set_num_threads(1)
numeric, libc = int(sys.argv[2]), ctypes.CDLL(None)
libc.setlocale.restype = ctypes.c_char_p
assert not numeric or libc.setlocale(numeric, b"xx")
room = ctypes.create_string_buffer(16)
libc.snprintf(room, 16, b"%.1f", ctypes.c_double(0.5))
assert room.value == (b"0,5" if numeric else b"0.5")
root = Path(sys.argv[1])

class Net(torch.nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope
    def forward(self, x):
        y = torch.nan_to_num(torch.nn.functional.leaky_relu(x, self.slope), 0.5, 1.5, -1.5)
        return torch.nn.functional.layer_norm(y * 1.5, (4,), eps=1e-5)

for name, slope in (("good", 0.01), ("bad", 0.015)):
    torch.compiler.reset()
    torch.compile(Net(slope), backend="fxtap", options={"data_dump.type": "npy", "data_dump.path": str(root / name)})(
        torch.arange(8.0).reshape(2, 4) - 3.25)
graph = fxtap.open(root / "good").graphs[0].record
for form in ("fx", "json", "dot", "py", "txt", "pbtxt"):
    print(fxtap._core.print_graph(graph, form).decode())
report = fxtap.compare(root / "good", root / "bad")
print(json.dumps(json.loads(report.to_json())["origins"], sort_keys=True))
"""


def _write_comma_locale(folder: Path) -> None:
    """Write LC_NUMERIC in glibc's binary form, so that no installed locale is needed."""
    head = struct.pack("=8I", 0x20031115 ^ locale.LC_NUMERIC, 6, 32, 36, 37, 40, 44, 48)
    folder.joinpath("xx").mkdir()
    folder.joinpath("xx", "LC_NUMERIC").write_bytes(head + struct.pack("=4s4sII8s", b",", b"", ord(","), 0, b"UTF-8"))


@pytest.mark.skipif(sys.platform != "linux", reason="the form of glibc's locales")
def test_a_decimal_comma_changes_nothing(tmp_path: Path) -> None:
    _write_comma_locale(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    texts = []
    for numeric in (0, locale.LC_NUMERIC):
        root = tmp_path / f"run{numeric}"
        done = subprocess.run([sys.executable, "script.py", root, str(numeric)], cwd=tmp_path, capture_output=True,
                              text=True, env={**os.environ, "LOCPATH": str(tmp_path)})  # fmt: skip
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout.replace(str(root), "ROOT"))
    assert texts[0] == texts[1]
    assert "0.01" in texts[0] and "nan_to_num" in texts[0] and "no lowering" not in texts[0]
