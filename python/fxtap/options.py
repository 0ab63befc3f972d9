"""The table of options: names, defaults and valid values.

Names, defaults and valid values are those of TorchAir's `CompilerConfig`, from its public sources and manual, so that a
configuration written for it works unchanged. Options that only fxtap has are marked `own`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .paths import expand

INT64_MAX = 2**63 - 1


@dataclass(frozen=True)
class Option:
    """One option of the configuration.

    Attributes
    ----------
    default
        The value until it is set.
    valid
        The valid values; None if any value is valid.
    check
        Called with a new value after the test against `valid`; returns the value to store. It raises ValueError,
        TypeError or FileNotFoundError, as TorchAir does for the option.
    own
        Only fxtap has the option. Reading it returns the plain value.
    works
        It has an effect in fxtap. Other options are passed to the real TorchAir if that runs the graph.
    plain
        Reading it returns the plain value, as in TorchAir, not an `OptionValue`.
    """

    default: Any = None
    valid: tuple[Any, ...] | None = None
    check: Callable[[Any], Any] | None = None
    own: bool = False
    works: bool = False
    plain: bool = False


def real_path(value: Any) -> str:
    """Return `os.path.realpath` of a path after expanding "~"; TypeError for anything else."""
    return os.fsdecode(os.path.realpath(expand(value)))


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def check(value: Any) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError(f"expected an integer, not {value!r}")
        if not low <= value <= high:
            raise ValueError(f"{value} is outside {low} to {high}")
        return value

    return check


def _of_type(*types: type, what: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if value is not None and not isinstance(value, types):
            raise TypeError(f"expected {what} or None, not {value!r}")
        return value

    return check


def _callable(value: Any) -> Any:
    if value is not None and not callable(value):
        raise TypeError(f"expected a callable or None, not {value!r}")
    return value


def _filter(value: Any) -> Any:
    from .selection import glob_filter

    if isinstance(value, str):
        return glob_filter(*(part.strip() for part in value.split(",") if part.strip()))
    if isinstance(value, (list, tuple)):
        return glob_filter(*value)
    return _callable(value)


def _integers(value: Any) -> Any:
    if value is None:
        return []
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, int) for item in value):
        raise TypeError(f"expected a list of integers or None, not {value!r}")
    return value


def _file(value: Any) -> Any:
    value = expand(value)
    if value is not None and not Path(value).is_file():
        raise FileNotFoundError(f"no such file: {value!r}")
    return value


def _json_file(value: Any) -> Any:
    if value == "":
        raise ValueError("expected the name of a .json file, not ''")
    if value is not None and not str(value).endswith(".json"):
        raise FileNotFoundError(f"{value!r} is not a .json file")
    return _file(value)


def _folder(value: Any) -> Any:
    value = expand(value)
    if value is None or not Path(value).is_dir():
        raise FileNotFoundError(f"no such folder: {value!r}")
    return value


def _matching(pattern: str, example: str) -> Callable[[Any], Any]:
    compiled = re.compile(pattern)

    def check(value: Any) -> Any:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError(f"{value!r} does not have the form {example!r}")
        return value

    return check


def _backend(value: Any) -> Any:
    if not isinstance(value, str) and not callable(value):
        raise TypeError(f"expected the name of a torch.compile backend or a callable, not {value!r}")
    return value


_SWITCH = (True, False)


def _off() -> Option:
    return Option(False, _SWITCH)


def _on() -> Option:
    return Option(True, _SWITCH)


def _own_switch(default: bool) -> Option:
    return Option(default, _SWITCH, own=True, works=True)


Tree = dict[str, "Option | Tree"]

_GRAPH_DUMP: Tree = {
    "type": Option(None, (None, "txt", "pbtxt", "py"), works=True),
    "path": Option(None, check=real_path, works=True, plain=True),
}

_DATA_DUMP: Tree = {
    "type": Option(None, (None, "npy", "stats", "verify"), works=True),
    "path": Option(None, check=real_path, works=True, plain=True),
    "filter": Option(None, check=_filter, works=True, plain=True),
    "custom_ops": _own_switch(False),
    "dedup": _own_switch(True),
    "sync": _own_switch(False),
    "queue_bytes": Option(1 << 30, check=_integer(1, INT64_MAX), own=True, works=True),
    "threads": Option(0, check=_integer(0, 256), own=True, works=True),
    "verify_every": Option(1, check=_integer(1, INT64_MAX), own=True, works=True),
    "on_error": Option("raise", ("raise", "warn"), own=True, works=True),
}

_FX_SUMMARY: Tree = {
    "type": Option(None, (None, "csv"), works=True),
    "skip_compile": Option(True, _SWITCH, works=True),
    "path": Option(None, check=real_path, works=True, plain=True),
    "language": Option("zh", ("zh", "en"), own=True, works=True),
}

_DEBUG: Tree = {
    "graph_dump": _GRAPH_DUMP,
    "data_dump": _DATA_DUMP,
    "fx_summary": _FX_SUMMARY,
    "run_eagerly": Option(False, _SWITCH, works=True),
    "aclgraph": {
        "disable_reinplace_inplaceable_ops_pass": _off(),
        "disable_reinplace_input_mutated_ops_pass": _off(),
        "disable_mempool_reuse_in_same_fx": _off(),
        "enable_output_clone": _off(),
        "static_capture_size_limit": Option(64, check=_integer(1, INT64_MAX)),
        "clone_input": _on(),
        "remove_cat_ops": _on(),
    },
}

_EXPERIMENTAL: Tree = {
    "cc_parallel_enable": _off(),
    "keep_inference_input_mutations": Option(True, _SWITCH, works=True),
    "memory_efficiency": _off(),
    "frozen_parameter": _off(),
    "static_model_ops_lower_limit": Option(None, check=_integer(-1, INT64_MAX)),
    "jit_compile": Option("auto", ("auto",)),
    "npu_fx_pass": _off(),
    "aot_config_enable_joint_graph": _off(),
    "aot_config_output_loss_index": Option(0),
    "enable_single_stream": _off(),
    "topology_sorting_strategy": Option("DFS", ("BFS", "DFS", "RDFS", "StableRDFS")),
    "enable_ref_data": _off(),
    "enable_view_optimize": _on(),
    "remove_noop_ops": _on(),
    "tiling_schedule_optimize": _off(),
    "pattern_fusion_pass": _on(),
    "aclgraph": {
        "_aclnn_static_shape_kernel": _off(),
        "_aclnn_static_shape_kernel_build_dir": Option(None, check=_of_type(str, what="a string")),
        "_aclnn_static_shape_kernel_sym_value_range": Option(None, check=_integers),
        "_aclnn_static_shape_kernel_sym_index": Option(0, check=_integer(0, INT64_MAX)),
        "_super_kernel_optimize": _off(),
        "_super_kernel_optimize_options": Option(None, check=_of_type(dict, what="a dict")),
        "_super_kernel_debug_options": Option(None, check=_of_type(dict, what="a dict")),
    },
}

_EXPORT: Tree = {
    "export_mode": _off(),
    "export_path_dir": Option("./", check=_folder),
    "export_name": Option(plain=True),
    "weight_name": Option(plain=True),
    "inputs_name": Option(plain=True),
    "experimental": {
        "enable_record_nn_module_stack": _off(),
        "auto_atc_config_generated": _off(),
        "enable_lite_export": _off(),
    },
    "enable_save_load_mode": _off(),
}

_DUMP_CONFIG: Tree = {
    "enable_dump": _off(),
    "dump_path": Option("./", check=_folder),
    "dump_mode": Option("all", ("input", "output", "all")),
    "quant_dumpable": _off(),
    "dump_step": Option("", check=_matching(r"(\d+(-\d+)?(\|\d+(-\d+)?)*\|?)?", "0|1|2-5|6")),
    "dump_layer": Option("", check=_matching(r'[0-9a-zA-Z_" /\\.]*', "Mul_1 Add1 Conv2D_1")),
    "dump_data": Option("tensor", ("tensor", "stats")),
    "dump_config_path": Option(None, check=_json_file),
    "data_dump_stage": Option("optimized", ("original", "optimized")),
}

TREE: Tree = {
    "debug": _DEBUG,
    "aoe_config": {
        "aoe_mode": Option(None, ("1", "2")),
        "work_path": Option("./"),
        "aoe_config_file": Option(None),
    },
    "export": _EXPORT,
    "dump_config": _DUMP_CONFIG,
    "fusion_config": {"fusion_switch_file": Option(None, check=_file)},
    "experimental_config": _EXPERIMENTAL,
    "inference_config": {"dynamic_gears_merge_policy": Option("zip", ("zip", "product"))},
    "ge_config": {
        "enable_single_stream": _off(),
        "oo_level": Option("O3", ("O1", "O3")),
        "oo_constant_folding": Option(None, _SWITCH),
        "oo_dead_code_elimination": Option(None, _SWITCH),
        "export_compile_stat": Option("2", ("0", "1", "2")),
        "aicore_num": Option(None),
        "optimization_switch": Option(None),
    },
    "aclgraph_config": {
        "use_custom_pool": Option(plain=True),
        "kernel_aot_optimization": _off(),
        "kernel_aot_optimization_build_dir": Option(plain=True),
    },
    "npugraphex_config": {},
    "mode": Option("max-autotune", ("max-autotune", "reduce-overhead")),
    "post_grad_custom_pre_pass": Option(None, check=_callable),
    "post_grad_custom_post_pass": Option(None, check=_callable),
    "inner_backend": Option("inductor", check=_backend, own=True, works=True),
}
"""All options. A nested dict is a section: `config.debug.data_dump.type`."""
