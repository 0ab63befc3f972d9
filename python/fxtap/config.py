"""Configuration classes with TorchAir's names and behaviour, based on the table in `fxtap.options`."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .options import TREE, Option, Tree

if TYPE_CHECKING:
    from .verification.live import Live
    from .verification.report import Verification

__all__ = ["CompilerConfig", "OptionError", "OptionValue", "Section"]


class OptionError(ValueError, AttributeError):
    """An unknown option; the message suggests the nearest name."""


class OptionValue:
    """The value of one of TorchAir's options, with its default and valid values.

    Comparison, truth and printing are those of the plain value.

    Attributes
    ----------
    raw
        The value as it was set.
    default
        The default value.
    optional
        The valid values, or None if any value is valid.
    """

    __slots__ = ("default", "optional", "raw")

    def __init__(self, raw: Any, default: Any, optional: list[Any] | None) -> None:
        self.raw = raw
        self.default = default
        self.optional = optional

    @property
    def value(self) -> Any:
        """The value as TorchAir passes it on: booleans as "1" and "0", numbers as text, None as None."""
        if self.raw is None or callable(self.raw) or isinstance(self.raw, (list, tuple, dict)):
            return self.raw
        if isinstance(self.raw, bool):
            return "1" if self.raw else "0"
        return str(self.raw)

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __eq__(self, other: object) -> bool:
        return bool(self.raw == (other.raw if isinstance(other, OptionValue) else other))

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return repr(self.raw)

    def __str__(self) -> str:
        return str(self.raw)


def _unknown(section: Section, key: str) -> OptionError:
    names = list(section._tree)
    near = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
    hint = f'did you mean "{near[0]}"? ' if near else ""
    where = section._prefix.rstrip(".") or "config"
    return OptionError(f'{where} has no option "{key}"; {hint}(its options are {", ".join(names) or "none"})')


class Section:
    """A group of options; reads and writes are checked against the table."""

    __slots__ = ("_prefix", "_sections", "_tree", "_values")

    def __init__(self, tree: Tree, prefix: str = "config.") -> None:
        object.__setattr__(self, "_tree", tree)
        object.__setattr__(self, "_prefix", prefix)
        object.__setattr__(self, "_values", {})
        sections = {
            name: Section(entry, f"{prefix}{name}.") for name, entry in tree.items() if not isinstance(entry, Option)
        }
        object.__setattr__(self, "_sections", sections)

    _tree: Tree
    _prefix: str
    _values: dict[str, Any]
    _sections: dict[str, Section]

    def __getattr__(self, name: str) -> Any:
        if name in Section.__slots__ or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)
        if name in self._sections:
            return self._sections[name]
        entry = self._tree.get(name)
        if not isinstance(entry, Option):
            if name == "enabled" and "type" in self._tree:
                return self._values.get("type") is not None
            raise _unknown(self, name)
        raw = self._values.get(name, entry.default)
        if entry.own or entry.plain:
            return raw
        return OptionValue(raw, entry.default, None if entry.valid is None else list(entry.valid))

    def __setattr__(self, name: str, value: Any) -> None:
        entry = self._tree.get(name)
        if entry is None:
            raise _unknown(self, name)
        if not isinstance(entry, Option):
            if not isinstance(value, Section) or value._tree is not entry:
                raise ValueError(f"{self._prefix}{name} is a group of options and cannot be set to {value!r}")
            self._sections[name] = value
            return
        if isinstance(value, OptionValue):
            value = value.raw
        if entry.valid is not None and value not in entry.valid and value != entry.default:
            raise ValueError(f"{self._prefix}{name}: {value!r} is not one of {list(entry.valid)!r}")
        if entry.check is not None and not (value is None and entry.default is None and entry.plain):
            try:
                value = entry.check(value)
            except (ValueError, TypeError, FileNotFoundError) as error:
                raise type(error)(f"{self._prefix}{name}: {error}") from None
        self._values[name] = value

    def __delattr__(self, name: str) -> None:
        if not isinstance(self._tree.get(name), Option):
            raise _unknown(self, name)
        self._values.pop(name, None)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._tree]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Section) or other._tree is not self._tree:
            return NotImplemented
        return dict(self._leaves()) == dict(other._leaves())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        changed = ", ".join(f"{path}={value!r}" for path, value in self._set_values())
        return f"<{type(self).__name__} {self._prefix.rstrip('.')}{': ' if changed else ''}{changed}>"

    def __getstate__(self) -> dict[str, Any]:
        return {"prefix": self._prefix, "values": self._values, "sections": self._sections}

    def __setstate__(self, state: dict[str, Any]) -> None:
        tree: Any = TREE
        for part in state["prefix"].split(".")[1:-1]:
            tree = tree[part]
        object.__setattr__(self, "_tree", tree)
        object.__setattr__(self, "_prefix", state["prefix"])
        object.__setattr__(self, "_values", state["values"])
        object.__setattr__(self, "_sections", state["sections"])

    def _entries(self) -> Iterator[tuple[str, Option, Section, str]]:
        """Yield, for every option below: its full path, the option, its section, its name in the section."""
        prefix = self._prefix.partition(".")[2]
        for name, entry in self._tree.items():
            if isinstance(entry, Option):
                yield f"{prefix}{name}", entry, self, name
            else:
                yield from self._sections[name]._entries()

    def _leaves(self) -> Iterator[tuple[str, Any]]:
        for path, entry, section, name in self._entries():
            yield path, section._values.get(name, entry.default)

    def _set_values(self) -> Iterator[tuple[str, Any]]:
        for path, _, section, name in self._entries():
            if name in section._values:
                yield path, section._values[name]


class CompilerConfig(Section):
    """The configuration of a backend, like TorchAir's class of the same name.

    Examples
    --------
    >>> config = CompilerConfig()
    >>> config.debug.data_dump.type = "npy"
    >>> config.debug.data_dump.path = "./dump"
    >>> config.debug.data_dump.enabled
    True
    >>> config.debug.data_dump.typ = "npy"
    Traceback (most recent call last):
        ...
    fxtap.config.OptionError: config.debug.data_dump has no option "typ"; did you mean "type"? ...

    Notes
    -----
    `docs/usage.md` lists all options. Assigning to an unknown name raises `OptionError`, an invalid value ValueError.
    """

    __slots__ = ("_verifications",)

    def __init__(self) -> None:
        super().__init__(TREE)
        object.__setattr__(self, "_verifications", [])

    _verifications: list[Live]  # shared with the copies

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        object.__setattr__(self, "_verifications", [])

    @property
    def verification(self) -> Verification | None:
        """What dumps of type "verify" with this configuration, or a copy, have found so far; None if there is none."""
        from .verification.report import Verification  # imported late: it needs torch, reading a configuration does not

        shards = [shard for live in self._verifications for shard in live.shards()]
        return Verification.merge(shards) if shards else None

    def add_verification(self, live: Live) -> None:
        """Note a dump of type "verify" that was opened with this configuration."""
        if live not in self._verifications:
            self._verifications.append(live)

    def get(self, path: str) -> Any:
        """Return the plain value of an option by its dotted path, such as "debug.data_dump.type"."""
        section, name = self._locate(path)
        value = getattr(section, name)
        return value.raw if isinstance(value, OptionValue) else value

    def set(self, path: str, value: Any) -> None:
        """Set an option by its dotted path. "data_dump.type" means "debug.data_dump.type"."""
        section, name = self._locate(path)
        setattr(section, name, value)

    def copy(self) -> CompilerConfig:
        """Return a shallow copy."""
        other = CompilerConfig()
        object.__setattr__(other, "_verifications", self._verifications)
        for path, value in self._set_values():
            section, name = other._locate(path)
            section._values[name] = value
        return other

    def set_options(self) -> dict[str, Any]:
        """Return the options that were set: path -> value."""
        return dict(self._set_values())

    def without_effect(self) -> list[str]:
        """Return the paths of the options that were set and have no effect in fxtap itself."""
        return [
            path
            for path, entry, section, name in self._entries()
            if not entry.works and section._values.get(name, entry.default) != entry.default
        ]

    def _locate(self, path: str) -> tuple[Section, str]:
        *groups, name = path.split(".")
        first = groups[0] if groups else name
        section: Section = self
        if first not in self._tree and first in self.debug._tree:
            section = self.debug
        for group in groups:
            if group not in section._sections:
                raise _unknown(section, group)
            section = section._sections[group]
        if not isinstance(section._tree.get(name), Option):
            raise _unknown(section, name)
        return section, name
