"""Check that nothing in the library depends on the locale that the process around it has chosen.

A program may have called ``setlocale``: with a decimal comma ``strtod`` reads "0.5" as 0 and ``printf`` writes "0,5";
``isalpha`` and ``strcasecmp`` go by the language. So shared objects (arguments) may not ask for such functions, and no
format of the sources writes a floating-point number: src/util/number.c does that, for everybody.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN = re.compile(
    r"""(__isoc\d+_)?(
        strto(d|f|ld|l|ll|ul|ull|imax|umax) | ato(i|l|ll|f) | v?[fsw]?w?scanf
        | __ctype_(b|tolower|toupper)_loc | is(alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)
        | to(lower|upper) | isw\w+ | tow(lower|upper|ctrans) | wctype | wctrans
        | strn?casecmp | strcasestr | wcsn?casecmp | strcoll | strxfrm | wcscoll | wcsxfrm
        | strftime | strptime | wcsftime | strfmon | getdate | fnmatch | regcomp | regexec
        | setlocale | uselocale | localeconv | nl_langinfo | rpmatch
        | mblen | mbrlen | mbr?towc | mbs(n?r)?towcs | wcr?tomb | wcs(n?r)?tombs | wcwidth | wcswidth | btowc | wctob
        | v?[fsd]?wprintf | v?swprintf
    )""",
    re.VERBOSE,
)
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
FLOATING = re.compile(r"%[-+#0']*(?:\*|\d+)?(?:\.(?:\*|\d*))?[lL]?[fFeEgGaA]")
WRITES_NUMBERS = Path("src/util/number.c")


def symbol_faults(path: str) -> list[str]:
    """Undefined symbols of a shared object that go by the locale."""
    command = ["nm", "--dynamic", "--undefined-only", "--format=just-symbols", path]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.split("@")[0].strip() for line in out.splitlines()}
    return [f"{path}: {name}() depends on the locale" for name in sorted(names) if FORBIDDEN.fullmatch(name)]


def format_faults(path: Path, text: str) -> list[str]:
    """Lines of a C file with a string that looks like a format of a floating-point number."""
    if path == WRITES_NUMBERS:
        return []
    return [
        f"{path}:{number}: {match[0]} writes the locale's decimal point: use src/util/number.h"
        for number, line in enumerate(text.splitlines(), 1)
        for string in STRING.findall(line)
        for match in FLOATING.finditer(string.replace("%%", ""))
    ]


def main() -> int:
    """Print every fault; the exit status says whether there was one."""
    faults = [fault for path in sys.argv[1:] for fault in symbol_faults(path)]
    for folder in ("src", "python/ext", "include"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            faults += format_faults(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    print("\n".join(faults) or "locale: nothing depends on it")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
