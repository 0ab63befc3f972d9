"""fxtap.open: lazy reading of dumps of fxtap and TorchAir, with NumPy and pandas."""

import resource
import sqlite3
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import fxtap
from dumps import python, run

TORCHAIR = Path(__file__).parent.parent / "data" / "torchair" / "dumps"


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.fc(x).bfloat16() * 2).softmax(-1)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with torch.no_grad():
        run(tmp_path / "dump", Net(), torch.arange(8.0).reshape(2, 4))
    return tmp_path / "dump"


def test_from_root_to_values(root: Path) -> None:
    dump = fxtap.open(root)
    assert dump.kind == "indexed" and dump.path == str(root) and not dump.warnings
    (rank,) = dump.ranks
    assert (rank.rank, rank.world_size, rank.has_index) == (0, 1, True)
    assert rank.runs[-1]["versions"].startswith(f"torch {torch.__version__}")
    (graph,) = rank.graphs
    assert graph.kind == "inference" and len(graph.strict_key) == 32 and graph.rank is rank
    (step,) = graph.steps
    assert (step.step, step.state) == (0, "whole")
    node = graph.node("addmm")
    assert node.target == "aten.addmm.default" and node.source_file == __file__ and node.module_path.endswith("fc")
    assert [tensor.place for tensor in node.tensors()] == ["INPUT.0", "INPUT.1", "INPUT.2", "OUTPUT.0"]
    given = node.tensors(io="INPUT")[1]
    assert given.numpy().tolist() == torch.arange(8.0).reshape(2, 4).tolist()
    assert (given.dtype, given.shape, given.min, given.max, given.arg_name) == ("float32", (2, 4), 0.0, 7.0, "mat1")
    assert tuple(graph.record.names) == tuple(node.name for node in graph.nodes)


def test_arrays_are_mapped_and_read_only(root: Path) -> None:
    tensor = fxtap.open(root)["addmm-aten.addmm.default.INPUT.1"][0]
    array = tensor.numpy()
    assert isinstance(array, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        array[0, 0] = 1
    assert np.asarray(tensor).sum() == 28 and np.array(tensor, dtype=np.float64).dtype == np.float64


def test_more_arrays_than_descriptors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    expected = {}
    for i in range(300):
        shape = ((), (0, 3), (2, 3), (200, 300))[i % 4]
        array = rng.random(shape).astype(("<f4", ">f8", "?", "<c8", ">i2")[i % 5])
        expected[i] = np.asfortranarray(array) if i % 3 == 0 else array
        np.save(tmp_path / f"{i}.npy", expected[i])
    np.save(tmp_path / "300.npy", np.array(["text", "\u00e9"]))
    np.save(tmp_path / "301.npy", np.array(["2026-01-01"], "datetime64[D]"))
    tensors = list(fxtap.open(tmp_path).tensors())
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    n_open = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (n_open + 20, usual[1]))
    try:
        arrays = {Path(tensor.path).stem: tensor.numpy() for tensor in tensors}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    for i, array in expected.items():
        found = arrays[str(i)]
        assert (found.shape, found.dtype, found.tobytes()) == (array.shape, array.dtype, array.tobytes())
        assert found.flags.f_contiguous == array.flags.f_contiguous and not found.flags.writeable
        assert found[..., :1].sum() == array[..., :1].sum() if array.ndim else found == array
    assert arrays["300"].tolist() == ["text", "\u00e9"] and str(arrays["301"][0]) == "2026-01-01"
    tensors.clear()
    del found
    kept = arrays.pop("3")
    arrays.clear()
    assert kept.tobytes() == expected[3].tobytes() and isinstance(kept[1:], np.memmap)


def test_bfloat16_comes_as_float32(root: Path) -> None:
    tensor = fxtap.open(root).tensors("mul*", io="OUTPUT")[0]
    assert (tensor.dtype, tensor.saved_dtype, tensor.numpy().dtype) == ("bfloat16", "float32", np.float32)


