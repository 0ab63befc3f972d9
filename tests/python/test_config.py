"""The configuration: TorchAir's names, defaults and checks."""

import copy
import pickle
from pathlib import Path

import pytest

import fxtap as torchair
from fxtap.config import CompilerConfig, OptionError, OptionValue
from fxtap.environment import VARIABLES, apply_environment
from fxtap.options import TREE, Option, Tree


@pytest.fixture
def config() -> CompilerConfig:
    return torchair.CompilerConfig()


def test_torchair_script_configures_unchanged(config: CompilerConfig) -> None:
    config.mode = "reduce-overhead"
    config.debug.data_dump.type = "npy"
    config.debug.graph_dump.type = "pbtxt"
    config.debug.graph_dump.path = "./graphs"
    config.debug.fx_summary.type = "csv"
    config.debug.fx_summary.skip_compile = False
    config.debug.run_eagerly = True
    config.debug.aclgraph.disable_mempool_reuse_in_same_fx = True
    config.experimental_config.frozen_parameter = True
    config.experimental_config.tiling_schedule_optimize = True
    config.experimental_config.static_model_ops_lower_limit = -1
    config.experimental_config.aclgraph._aclnn_static_shape_kernel = True
    config.experimental_config.aclgraph._aclnn_static_shape_kernel_build_dir = "/path/test"
    config.ge_config.optimization_switch = "AutomaticUbFusion:off"
    config.ge_config.oo_level = "O1"
    config.inference_config.dynamic_gears_merge_policy = "product"
    config.aclgraph_config.use_custom_pool = object()
    config.export.experimental.enable_record_nn_module_stack = True
    config.dump_config.dump_step = "0|1|2-5|6"
    config.post_grad_custom_pre_pass = lambda *_: None
    assert config.mode.value == "reduce-overhead"
    assert config.experimental_config.frozen_parameter.value == "1"
    assert config.debug.graph_dump.enabled and config.debug.fx_summary.enabled


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("debug.data_dump.type", "txt"),
        ("debug.data_dump.type", "NPY"),
        ("debug.graph_dump.type", "dot"),
        ("debug.fx_summary.type", "npy"),
        ("debug.run_eagerly", "yes"),
        ("mode", "fast"),
        ("ge_config.oo_level", "O2"),
        ("experimental_config.topology_sorting_strategy", "dfs"),
        ("experimental_config.static_model_ops_lower_limit", -2),
        ("experimental_config.static_model_ops_lower_limit", "3"),
        ("debug.aclgraph.static_capture_size_limit", 0),
        ("dump_config.dump_step", "a-b"),
        ("debug.data_dump.queue_bytes", 0),
        ("debug.data_dump.queue_bytes", 1.5),
        ("debug.data_dump.on_error", "ignore"),
        ("debug.fx_summary.language", "fr"),
    ],
)
def test_value_that_is_not_legal_is_a_value_error(config: CompilerConfig, path: str, value: object) -> None:
    before = config.get(path)
    with pytest.raises(ValueError, match=path.replace(".", r"\.")):
        config.set(path, value)
    assert config.get(path) == before


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("debug.data_dump.filter", 3, TypeError),
        ("debug.data_dump.filter", ["add*", 3], TypeError),
        ("post_grad_custom_pre_pass", "pass", TypeError),
        ("debug.data_dump.path", 5, TypeError),
        ("fusion_config.fusion_switch_file", "/nowhere/at/all", FileNotFoundError),
        ("dump_config.dump_path", "/nowhere/at/all", FileNotFoundError),
        ("export.export_path_dir", "/nowhere/at/all", FileNotFoundError),
        ("inner_backend", None, TypeError),
    ],
)
def test_wrong_kind_of_value(config: CompilerConfig, path: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        config.set(path, value)


@pytest.mark.parametrize(
    ("section", "name", "near"),
    [
        ("debug.data_dump", "typ", "type"),
        ("debug.data_dump", "fliter", "filter"),
        ("debug", "data_dumps", "data_dump"),
        ("experimental_config", "frozen_parameters", "frozen_parameter"),
        ("ge_config", "oo_levels", "oo_level"),
        ("", "modes", "mode"),
    ],
)
def test_unknown_option_is_refused_with_the_nearest_name(
    config: CompilerConfig, section: str, name: str, near: str
) -> None:
    owner: object = config
    for part in filter(None, section.split(".")):
        owner = getattr(owner, part)
    for error in (ValueError, AttributeError, OptionError):
        with pytest.raises(error, match=f'"{name}".*"{near}"'):
            setattr(owner, name, 1)
    with pytest.raises(AttributeError, match=near):
        getattr(owner, name)
    with pytest.raises(OptionError):
        delattr(owner, name)


def test_group_cannot_be_overwritten(config: CompilerConfig) -> None:
    with pytest.raises(ValueError, match="group"):
        config.debug = None
    with pytest.raises(ValueError, match="group"):
        config.debug.data_dump = config.debug.graph_dump
    other = CompilerConfig()
    other.debug.data_dump.type = "npy"
    config.debug = other.debug
    assert config.debug.data_dump.enabled


def test_type_none_switches_off(config: CompilerConfig) -> None:
    assert not config.debug.data_dump.enabled
    config.debug.data_dump.type = "stats"
    assert config.debug.data_dump.enabled
    config.debug.data_dump.type = None
    assert not config.debug.data_dump.enabled
    config.debug.data_dump.type = "npy"
    del config.debug.data_dump.type
    assert not config.debug.data_dump.enabled


def test_path_is_made_real(config: CompilerConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    config.debug.data_dump.path = "./link/../link/x"
    assert config.debug.data_dump.path == str(tmp_path.resolve() / "real" / "x")
    config.debug.data_dump.path = Path("link")
    assert config.debug.data_dump.path == str((tmp_path / "real").resolve())
    assert CompilerConfig().debug.data_dump.path is None


def test_option_value_reads_as_torchairs(config: CompilerConfig) -> None:
    mode = config.mode
    assert isinstance(mode, OptionValue)
    assert mode.value == mode.default == "max-autotune"
    assert mode.optional == ["max-autotune", "reduce-overhead"]
    assert mode == "max-autotune" and mode != "x" and str(mode) == "max-autotune" and hash(mode) == hash("max-autotune")
    assert config.debug.data_dump.type.value is None and not config.debug.data_dump.type
    assert config.debug.aclgraph.static_capture_size_limit.value == "64"
    assert config.debug.fx_summary.skip_compile and config.debug.fx_summary.skip_compile.value == "1"
    assert config.debug.data_dump.dedup is True and config.debug.data_dump.queue_bytes == 1 << 30
    assert config.debug.data_dump.filter is None


def leaves(tree: Tree, prefix: str = "") -> list[tuple[str, Option]]:
    found = []
    for name, entry in tree.items():
        found += [(prefix + name, entry)] if isinstance(entry, Option) else leaves(entry, f"{prefix}{name}.")
    return found


def test_every_default_is_legal_and_every_option_reachable(config: CompilerConfig) -> None:
    assert len(leaves(TREE)) > 60
    for path, option in leaves(TREE):
        assert config.get(path) == option.default
        if option.valid is not None:
            for value in option.valid:
                config.set(path, value)
                assert config.get(path) == value


def test_copies_are_independent_and_equal(config: CompilerConfig, tmp_path: Path) -> None:
    config.debug.data_dump.type = "npy"
    config.debug.data_dump.path = tmp_path
    for other in (config.copy(), copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert other == config
        other.debug.data_dump.type = None
        other.mode = "reduce-overhead"
        assert config.debug.data_dump.enabled and config.mode == "max-autotune" and other != config
    assert config != 3


def test_without_effect_names_what_only_torchair_does(config: CompilerConfig) -> None:
    config.debug.data_dump.type = "npy"
    config.experimental_config.frozen_parameter = True
    config.ge_config.oo_level = "O3"
    config.mode = "reduce-overhead"
    assert config.without_effect() == ["experimental_config.frozen_parameter", "mode"]


def test_short_paths(config: CompilerConfig) -> None:
    config.set("data_dump.type", "npy")
    config.set("run_eagerly", True)
    assert config.get("debug.data_dump.type") == "npy" and config.get("run_eagerly") is True
    for path in ("data_dump", "data_dump.kind", "nothing.type", "debug.data_dump.type.x"):
        with pytest.raises(OptionError):
            config.set(path, "npy")


def test_help_in_the_prompt(config: CompilerConfig) -> None:
    assert {"type", "path", "filter", "dedup"} <= set(dir(config.debug.data_dump))
    config.debug.data_dump.type = "npy"
    assert "debug.data_dump.type='npy'" in repr(config)


class TestEnvironment:
    def test_each_variable_sets_its_option(self, tmp_path: Path) -> None:
        environ = {
            "FXTAP_TYPE": "stats",
            "FXTAP_PATH": str(tmp_path),
            "FXTAP_FILTER": "add*, *attn*",
            "FXTAP_CUSTOM_OPS": "1",
            "FXTAP_DEDUP": "off",
            "FXTAP_SYNC": "true",
            "FXTAP_QUEUE_BYTES": "64MiB",
            "FXTAP_THREADS": "2",
            "FXTAP_VERIFY_EVERY": "100",
            "FXTAP_ON_ERROR": "warn",
            "FXTAP_GRAPH_TYPE": "py",
            "FXTAP_GRAPH_PATH": str(tmp_path),
            "FXTAP_SUMMARY_TYPE": "csv",
            "FXTAP_SUMMARY_PATH": str(tmp_path),
            "FXTAP_SUMMARY_SKIP_COMPILE": "0",
            "FXTAP_SUMMARY_LANGUAGE": "en",
            "FXTAP_RUN_EAGERLY": "yes",
            "FXTAP_INNER_BACKEND": "eager",
        }
        assert set(environ) == set(VARIABLES)
        config = apply_environment(CompilerConfig(), environ)
        assert config.get("data_dump.type") == "stats" and config.get("data_dump.queue_bytes") == 64 << 20
        assert config.get("data_dump.dedup") is False and config.get("data_dump.sync") is True
        assert config.get("data_dump.threads") == 2 and config.get("inner_backend") == "eager"
        assert callable(config.get("data_dump.filter"))
        assert set(config.set_options()) == {path for path, _ in VARIABLES.values()}

    def test_nothing_set_changes_nothing(self) -> None:
        assert apply_environment(CompilerConfig(), {"FXTAP_TYPE": "", "PATH": "/bin"}) == CompilerConfig()
        assert not apply_environment(CompilerConfig(), {"FXTAP_TYPE": "none"}).debug.data_dump.enabled

    @pytest.mark.parametrize(
        ("variable", "text"),
        [
            ("FXTAP_TYPE", "txt"),
            ("FXTAP_DEDUP", "perhaps"),
            ("FXTAP_QUEUE_BYTES", "many"),
            ("FXTAP_QUEUE_BYTES", "-5"),
            ("FXTAP_THREADS", "x"),
            ("FXTAP_VERIFY_EVERY", "0"),
        ],
    )
    def test_bad_value_names_the_variable(self, variable: str, text: str) -> None:
        with pytest.raises(ValueError, match=f"{variable}={text}"):
            apply_environment(CompilerConfig(), {variable: text})
