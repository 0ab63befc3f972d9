"""The comparison's page in a real browser: renders without a complaint, searches, sorts, and keeps names text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from browser import Browser, find_chromium
from chains import write_chain
from program_run import Run

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="no chromium")

HOSTILE = "a<script>document.title='owned'<&#47;script><img src=x onerror=\"document.title='owned'\">&amp;"

ROWS = "[...document.querySelectorAll('#rows tr')].filter(r => r.children.length).map(r => r.children[0].textContent)"
SHOWN = "document.querySelector('#shown').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile"), "--window-size=1280,1000") as found:
        yield found


def make_page(run: Run, folder: Path, golden: Path, target: Path) -> Path:
    assert run("compare", golden, target, "-q", "--html", folder / "report.html", "--force").returncode in (0, 1)
    return folder / "report.html"


def search(browser: Browser, text: str) -> None:
    browser.value(f"$('search').value = {text!r}; $('search').dispatchEvent(new Event('input')); 1")


@pytest.fixture
def chain(run: Run, browser: Browser, tmp_path: Path) -> Browser:
    write_chain(tmp_path / "good")
    write_chain(tmp_path / "bad", wrong=4)
    browser.messages.clear()
    browser.open(make_page(run, tmp_path, tmp_path / "good", tmp_path / "bad"))
    return browser


def test_renders_without_a_complaint(chain: Browser) -> None:
    assert chain.messages == []
    assert chain.value("document.querySelector('#headline').textContent") == "Different: it began at mul_4"
    assert chain.value("document.querySelectorAll('.origin').length") == 1
    assert chain.value("document.querySelectorAll('.origin svg').length") == 1  # its histogram
    assert chain.value(SHOWN) == "20 of 20 pairs"
    assert chain.value(ROWS)[:2] == ["mul_0", "mul_0"]
    painted = "[...$('plot').getContext('2d').getImageData(0, 0, $('plot').width, $('plot').height).data].some(v => v)"
    assert chain.value(painted)


def test_search_finds(chain: Browser) -> None:
    search(chain, "mul_7 output")
    assert chain.value(SHOWN) == "1 of 20 pairs"
    assert chain.value(ROWS) == ["mul_7"]
    search(chain, "no such thing")
    assert chain.value(SHOWN) == "0 of 20 pairs"
    search(chain, "")
    chain.value(
        "[...document.querySelectorAll('#chips button')].find(b => b.textContent.includes('different')).click()"
    )
    assert chain.value(SHOWN) == "11 of 20 pairs"
    assert chain.messages == []


def test_columns_sort_both_ways(chain: Browser) -> None:
    column = "[...document.querySelectorAll('#head th')].find(h => h.textContent.startsWith('relative L2'))"
    index = f"[...$('head').children].indexOf({column})"
    rows = "[...document.querySelectorAll('#rows tr')].filter(r => r.children.length)"
    values = f"{rows}.map(r => r.children[{index}].textContent)"
    chain.value(f"{column}.click()")
    falling = [float(text) for text in chain.value(values)]
    assert falling == sorted(falling, reverse=True)
    assert falling[0] > 0
    chain.value(f"{column}.click()")
    assert [float(text) for text in chain.value(values)] == sorted(falling)
    assert chain.messages == []


def test_a_row_tells_more(chain: Browser) -> None:
    search(chain, "mul_4 output")
    chain.value("[...document.querySelectorAll('#rows tr')].find(r => r.children.length).click()")
    detail = chain.value("$('detail').textContent")
    assert "graph 1, step 0, OUTPUT 0" in detail
    assert re.search(r"golden .*, target ", detail)
    assert chain.messages == []


def test_a_malicious_name_stays_text(run: Run, browser: Browser, tmp_path: Path) -> None:
    for side, value in (("good", 1.0), ("bad", 2.0)):
        folder = tmp_path / side
        folder.mkdir()
        np.save(folder / f"{HOSTILE.replace('/', '')}.npy", np.full(3, value))
        np.save(folder / "<!--<script>.npy", np.full(3, value))
    browser.messages.clear()
    browser.open(make_page(run, tmp_path, tmp_path / "good", tmp_path / "bad"))
    assert browser.messages == []
    assert browser.value("document.title") == "fxtap: different"
    assert browser.value("document.querySelectorAll('img').length") == 0
    assert browser.value("document.scripts.length") == 2
    assert "<!--<script>.npy" in browser.value(ROWS)
    assert any(HOSTILE in name for name in browser.value(ROWS))


@pytest.mark.parametrize("is_placed", [True, False])
def test_what_lies_between_is_placed(is_placed: bool, run: Run, browser: Browser, tmp_path: Path) -> None:
    """The chains here have no operators that one side alone has: the page's data are given some."""
    write_chain(tmp_path / "good")
    write_chain(tmp_path / "bad", wrong=4)
    page = make_page(run, tmp_path, tmp_path / "good", tmp_path / "bad")
    none = '"between":null,"between_source":null,"between_code":null,"between_module":null'
    fields = {"between": "cast, only in target"}
    if is_placed:
        fields |= {"between_source": "cast.py:7", "between_code": "y = <img src=x>", "between_module": "layers.cast"}
    text = page.read_text()
    assert text.count(none) == 1
    given = json.dumps({**dict.fromkeys(re.findall("between[a-z_]*", none)), **fields}).replace("<", "\\u003c")
    page.write_text(text.replace(none, given[1:-1]))
    browser.messages.clear()
    browser.open(page)
    assert browser.messages == []
    label = "[...document.querySelectorAll('.origin dt')].find(t => t.textContent === 'between')"
    assert browser.value(f"{label}.nextSibling.textContent") == "cast, only in target" + (
        "cast.py:7y = <img src=x>in layers.cast" if is_placed else ""
    )
    assert browser.value("document.querySelectorAll('img').length") == 0


def test_asks_nothing_of_a_network(run: Run, tmp_path: Path) -> None:
    write_chain(tmp_path / "good")
    text = make_page(run, tmp_path, tmp_path / "good", tmp_path / "good").read_text()
    assert not re.search(r"(?:src|href)\s*=|@import|url\(|fetch\(|XMLHttpRequest", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg"}


def multiply_rows(page: Path, target: Path, n: int) -> None:
    """Repeat a report's pairs until there are n."""
    text = page.read_text()
    start = text.index('"pairs":[', text.index('"nodes":[')) + len('"pairs":[')
    end = text.index("]}</script>", start)
    rows = text[start:end]
    times = n // 20
    target.write_text(text[:start] + ",".join([rows] * times) + text[end:])


def test_fifty_thousand_rows(run: Run, browser: Browser, tmp_path: Path) -> None:
    write_chain(tmp_path / "good")
    write_chain(tmp_path / "bad", wrong=4)
    page = make_page(run, tmp_path, tmp_path / "good", tmp_path / "bad")
    multiply_rows(page, tmp_path / "large.html", 50_000)
    browser.messages.clear()
    browser.open(tmp_path / "large.html")
    assert browser.value(SHOWN) == "50,000 of 50,000 pairs"
    assert browser.value("document.querySelectorAll('#rows tr').length") < 200
    browser.value("$('scroll').scrollTop = 1e6; 1")
    browser.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    assert browser.value(ROWS)
    search(browser, "mul_9 input")
    assert browser.value(SHOWN) == "2,500 of 50,000 pairs"
    assert browser.messages == []
