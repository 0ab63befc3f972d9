# ruff: noqa: PTH100, PTH120
# mypy: ignore-errors
"""Imported at the startup of Python processes under `fxtap run`.

It makes fxtap the default backend of torch.compile at its first call; a process that never compiles imports nothing
else. It then imports the sitecustomize module that Python would have imported without it. Any version of Python may
import this file, with or without torch and fxtap.
"""

import os
import sys


def _import_shadowed():
    """Import the sitecustomize module that this one shadows."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    this_module = sys.modules.pop(__name__, None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        sys.modules[__name__] = this_module
        if getattr(error, "name", __name__) != __name__:
            raise


def _prepare(torch):
    """Make the first call of torch.compile import fxtap."""
    import functools

    original = torch.compile
    done = []

    @functools.wraps(original)
    def compile_first(*args, **kwargs):
        if not done:
            done.append(True)
            torch.compile = original
            try:
                from fxtap.default import become_default
                from fxtap.notice import RunWatch
            except ImportError as error:
                line = "fxtap: nothing is dumped in process %d: %s cannot import fxtap: %s\n"
                sys.stderr.write(line % (os.getpid(), sys.executable, error))
            else:
                become_default(RunWatch())
        return torch.compile(*args, **kwargs)

    torch.compile = compile_first


class _TorchFinder:
    """A finder in sys.meta_path that detects the import of torch."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                self._watch(spec.loader)
                return spec
        return None

    def _watch(self, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None:  # a folder called torch, without code
            return

        def exec_module(module):
            del loader.exec_module  # uncovers that of the class
            execute(module)
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
            if hasattr(module, "compile"):
                _prepare(module)

        loader.exec_module = exec_module


if sys.version_info >= (3, 11) and os.environ.get("FXTAP_RUN"):
    sys.meta_path.insert(0, _TorchFinder())
_import_shadowed()