def test_patterns_and_names(root: Path) -> None:
    dump = fxtap.open(root)
    everything = dump.tensors()
    assert 0 < len(dump.tensors("*fc*")) < len(everything)
    assert {tensor.node for tensor in dump.tensors("aten.addmm.*")} == {"addmm"}
    assert len(dump["addmm"]) == 4 and len(everything[:3]) == 3 and everything[-1].node == everything[-1:][0].node
    assert len(dump.tensors(io="output")) + len(dump.tensors(io="INPUT")) == len(everything)
    with pytest.raises(KeyError, match=r"no node or tensor 'adm' in .*; did you mean 'addmm'"):
        dump["adm"]
    for typed, hint in (("mm", "'addmm'"), ("ADDMM", "'addmm'"), ("addmm.OUTPUT.0", "'addmm'"), ("ad", "'addmm'")):
        with pytest.raises(KeyError, match=f"no node or tensor '{typed}' in .*; did you mean {hint}"):
            dump[typed]
    with pytest.raises(KeyError) as caught:
        dump["nothing_like_it"]
    assert "did you mean" not in str(caught.value)
    with pytest.raises(ValueError, match="INPUT"):
        dump.tensors(io="in")
    with pytest.raises(LookupError, match="no node 'adm'; did you mean 'addmm'"):
        dump.graphs[0].node("adm")
    with pytest.raises(AttributeError):
        _ = everything[0].nothing


def test_pandas(root: Path) -> None:
    pytest.importorskip("pandas")
    dump = fxtap.open(root)
    frame = dump.to_pandas()
    assert len(frame) == len(dump.tensors())
    row = frame[frame["name"] == "addmm-aten.addmm.default.INPUT.1"].iloc[0]
    assert row["max"] == 7.0 and row["shape"] == (2, 4) and row["node"] == "addmm"
    part = dump.tensors("addmm").to_pandas()
    assert list(part["io"]) == ["INPUT", "INPUT", "INPUT", "OUTPUT"]
    assert list(dump.tensors()[2:4].to_pandas()["name"]) == [tensor.name for tensor in dump.tensors()[2:4]]


def test_repr(root: Path) -> None:
    dump = fxtap.open(root)
    assert "inference" in repr(dump) and str(root) in repr(dump)
    text = repr(dump.tensors())
    assert "addmm" in text and "float32" in text and max(map(len, text.splitlines())) < 160
    assert "<table>" in dump._repr_html_() and "<td>addmm</td>" in dump.tensors()._repr_html_()
    assert "addmm" in repr(dump.graphs[0].node("addmm")) and "Rank 0" in repr(dump.ranks[0])
    assert repr(dump["addmm"][0]).startswith("<Tensor addmm-aten.addmm.default.INPUT.0: float32[3]")
    assert "Step 0" in repr(dump.graphs[0].steps[0]) and "inference" in repr(dump.graphs[0])


def test_statistics_alone(tmp_path: Path) -> None:
    run(tmp_path, torch.sin, torch.full((3,), 2.0), type="stats")
    assert not list(tmp_path.rglob("*.npy"))
    tensor = fxtap.open(tmp_path).tensors(io="INPUT")[0]
    assert (tensor.min, tensor.max, tensor.count, tensor.path) == (2.0, 2.0, 3, None)
    with pytest.raises(LookupError, match="only statistics"):
        tensor.numpy()


@pytest.mark.parametrize("type_", ["npy", "stats"])
def test_steps_that_failed(tmp_path: Path, type_: str) -> None:
    def model(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return (x.sin() * 2).index_select(0, i)

    options = {"data_dump.type": type_, "data_dump.path": str(tmp_path)}
    compiled = torch.compile(model, backend="fxtap", options=options)
    x = torch.full((3,), 2.0)
    for index in (0, 7, 1, 9):
        try:
            compiled(x + index, torch.tensor([index]))
        except IndexError:
            assert index > 2
    (graph,) = fxtap.open(tmp_path).graphs
    assert sorted((step.state, step.call) for step in graph.steps) == [
        ("failed", 1), ("failed", 3), ("whole", 0), ("whole", 2)]  # fmt: skip
    for step in graph.steps:
        tensors = step.tensors("sin")
        assert [tensor.place for tensor in tensors] == ["INPUT.0", "OUTPUT.0"]
        assert [tensor.min for tensor in step.tensors("sin", io="INPUT")] == [2.0 + (0, 7, 1, 9)[step.call]]
        assert {(tensor.state, tensor.call) for tensor in step.tensors()} == {(step.state, step.call)}


def test_threads_that_load_and_look(tmp_path: Path) -> None:
    for i in range(8):
        np.save(tmp_path / f"{i}.npy", np.full(300_000, i, np.float64))
    names = ("min", "max", "shape", "count", "hash", "l2_norm") * 8
    for _ in range(5):
        tensors = list(fxtap.open(tmp_path).tensors())
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(getattr, tensors * 6, names))
        for k, value in enumerate(found):
            expected = {"min": k % 8, "max": k % 8, "shape": (300_000,), "count": 300_000}
            assert names[k] not in expected or value == expected[names[k]]


