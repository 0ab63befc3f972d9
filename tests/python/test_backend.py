"""The backend: what is dumped and when, kinds of graphs, and results equal to those of eager PyTorch."""

import logging
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.fx import Node

import fxtap
from dumps import dumping, graphs, load, nodes, run, stems
from fxtap.backend import DUMP_WARNING, EAGER_WARNING
from fxtap.scope import active
from fxtap.session import open_dump

O = torch.ops.aten  # noqa: E741


def test_the_readme_example(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = tmp_path
    config.debug.data_dump.filter = lambda n: n if n.name in ["add_1", "sub"] else None
    model = torch.compile(lambda x, y: (x + y) * 2 + y - 1, backend=fxtap.get_npu_backend(compiler_config=config))
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    with caplog.at_level(logging.WARNING, "fxtap"):
        assert torch.equal(model(x, y), (x + y) * 2 + y - 1)
    assert [record.getMessage() for record in caplog.records if record.name == "fxtap"] == [DUMP_WARNING]
    (graph,) = graphs(tmp_path)
    assert graph.parent.name == "worldsize1_global_rank0"
    assert stems(graph / "0") == [
        "add_1-aten.add.Tensor.INPUT.0",
        "add_1-aten.add.Tensor.INPUT.1",
        "add_1-aten.add.Tensor.OUTPUT.0",
        "sub-aten.sub.Tensor.INPUT.0",
        "sub-aten.sub.Tensor.INPUT.1",
        "sub-aten.sub.Tensor.OUTPUT.0",
    ]
    assert np.array_equal(load(graph / "0", "add_1-aten.add.Tensor.OUTPUT.0"), ((x + y) * 2 + y).numpy())


def test_warning_is_torchairs_own() -> None:
    assert DUMP_WARNING == (
        "When dumping data of FX Graph, npu run will be skipped, and FALLBACK to EAGER execution, once dump "
        "finished, please make sure to disable the data dump config to ensure that the graph is compiled and executed."
    )


def test_steps_count_calls_of_a_graph(tmp_path: Path) -> None:
    model = torch.compile(torch.sin, backend=dumping(tmp_path))
    for k in range(3):
        model(torch.full((2,), float(k)))
    (graph,) = graphs(tmp_path)
    assert sorted(path.name for path in graph.iterdir()) == ["0", "1", "2"]
    assert load(graph / "2", "sin-aten.sin.default.INPUT.0").tolist() == [2.0, 2.0]


def test_boxed_calling_convention_keeps_shapes(tmp_path: Path) -> None:
    assert run(tmp_path, lambda x: x.float(), torch.ones(8, 128).half()).shape == (8, 128)


def test_graph_break_forward_backward_and_recompilation_are_graphs_of_their_own(tmp_path: Path) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    run(tmp_path / "break", broken, torch.ones(2))
    assert [nodes(graph / "0") for graph in graphs(tmp_path / "break")] == [{"sin"}, {"cos"}]

    x = torch.ones(3, requires_grad=True)
    run(tmp_path / "train", lambda x: (x * x).sum(), x).backward()
    forward, backward = graphs(tmp_path / "train")
    assert {"mul", "sum_1"} <= nodes(forward / "0") and "expand" in nodes(backward / "0")
    assert x.grad is not None and x.grad.tolist() == [2.0, 2.0, 2.0]

    model = torch.compile(torch.sin, backend=dumping(tmp_path / "again"), dynamic=False)
    model(torch.ones(2))
    model(torch.ones(3))
    assert len(graphs(tmp_path / "again")) == 2


def test_graph_numbers_are_unique_in_the_process(tmp_path: Path) -> None:
    run(tmp_path / "a", torch.sin, torch.ones(2))
    torch._dynamo.reset()
    run(tmp_path / "b", torch.cos, torch.ones(2))
    (a,), (b,) = graphs(tmp_path / "a"), graphs(tmp_path / "b")
    assert int(b.name.removeprefix("graph_")) == int(a.name.removeprefix("graph_")) + 1


def test_dynamic_shapes(tmp_path: Path) -> None:
    result = run(tmp_path, lambda x, k: x.reshape(-1) * k, torch.ones(3, 5), 7, dynamic=True)
    assert result.tolist() == [7.0] * 15
    (graph,) = graphs(tmp_path)
    saved = {stem: load(graph / "0", stem) for stem in stems(graph / "0")}
    integers = [array for array in saved.values() if array.dtype == np.int64 and array.shape == ()]
    assert 7 in [int(array) for array in integers]


def test_cond(tmp_path: Path) -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
        return result

    assert torch.equal(run(tmp_path, branch, torch.ones(3)), torch.ones(3).sin())
    (graph,) = graphs(tmp_path)
    assert nodes(graph / "0") == {"sum_1", "gt"}
    # the index states that the branches are not dumped
    (reader,) = fxtap.open(tmp_path).graphs
    reasons = {node.name: node.skipped for node in reader.nodes}
    assert reasons["cond"] == "higher-order operator; its subgraphs are not dumped" and not reasons["sum_1"]


def test_inference_mode(tmp_path: Path) -> None:
    with torch.inference_mode():
        assert run(tmp_path, lambda x: (x + 1).mul_(2), torch.ones(3)).tolist() == [4.0] * 3


def test_random_numbers_are_those_of_eager(tmp_path: Path) -> None:
    def drop(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(torch.nn.functional.dropout(x, 0.5), 0.25)

    torch.manual_seed(0)
    reference = drop(torch.ones(50))
    state = torch.get_rng_state()
    torch.manual_seed(0)
    assert torch.equal(run(tmp_path, drop, torch.ones(50)), reference)
    assert torch.equal(torch.get_rng_state(), state)


def test_autocast(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 4)
    x = torch.randn(2, 4)
    with torch.autocast("cpu", torch.bfloat16):
        reference = model(x)
        result = run(tmp_path, model, x)
    assert result.dtype == torch.bfloat16 and torch.equal(result, reference)
    result.float().sum().backward()
    forward, _ = graphs(tmp_path)
    outputs = [stem for stem in stems(forward / "0") if stem.startswith("addmm-") and ".OUTPUT." in stem]
    assert load(forward / "0", outputs[0]).dtype == np.float32
    assert np.array_equal(load(forward / "0", outputs[0]), result.detach().float().numpy())


def test_mutated_input(tmp_path: Path) -> None:
    def put(x: torch.Tensor) -> torch.Tensor:
        x.index_put_((torch.tensor([0]),), torch.tensor([9.0]))
        return x * 2

    x = torch.tensor([1.0, 2.0])
    assert run(tmp_path, put, x).tolist() == [18.0, 4.0] and x.tolist() == [9.0, 2.0]
    (graph,) = graphs(tmp_path)
    assert load(graph / "0", "index_put-aten.index_put.default.INPUT.0").tolist() == [1.0, 2.0]
    assert load(graph / "0", "index_put-aten.index_put.default.OUTPUT.0").tolist() == [9.0, 2.0]


def test_index_with_none_and_keyword_tensors(tmp_path: Path) -> None:
    x = torch.randn(3, 4)
    index = torch.tensor([1, 2])
    run(tmp_path / "index", lambda x, i: x[:, i], x, index)
    (graph,) = graphs(tmp_path / "index")
    assert stems(graph / "0") == [
        "index-aten.index.Tensor.INPUT.0",
        "index-aten.index.Tensor.INPUT.1.1",
        "index-aten.index.Tensor.OUTPUT.0",
    ]
    order = torch.tensor([2, 0, 1])
    run(tmp_path / "search", lambda a, v, s: O.searchsorted.Tensor(a, v, sorter=s), torch.randn(3), x, order)
    (graph,) = graphs(tmp_path / "search")
    (stem,) = [stem for stem in stems(graph / "0") if stem.endswith(".INPUT.sorter")]
    assert load(graph / "0", stem).tolist() == order.tolist()


def test_nothing_is_pickled(tmp_path: Path) -> None:
    run(tmp_path, lambda x, i, s: (O.clamp(x, None, 1.0), O.scatter_reduce.two(x, 0, i, s, "sum"), x.to(torch.float64)),
        torch.randn(4), torch.tensor([0, 1]), torch.randn(2))  # fmt: skip
    files = list(tmp_path.rglob("*.npy"))
    assert files
    for file in files:
        np.load(file, allow_pickle=False)
    assert [np.load(file).item() for file in files if ".INPUT.4." in file.name] == ["sum"]


def test_several_models_and_threads(tmp_path: Path) -> None:
    failures = []

    def work(k: int) -> None:
        try:
            torch.manual_seed(k)
            module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
            x = torch.randn(4, 8)
            model = torch.compile(module, backend=dumping(tmp_path))
            for _ in range(3):
                assert torch.equal(model(x), module(x))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    found = graphs(tmp_path)
    assert len(found) == 4
    for graph in found:
        assert sorted(path.name for path in graph.iterdir()) == ["0", "1", "2"]
        assert len({len(stems(step)) for step in graph.iterdir()}) == 1


def test_one_model_called_by_several_threads(tmp_path: Path) -> None:
    model = torch.compile(lambda x: (x * 2).sin(), backend=dumping(tmp_path), dynamic=False)
    model(torch.zeros(2))
    wrong = []

    def work(k: int) -> None:
        x = torch.full((2,), float(k))
        for _ in range(5):
            if not torch.equal(model(x), (x * 2).sin()):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    (graph,) = graphs(tmp_path)
    assert sorted(int(path.name) for path in graph.iterdir()) == list(range(21))
    for step in graph.iterdir():
        doubled = load(step, "mul-aten.mul.Tensor.OUTPUT.0")
        assert np.array_equal(load(step, "mul-aten.mul.Tensor.INPUT.0") * 2, doubled)


def test_custom_operators_are_skipped_unless_asked_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    @torch.library.custom_op("fxtap_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    def model(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = twice(x) + x.split(1)[0]
        return result

    with caplog.at_level(logging.DEBUG, "fxtap"):
        run(tmp_path / "plain", model, torch.ones(2))
    assert "Skip dump non aten target fxtap_test.twice.default" in caplog.text
    (graph,) = graphs(tmp_path / "plain")
    assert nodes(graph / "0") == {"split", "add"}
    torch._dynamo.reset()
    run(tmp_path / "custom", model, torch.ones(2), custom_ops=True)
    (graph,) = graphs(tmp_path / "custom")
    assert nodes(graph / "0") == {"twice", "split", "add"}


def test_decompositions_are_the_users(tmp_path: Path) -> None:
    config = fxtap.CompilerConfig()
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = tmp_path
    table = {O.silu.default: lambda x: x * torch.sigmoid(x)}
    backend = fxtap.get_npu_backend(compiler_config=config, custom_decompositions=table)
    torch.compile(torch.nn.functional.silu, backend=backend)(torch.ones(2))
    (graph,) = graphs(tmp_path)
    assert nodes(graph / "0") == {"sigmoid", "mul"}


class TestFilter:
    def test_called_once_a_node_and_compilation_for_nodes_that_would_be_dumped(self, tmp_path: Path) -> None:
        seen: list[str] = []

        def keep(node: Node) -> Node | None:
            assert isinstance(node, Node)
            seen.append(node.name)
            return node if node.name == "add" else None

        model = torch.compile(lambda x: x.split(1)[0] + 1, backend=dumping(tmp_path, filter=keep))
        for _ in range(3):
            model(torch.ones(2))
        assert seen == ["split", "add"]
        (graph,) = graphs(tmp_path)
        assert all(nodes(graph / str(step)) == {"add"} for step in range(3))

    @pytest.mark.parametrize("answer", [True, False, "add", 1])
    def test_another_answer_names_the_node(self, tmp_path: Path, answer: object) -> None:
        with pytest.raises(Exception, match=rf"FilterError.*\n?.*{answer!r} for node add"):
            run(tmp_path, lambda x: x + 1, torch.ones(2), filter=lambda node: answer)
        assert not list(tmp_path.rglob("*.npy"))

    def test_exception_names_the_node(self, tmp_path: Path) -> None:
        def keep(node: Node) -> Node | None:
            raise KeyError("nothing here")

        with pytest.raises(Exception, match=r"the filter raised KeyError for node add: 'nothing here'"):
            run(tmp_path, lambda x: x + 1, torch.ones(2), filter=keep)

    def test_another_node_is_not_its_own(self, tmp_path: Path) -> None:
        with pytest.raises(Exception, match="for node mul"):
            run(tmp_path, lambda x: x * 2 + 1, torch.ones(2), filter=lambda node: node.next)

    def test_everything_rejected_leaves_no_files(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        assert run(tmp_path, lambda x: x + 1, torch.ones(2), filter=lambda node: None).tolist() == [2.0, 2.0]
        assert not list(tmp_path.rglob("*.npy"))
        assert "the filter keeps no operator of the inference graph" in caplog.text

    def test_something_kept_is_no_reason_to_warn(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        run(tmp_path, lambda x: (x + 1) * 2, torch.ones(2), filter="add*")
        assert "the filter keeps" not in caplog.text

    def test_patterns_on_name_target_and_module_path(self, tmp_path: Path) -> None:
        module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3)).eval()
        for patterns, wanted in (
            ("addmm*", {"addmm", "addmm_1"}),
            ("aten.relu.*", {"relu"}),
            (["2"], {"t_1", "addmm_1"}),
            ("*nothing*, relu", {"relu"}),
        ):
            torch._dynamo.reset()
            root = tmp_path / str(patterns)[:5].strip("*[")
            with torch.no_grad():
                run(root, module, torch.ones(2, 3), filter=patterns)
            (graph,) = graphs(root)
            assert nodes(graph / "0") == wanted, patterns


class TestByName:
    def test_options(self, tmp_path: Path) -> None:
        options = {"data_dump.type": "npy", "debug.data_dump.path": tmp_path, "data_dump.filter": "sin"}
        torch.compile(lambda x: x.sin().cos(), backend="fxtap", options=options)(torch.ones(2))
        (graph,) = graphs(tmp_path)
        assert nodes(graph / "0") == {"sin"}

    def test_unknown_option(self) -> None:
        with pytest.raises(Exception, match='no option "typ"; did you mean "type"'):
            torch.compile(torch.sin, backend="fxtap", options={"data_dump.typ": "npy"})(torch.ones(2))

    def test_environment(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FXTAP_TYPE", "npy")
        monkeypatch.setenv("FXTAP_PATH", str(tmp_path))
        monkeypatch.setenv("FXTAP_FILTER", "aten.cos.*")
        torch.compile(lambda x: x.sin().cos(), backend="fxtap")(torch.ones(2))
        (graph,) = graphs(tmp_path)
        assert nodes(graph / "0") == {"cos"}

    def test_explicit_configuration_is_not_changed_by_the_environment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("FXTAP_FILTER", "nothing")
        run(tmp_path, torch.sin, torch.ones(2))
        assert len(graphs(tmp_path)) == 1

    def test_block(self, tmp_path: Path) -> None:
        model = torch.compile(lambda x: x.sin().cos(), backend="fxtap")
        with fxtap.dump(tmp_path, filter="cos", sync=True) as config:
            model(torch.ones(2))
            scoped = active.get()
            assert scoped is not None
            dump = open_dump(config, scoped)
        assert dump.closed
        assert torch.equal(model(torch.ones(2)), torch.ones(2).sin().cos())
        (graph,) = graphs(tmp_path)
        assert nodes(graph / "0") == {"cos"} and [path.name for path in graph.iterdir()] == ["0"]

    def test_blocks_share_a_path(self, tmp_path: Path) -> None:
        outer = torch.compile(lambda x: x.sin(), backend="fxtap")
        inner = torch.compile(lambda x: x.cos(), backend="fxtap")
        with fxtap.dump(tmp_path):
            outer(torch.ones(2))
            with fxtap.dump(tmp_path):
                inner(torch.ones(2))
            outer(torch.ones(2))  # still inside its own block
        outer(torch.ones(2))
        assert [sorted(path.name for path in graph.iterdir()) for graph in graphs(tmp_path)] == [["0", "1"], ["0"]]

    def test_block_closes_what_it_opened(self, tmp_path: Path) -> None:
        model = torch.compile(lambda x: x.sin(), backend="fxtap")
        with fxtap.dump(tmp_path / "a") as config:
            model(torch.ones(2))
            config.debug.data_dump.path = tmp_path / "b"
        model(torch.ones(2))
        (graph,) = graphs(tmp_path / "a")
        assert [path.name for path in graph.iterdir()] == ["0"]

    def test_backward_after_the_block_is_not_dumped(self, tmp_path: Path) -> None:
        x = torch.ones(2, requires_grad=True)
        with fxtap.dump(tmp_path):
            loss = torch.compile(lambda x: x.sin().sum(), backend="fxtap")(x)
        loss.backward()
        assert x.grad is not None and torch.equal(x.grad, torch.ones(2).cos())
        assert len(graphs(tmp_path)) == 1

    def test_block_leaves_a_dump_that_others_use(self, tmp_path: Path) -> None:
        model = torch.compile(lambda x: x.sin(), backend=dumping(tmp_path))
        model(torch.ones(2))
        with fxtap.dump(tmp_path):
            torch.compile(lambda x: x.cos(), backend="fxtap")(torch.ones(2))
        model(torch.ones(2))
        assert sorted(path.name for path in graphs(tmp_path)[0].iterdir()) == ["0", "1"]


class TestWithoutDump:
    def test_inner_backend(self) -> None:
        called = []

        def inner(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> object:
            called.append(len(inputs))
            return gm.forward

        options = {"inner_backend": inner}
        assert torch.compile(torch.sin, backend="fxtap", options=options)(torch.zeros(2)).tolist() == [0.0, 0.0]
        assert called == [1]

    def test_inner_backend_by_name(self, tmp_path: Path) -> None:
        options = {"inner_backend": "aot_eager"}
        assert torch.compile(torch.sin, backend="fxtap", options=options)(torch.zeros(2)).tolist() == [0.0, 0.0]
        with pytest.raises(Exception, match="nonesuch"):
            torch.compile(torch.cos, backend="fxtap", options={"inner_backend": "nonesuch"})(torch.zeros(2))

    def test_no_compiler(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        import fxtap.backend

        monkeypatch.setattr(fxtap.backend, "_has_cpp_compiler", lambda: False)
        assert torch.compile(torch.sin, backend="fxtap")(torch.zeros(2)).tolist() == [0.0, 0.0]
        assert "aot_eager" in caplog.text

    def test_run_eagerly(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        config = fxtap.CompilerConfig()
        config.debug.run_eagerly = True
        config.debug.data_dump.path = tmp_path
        model = torch.compile(lambda x: (x @ x).sum(), backend=fxtap.get_npu_backend(compiler_config=config))
        x = torch.randn(3, 3, requires_grad=True)
        model(x).backward()
        assert x.grad is not None
        assert EAGER_WARNING in caplog.text and not list(tmp_path.iterdir())

    def test_options_without_effect_are_warned_of_once(self, tmp_path: Path) -> None:
        config = fxtap.CompilerConfig()
        config.debug.run_eagerly = True
        config.experimental_config.frozen_parameter = True
        config.mode = "reduce-overhead"
        backend = fxtap.get_npu_backend(compiler_config=config)
        with pytest.warns(UserWarning, match=r"experimental_config\.frozen_parameter, mode") as caught:
            torch.compile(torch.sin, backend=backend)(torch.ones(2))
            torch.compile(torch.cos, backend=backend)(torch.ones(2))
        assert len([warning for warning in caught if "TorchAir" in str(warning.message)]) == 1

    def test_wrong_configuration(self) -> None:
        with pytest.raises(TypeError, match="CompilerConfig"):
            fxtap.get_npu_backend(compiler_config={"type": "npy"})  # type: ignore[arg-type]


class TestRealTorchAir:
    """With torch_npu installed, graphs that are not dumped go to TorchAir, with the whole configuration."""

    @pytest.fixture
    def torchair(self, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
        import fxtap.backend

        class Section:
            def __init__(self, **entries: object) -> None:
                self.__dict__.update(entries)

            def __setattr__(self, name: str, value: object) -> None:
                if name not in self.__dict__:
                    raise ValueError(f"has no option {name}")
                self.__dict__[name] = value

        def compiler_config() -> Section:
            data_dump = Section(type=None, path=None, filter=None)
            return Section(
                mode="max-autotune",
                experimental_config=Section(frozen_parameter=False),
                debug=Section(data_dump=data_dump, run_eagerly=False),
            )

        def get_npu_backend(*, compiler_config: Section, custom_decompositions: dict[object, object]) -> object:
            module.used.append((compiler_config, custom_decompositions))
            return lambda gm, inputs: gm.forward

        module = SimpleNamespace(CompilerConfig=compiler_config, get_npu_backend=get_npu_backend, used=[])
        monkeypatch.setattr(fxtap.backend, "real_torchair", lambda: module)
        return module

    def test_configuration_is_passed_on(
        self, torchair: SimpleNamespace, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
    ) -> None:
        config = fxtap.CompilerConfig()
        config.mode = "reduce-overhead"
        config.experimental_config.frozen_parameter = True
        config.ge_config.oo_level = "O1"  # this TorchAir has no ge_config
        config.inner_backend = "eager"
        table = {O.silu.default: torch.nn.functional.silu}
        backend = fxtap.get_npu_backend(compiler_config=config, custom_decompositions=table)
        assert torch.compile(torch.sin, backend=backend)(torch.zeros(2)).tolist() == [0.0, 0.0]
        ((real, decompositions),) = torchair.used
        assert (real.mode, real.experimental_config.frozen_parameter) == ("reduce-overhead", True)
        assert decompositions == table
        assert "ge_config.oo_level" in caplog.text and "inner_backend" not in caplog.text
        assert not [warning for warning in recwarn if "TorchAir" in str(warning.message)]

    def test_a_dump_does_not_need_it(self, torchair: SimpleNamespace, tmp_path: Path) -> None:
        run(tmp_path, torch.sin, torch.ones(2))
        assert not torchair.used and len(graphs(tmp_path)) == 1


def test_what_fxtap_lacks_is_looked_for_in_torchair(monkeypatch: pytest.MonkeyPatch) -> None:
    import fxtap.ascend

    with pytest.raises(AttributeError, match="cache_compile"):
        _ = fxtap.cache_compile
    monkeypatch.setattr(fxtap.ascend, "real_torchair", lambda: SimpleNamespace(cache_compile="there"))
    assert fxtap.cache_compile == "there"
