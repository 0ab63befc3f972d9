"""Commands and Python code in the Markdown files and manual pages."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent.parent
DOCUMENTS = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
PAGES = sorted((HOME / "docs" / "man").glob("*.1"))

COMMAND = re.compile(r"(?:\$ )?((?:FXTAP_\w+=\S+ )*(?:fxtap|python|sqlite3|torchrun|cmake|scripts/\w+) (?:.*\\\n)*.*)")


@dataclass(frozen=True)
class Piece:
    """A command or code: `kind` is "shell", "python" or a block's language; `name` is its location."""

    name: str
    kind: str
    text: str


def blocks(text: str) -> list[tuple[int, str, str]]:
    """Return line number, language ("" if none is given) and text of each fenced or indented block."""
    found: list[tuple[int, str, str]] = []
    for match in re.finditer(r"^( *)```(\w*)\n(.*?)^\1```$|(?<=\n\n)((?: {4}[^\n]*\n|\n)+)", text, re.M | re.S):
        line = text.count("\n", 0, match.start()) + 1
        if match.group(4) is None:
            found.append((line, match.group(2), textwrap.dedent(match.group(3))))
        elif match.group(4).strip():
            found.append((line, "", textwrap.dedent(match.group(4))))
    return found


def is_python(text: str) -> bool:
    """Return whether a block without a language is Python: it parses, is more than a word, and is not TOML."""
    if text.startswith("[["):
        return False
    try:
        return any(not isinstance(node, ast.Expr | ast.AnnAssign) for node in ast.parse(text).body)
    except SyntaxError:
        return False


def commands(text: str) -> list[str]:
    """Return the commands of a block, without their output."""
    return [match.group(1) for match in re.finditer(rf"^{COMMAND.pattern}$", text, re.M)]


def of_document(path: Path) -> list[Piece]:
    """Return the pieces of a Markdown file. Two blocks separated by a blank line may parse as one: each part counts."""
    pieces = []
    for line, language, text in blocks(path.read_text("utf-8")):
        name = f"{path.name}:{line}"
        if language in ("", "sh"):
            parts = [text] if is_python(text) else text.split("\n\n")
            for part in parts:
                if is_python(part):
                    pieces.append(Piece(name, "python", part))
                elif part.startswith("[["):
                    pieces.append(Piece(name, "toml", part))
                else:
                    pieces += [Piece(name, "shell", command) for command in commands(part)]
        else:
            pieces.append(Piece(name, language, text))
    return pieces


def of_page(path: Path) -> list[Piece]:
    """Return the examples of a manual page."""
    _, _, section = path.read_text("utf-8").partition(".SH EXAMPLES\n")
    section = section.partition("\n.SH ")[0].replace("\\-", "-")
    return [Piece(path.name, "shell", text) for text in re.findall(r"^(?:\.[BI] )?(fxtap .*)$", section, re.M)]


def links(path: Path) -> list[str]:
    """Return the targets of a Markdown file's links and pictures that are in this tree."""
    found = re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8"))
    return [link for link in found if not re.match(r"\w+:", link)]
