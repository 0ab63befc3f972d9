"""Add up what scripts/coverage measured: covered lines of each folder, and a list of the others.

usage: sum_coverage.py PYTHON_JSON BUILD...   coverage.py's report; folders with gcov's data

The library is compiled into several programs: a line counts as covered if one of them ran it.
"""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

Lines = dict[str, dict[int, bool]]
FOLDERS = ("src", "programs", "python/ext")


def read_gcov(folder: Path, top: Path, lines: Lines) -> None:
    """Add gcov's counts of all objects below a build folder to `lines`."""
    data = [str(path.resolve()) for path in sorted(folder.rglob("*.gcno"))]
    command = ["gcov", "--json-format", "--stdout", *data]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder)
    for report in done.stdout.splitlines():
        for file in json.loads(report)["files"]:
            path = Path(folder.resolve(), file["file"]).resolve()
            if not path.is_relative_to(top) or not str(path.relative_to(top)).startswith(FOLDERS):
                continue
            known = lines[str(path.relative_to(top))]
            for line in file["lines"]:
                number = line["line_number"]
                known[number] = known.get(number, False) or line["count"] > 0


def main() -> None:
    """Print the table and write the list."""
    top = Path(__file__).resolve().parent.parent
    lines: Lines = defaultdict(dict)
    for folder in sys.argv[2:]:
        read_gcov(Path(folder), top, lines)
    for name, file in json.loads(Path(sys.argv[1]).read_text())["files"].items():
        known = lines[f"python/fxtap/{Path(name).name}"]
        known |= dict.fromkeys(file["executed_lines"], True) | dict.fromkeys(file["missing_lines"], False)
    folders: dict[str, list[bool]] = defaultdict(list)
    for name, known in lines.items():
        parts = Path(name).parts
        folders["/".join(parts[: 1 if parts[0] == "programs" else 2])] += known.values()
    folders["all"] = [is_covered for known in lines.values() for is_covered in known.values()]
    for name, covered in folders.items():
        print(f"{name:14} {len(covered):6} lines {100 * sum(covered) / len(covered):6.1f} % covered")
    uncovered = Path(sys.argv[2]) / "uncovered"
    with uncovered.open("w") as out:
        for name in sorted(lines):
            missing = sorted(number for number, is_covered in lines[name].items() if not is_covered)
            out.writelines(f"{name}:{number}\n" for number in missing)


if __name__ == "__main__":
    main()