def _spellings() -> list[str]:
    """Every word and letter that some NumPy accepts as a dtype, and some that none accepts, in each byte order."""
    words = {name for name in np._core.numerictypes.sctypeDict if isinstance(name, str)}  # type: ignore[attr-defined]
    words |= set("?bBhHiIlLqQpPnNefdgFDGSUVOMmacTxyz")
    words |= {"b1", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "f04", "V8", "S5", "U3", "m8", "M8[us]"}
    words |= {"float", "int", "complex", "str", "unicode", "datetime64[ns]", "f4,i4", "2f4"}
    words |= {"", " f4", "f4 ", "f-4", "i16", "ixy", "Sxy", "float 32", "FLOAT32", "float8", "int0x", "datetime65"}
    return sorted(order + word for word in words for order in ("", "<", ">", "=", "|"))


@pytest.mark.filterwarnings("ignore")
def test_every_spelling_of_a_dtype(tmp_path: Path) -> None:
    known = {np.dtype(code).str for code in "?bBhHiIqQefdFD"} | {np.dtype(f">{code}").str for code in "hHiIqQefdFD"}
    n_read = 0
    for i, descr in enumerate(_spellings()):
        header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': (3,), }}".ljust(117) + "\n"
        path = tmp_path / f"{i}.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes([1] * 96))
        try:
            dtype = np.dtype(descr)
        except (TypeError, ValueError):
            dtype = None
        tensor = fxtap.open(path).tensors()[0]
        if dtype is not None and dtype.str in known:
            expected = np.frombuffer(bytes([1] * 96), dtype)[:3]
            assert (tensor.dtype, tensor.count) == (dtype.name, 3), descr
            assert tensor.abs_max == float(abs(expected[0].item())), descr
            n_read += 1
            continue
        if dtype is not None and dtype.kind == "U":
            assert tensor.dtype == "str", descr
            continue
        with pytest.raises(ValueError) as raised:
            tensor.dtype  # noqa: B018
        assert "is not a NumPy dtype" not in str(raised.value) or dtype is None, (descr, str(raised.value))
    assert n_read > 150


@pytest.mark.parametrize("type_", ["npy", "stats"])
def test_nothing_is_largest(tmp_path: Path, type_: str) -> None:
    values = (torch.full((3,), torch.nan), torch.zeros(0), torch.full((2,), torch.nan, dtype=torch.complex64))

    def model(*given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.neg(value) for value in given)

    run(tmp_path / "good", model, *values, type=type_)
    other = torch.full((3,), 0x7FC00001, dtype=torch.int32).view(torch.float32)  # another NaN: equal
    run(tmp_path / "bad", model, other, *values[1:], type=type_)
    tensors = fxtap.open(tmp_path / "good").tensors("aten.neg*")
    assert len(tensors) == 6
    assert [(tensor.abs_max, tensor.min, tensor.max) for tensor in tensors] == [(None, None, None)] * 6
    assert tensors.to_pandas()["abs_max"].isna().all()
    (index,) = (tmp_path / "good").rglob("fxtap.db")
    with sqlite3.connect(index) as database:
        assert database.execute("SELECT count(*), count(abs_max), count(min) FROM value").fetchone()[1:] == (0, 0)
    report = fxtap.compare(tmp_path / "good", tmp_path / "bad")
    assert report.verdict in ("same", "close") and report.counts["different"] == 0


def test_none_is_recorded_without_a_file(tmp_path: Path) -> None:
    run(tmp_path, lambda x: torch.ops.aten.clamp(x, None, 1.0), torch.randn(3))
    tensors = fxtap.open(tmp_path)["clamp"]
    (nothing,) = [tensor for tensor in tensors if tensor.position == "1"]
    assert nothing.skipped == "None" and "not saved" in repr(nothing)
    with pytest.raises(LookupError, match="None"):
        nothing.numpy()
    assert "None" in repr(tensors)


