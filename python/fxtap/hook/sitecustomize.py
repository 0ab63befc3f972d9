# ruff: noqa: PTH100, PTH120
# mypy: ignore-errors
"""Imported by Python as it starts, in the processes that a script under `fxtap run` starts.

It makes fxtap the default backend of torch.compile, when that is first called: a process that never compiles imports
nothing more. Then it makes way for the sitecustomize module that Python would have imported without it. Any version of
Python may come here, with torch and fxtap or without.
"""

import os
import sys


def _make_way():
    """Import the sitecustomize module that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    hidden = sys.modules.pop(__name__, None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        sys.modules[__name__] = hidden
        if getattr(error, "name", __name__) != __name__:
            raise


def _prepare(torch):
    """Have the first call of torch.compile bring fxtap in."""
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
    """Waits for the import of torch, among the finders of sys.meta_path."""

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
            del loader.exec_module  # the class has its own
            execute(module)
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
            if hasattr(module, "compile"):
                _prepare(module)

        loader.exec_module = exec_module


if sys.version_info >= (3, 11) and os.environ.get("FXTAP_RUN"):
    sys.meta_path.insert(0, _TorchFinder())
_make_way()
