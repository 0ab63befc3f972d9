"""The verification's page in a real browser: renders without errors, plots, searches, and shows names as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import fxtap
from browser import Browser, find_chromium
from fxtap import _core
from replayed import dump, example, model, scaled, wrong_gelu

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no chromium")

HOSTILE = "a</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">&amp;"
SHOWN = "document.querySelector('#shown').textContent"
HEADLINE = "document.querySelector('#headline').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile"), "--window-size=1280,1000") as found:
        yield found


def page(folder: Path, wrong: set[int], name: str = "gelu") -> Path:
    """Write the page of forty operators."""
    verification = _core.Verification("good", name)
    x = np.linspace(1, 2, 64)
    for i in range(40):
        saved = x.astype("float32")
        saved[5] *= 1.5 if i in wrong else 1
        verdict = verification.judge(saved, "float32", x, no_third=True, spread=np.zeros(64), spread_runs=15)
        source = (name, 12, "forward", name)
        verification.add(
            0, 1, 0, f"{name}_{i}", "aten.gelu.default", "OUTPUT 0", source, name, "float32", (8, 8), verdict, order=i
        )
    path = folder / "verify.html"
    path.write_bytes(verification.print(4))
    return path


def test_wrong_operators(browser: Browser, tmp_path: Path) -> None:
    browser.messages.clear()
    browser.open(page(tmp_path, {3, 5, 8, 9, 30}))
    assert browser.messages == []
    assert browser.value(HEADLINE) == "Wrong: gelu_3"
    assert browser.value("document.querySelectorAll('#wrong .origin').length") == 4
    assert browser.value("document.querySelector('#wrong summary').textContent") == "1 more"
    worst = browser.value("[...document.querySelectorAll('#wrong .origin dd')].map(d => d.textContent)")
    assert "at [0, 5]: saved 1.619, exact 1.079" in worst
    assert browser.value(SHOWN) == "40 of 40 operators"
    painted = "[...$('plot').getContext('2d').getImageData(0, 0, $('plot').width, $('plot').height).data].some(v => v)"
    assert browser.value(painted)


def test_search_sort_and_choose(browser: Browser, tmp_path: Path) -> None:
    browser.open(page(tmp_path, {3, 5}))
    browser.value("$('search').value = 'gelu_31'; $('search').dispatchEvent(new Event('input')); 1")
    assert browser.value(SHOWN) == "1 of 40 operators"
    browser.value("$('search').value = ''; $('search').dispatchEvent(new Event('input')); 1")
    browser.value("[...document.querySelectorAll('#chips button')].find(b => b.textContent.includes('wrong')).click()")
    assert browser.value(SHOWN) == "2 of 40 operators"
    browser.value("[...document.querySelectorAll('#chips button')].find(b => b.textContent.includes('wrong')).click()")
    browser.value("[...document.querySelectorAll('#head th')].find(h => h.textContent === 'error').click()")
    rows = "[...document.querySelectorAll('#rows tr')].filter(r => r.children.length)"
    first = browser.value(f"{rows}.slice(0, 2).map(r => r.children[0].textContent)")
    assert first == ["gelu_3", "gelu_5"]
    browser.value(f"{rows}[0].click()")
    assert "saved 1.619, exact 1.079" in browser.value("document.querySelector('#detail').textContent")


def test_nothing_wrong(browser: Browser, tmp_path: Path) -> None:
    browser.messages.clear()
    browser.open(page(tmp_path, set()))
    assert browser.messages == []
    assert browser.value(HEADLINE) == "Nothing wrong"
    assert browser.value("document.querySelectorAll('#wrong .origin').length") == 0


def test_names_are_text(browser: Browser, tmp_path: Path) -> None:
    browser.messages.clear()
    browser.open(page(tmp_path, {3}, HOSTILE))
    assert browser.messages == []
    assert browser.value("document.title") == "fxtap verify: wrong"
    assert browser.value(HEADLINE) == f"Wrong: {HOSTILE}_3"


@pytest.mark.parametrize(
    ("name", "dtype", "headline", "wrong"),
    [
        ("rounding", torch.bfloat16, "Different, but nothing is wrong: all is rounding", []),
        ("wrong", torch.float32, "Different, and 1 operator is wrong: gelu_1", ["gelu_1  "]),
    ],
)
def test_comparison_with_its_verification(
    browser: Browser, tmp_path: Path, name: str, dtype: torch.dtype, headline: str, wrong: list[str]
) -> None:
    dump(tmp_path / "golden", model, [example()])
    dump(tmp_path / "target", model, [example(dtype)], wrong_gelu(scaled(1.1)) if wrong else None)
    found = fxtap.compare(tmp_path / "golden", tmp_path / "target", verify=True)
    browser.messages.clear()
    browser.open(found.save(tmp_path / f"{name}.html"))
    assert browser.messages == []
    assert browser.value(HEADLINE) == headline
    heads = browser.value("[...document.querySelectorAll('#origins h2')].map(h => h.textContent)")
    assert heads == ["Wrong", "Where it began"][not wrong :]
    cards = browser.value("[...document.querySelectorAll('#origins .origin h3')].map(h => h.firstChild.textContent)")
    assert cards[: len(wrong)] == wrong
    shown = browser.value("pairs.map(p => [p[P.name], p[P.verified]]).filter(p => p[1] !== null)")
    assert sorted(shown) == sorted([pair.name, pair.verified] for pair in found.pairs if pair.verified is not None)
    browser.value("$('search').value = 'gelu_1 output wrong'; $('search').dispatchEvent(new Event('input')); 1")
    assert browser.value(SHOWN).startswith(f"{len(wrong)} of ")