@pytest.mark.parametrize("name", ["toy", "mlp", "cnn", "misc"])
def test_dumps_of_torchairs_own(name: str, tmp_path: Path) -> None:
    with tarfile.open(TORCHAIR / f"{name}.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    dump = fxtap.open(tmp_path)
    assert dump.kind == "named" and not dump.ranks[0].has_index and not dump.ranks[0].runs
    readable = 0
    for tensor in dump.tensors():
        try:
            array = tensor.numpy()
        except ValueError as error:
            assert "pickle" in str(error) or "Object arrays" in str(error)
            continue
        readable += 1
        assert array.shape == tuple(tensor.shape)
        if array.dtype.kind in "fiub" and array.size and not np.isnan(array).any():
            assert tensor.max == array.max() and tensor.count == array.size
    assert readable >= len(dump.tensors()) - 3 and readable > 20
    with pytest.raises(LookupError):
        _ = dump.graphs[0].record
    assert len(dump.graphs[0].nodes) == dump.graphs[0].n_nodes
    assert repr(dump) and repr(dump.tensors())
    assert len(dump.to_pandas()) == len(dump.tensors())


def test_plain_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    np.save(tmp_path / "sub" / "a.npy", np.arange(6).reshape(2, 3))
    np.save(tmp_path / "empty.npy", np.zeros((0, 3)))
    dump = fxtap.open(tmp_path)
    assert dump.kind == "plain"
    by_name = {Path(str(tensor.path)).name: tensor for tensor in dump.tensors()}
    assert by_name["a.npy"].numpy().sum() == 15 and by_name["a.npy"].max == 5
    assert by_name["empty.npy"].numpy().shape == (0, 3)
    assert repr(dump.tensors())
    single = fxtap.open(tmp_path / "sub" / "a.npy")
    assert single.kind == "file" and single.tensors()[0].numpy()[1, 2] == 5


def test_links_inside_a_dump_are_not_followed(tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", np.zeros(3))
    (tmp_path / "dump").mkdir()
    np.save(tmp_path / "dump" / "a.npy", np.ones(3))
    (tmp_path / "dump" / "b.npy").symlink_to(tmp_path / "secret.npy")
    dump = fxtap.open(tmp_path / "dump")
    assert all(not str(tensor.path).endswith("secret.npy") for tensor in dump.tensors())
    assert len(dump.tensors()) == 1 and any("b.npy" in warning for warning in dump.warnings)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises((OSError, LookupError)):
        fxtap.open(tmp_path / "nowhere")
    with pytest.raises((OSError, LookupError)):
        fxtap.open(tmp_path)


def test_a_run_that_is_not_there(tmp_path: Path) -> None:
    run(tmp_path, torch.sin, torch.ones(2))
    assert len(fxtap.open(tmp_path, run=1).graphs) == len(fxtap.open(tmp_path, run=-1).graphs) == 1
    with pytest.raises(LookupError, match="no run 2 in"):
        fxtap.open(tmp_path, run=2)
    with pytest.raises(ValueError, match="not -2"):
        fxtap.open(tmp_path, run=-2)
    with pytest.raises(TypeError, match="'add_1', not 5"):
        fxtap.open(tmp_path)[5]


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.fc(x))


LINE = Block.forward.__code__.co_firstlineno + 1


class Blocks(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(), Block()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks[1](self.blocks[0](x))


class TestPatterns:
    @pytest.fixture(scope="class")
    def root(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        root = tmp_path_factory.mktemp("patterns")
        torch._dynamo.reset()
        with torch.no_grad():
            run(root, Blocks(), torch.ones(1, 2))
        return root

    @pytest.mark.parametrize(
        ("pattern", "wanted"),
        [
            ("addmm_1", {"addmm_1"}),
            ("aten.relu.*", {"relu", "relu_1"}),
            ("blocks.1", {"relu_1"}),
            ("blocks.1*", {"t_1", "addmm_1", "relu_1"}),
            ("*blocks*.fc", {"t", "addmm", "t_1", "addmm_1"}),
            (f"test_reading.py:{LINE}", {"t", "addmm", "relu", "t_1", "addmm_1", "relu_1"}),
            (f"*/test_reading.py:{LINE + 1}", set()),
            ("*reading*", set()),
            ("relu-*.OUTPUT.0", {"relu"}),
        ],
    )
    def test_one_meaning(self, pattern: str, wanted: set[str], root: Path, tmp_path: Path) -> None:
        """A listing, a comparison and a filter select the same operators."""
        dump = fxtap.open(root)
        torch._dynamo.reset()
        with torch.no_grad():
            run(tmp_path, Blocks(), torch.ones(1, 2), filter=pattern)
        if not wanted:
            with pytest.raises(ValueError, match="nothing matches"):
                dump.tensors(pattern)
            with pytest.raises(ValueError, match="nothing matches"):
                fxtap.compare(root, root, op=pattern)
            assert not list(tmp_path.iterdir())
            return
        assert {tensor.node for tensor in dump.tensors(pattern)} == wanted
        assert {pair.node for pair in fxtap.compare(root, root, op=pattern).pairs} == wanted
        assert {tensor.node for tensor in fxtap.open(tmp_path).tensors()} == wanted

    def test_what_matches_nothing_names_the_nearest(self, root: Path) -> None:
        dump = fxtap.open(root)
        for call in (
            lambda: dump.tensors("addmn_1"),
            lambda: dump.graphs[0].tensors("addmn_1"),
            lambda: dump.graphs[0].steps[0].tensors("addmn_1"),
            lambda: fxtap.compare(root, root, op="addmn_1"),
            lambda: fxtap.testing.assert_dumps_close(root, root, op="addmn_1"),
        ):
            for kind in (ValueError, LookupError):
                with pytest.raises(kind, match=r'nothing matches "addmn_1" in .*, did you mean addmm_1'):
                    call()

    def test_what_matches_elsewhere_is_an_empty_list(self, root: Path) -> None:
        dump = fxtap.open(root)
        assert len(dump.tensors("relu", step=7)) == 0 and len(dump.tensors("relu", io="INOUT")) == 0

    def test_what_is_not_dumped_says_why(self, tmp_path: Path) -> None:
        torch._dynamo.reset()
        run(tmp_path, lambda x: x.sin().cos(), torch.ones(2), filter="sin")
        with pytest.raises(ValueError, match=r'cos, which "aten.cos\*" matches in .*, is not dumped: filter'):
            fxtap.open(tmp_path).tensors("aten.cos*")

    def test_a_filter_that_keeps_nothing_names_the_nearest(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        torch._dynamo.reset()
        run(tmp_path, lambda x: x.sin().cos(), torch.ones(2), filter="aten.sine.default*")
        assert "(aten.sine.default*: did you mean aten.sin.default?)" in caplog.text


def test_a_dump_is_a_collection_of_its_tensors(root: Path, tmp_path: Path) -> None:
    dump = fxtap.open(root)
    assert len(dump) == len(dump.tensors()) > 0 and [tensor.name for tensor in dump] == [t.name for t in dump.tensors()]
    assert "addmm" in dump and dump.tensors()[0].name in dump and "nothing" not in dump and 3 not in dump
    np.save(tmp_path / "one.npy", np.ones(2))
    single = fxtap.open(tmp_path / "one.npy")
    assert len(single) == 1 and bool(single)


def test_a_file_that_is_no_array_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\n")
    (tmp_path / "empty").write_text("")
    for name in ("model.py", "empty"):
        with pytest.raises(ValueError, match=f"{name}.*: neither a dump nor an .npy file"):
            fxtap.open(tmp_path / name)
    np.save(tmp_path / "array.npy", np.ones(2))
    (tmp_path / "array.npy").rename(tmp_path / "array")
    assert len(fxtap.open(tmp_path / "array")) == 1  # identified by its first bytes


def test_the_home_folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(root)
    assert len(fxtap.open("~/dump")) == len(fxtap.open(Path("~/dump"))) == len(fxtap.open(b"~/dump"))
    report = fxtap.compare("~/dump", Path("~/dump"))
    assert report.save("~/report.txt") == tmp_path / "report.txt"
    config = fxtap.CompilerConfig()
    for option in ("debug.data_dump.path", "debug.graph_dump.path", "debug.fx_summary.path"):
        config.set(option, "~/x")
        assert config.get(option) == str(tmp_path / "x")
    monkeypatch.setenv("FXTAP_PATH", "~/y")
    from fxtap.environment import apply_environment

    assert apply_environment(config).get("debug.data_dump.path") == str(tmp_path / "y")
    config.set("debug.data_dump.path", "./~x")
    assert config.get("debug.data_dump.path") == str(root / "~x")
    assert not (root / "~").exists()


def test_what_the_documents_name_is_there() -> None:
    """Attributes that need no separate import, and are in dir()."""
    code = """
        import fxtap, sys
        assert "torch" not in sys.modules
        assert {"dump", "get_npu_backend", "testing", "distributed", "open", "PatternError"} <= set(dir(fxtap))
        assert callable(fxtap.testing.assert_dumps_close) and "torch" not in sys.modules
        assert callable(fxtap.distributed.compare_sharded) and callable(fxtap.dump)
        assert set(fxtap.__all__) <= set(dir(fxtap))
        try:
            fxtap.nothing
        except AttributeError as error:
            assert "nothing" in str(error)
    """
    done = python(code, Path.cwd())
    assert done.returncode == 0, done.stderr


def test_errors_do_not_print_docstrings(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import fxtap\ndef test_compare():\n    fxtap.compare('nowhere', 'nothing')\n"
        "def test_open():\n    fxtap.open('nowhere')\n"
        "def test_assert():\n    fxtap.testing.assert_dumps_close('a', 'b')\n"
    )
    done = python("import pytest, sys; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', 'test_it.py']))", tmp_path)
    assert done.stdout.count("FileNotFoundError") >= 3
    assert "Parameters" not in done.stdout and "Raises" not in done.stdout
