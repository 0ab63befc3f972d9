"""The comparison's page in a real browser: renders without errors, searches, sorts, and shows names as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    """The chains here have no operators on one side only, so some are added to the page's data."""
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
    start = text.index('"pairs":[') + len('"pairs":[')
    end = text.index('],"texts":[', start)
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


def train(root: Path, wrong: str, n_steps: int = 6) -> None:
    """Dump a small training run, without the optimizer, in which one operator may be wrong."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("fxtap")
    torch.manual_seed(0)
    layers = [torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.Linear(8, 1)]
    model = torch.nn.Sequential(*layers)
    rate = 0.25 if wrong == "rate" else 0.2
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)

    def loss_of(x: Any) -> Any:
        hidden = torch.nn.functional.gelu(model[:2](x), approximate="tanh" if wrong == "gelu" else "none")
        return model[2:](hidden).square().mean()

    torch.compiler.reset()
    compiled = torch.compile(loss_of, backend="fxtap", options={"data_dump.type": "npy", "data_dump.path": str(root)})
    for step in range(n_steps):
        x = torch.randn(4, 8, generator=torch.Generator().manual_seed(step))
        optimizer.zero_grad()
        compiled(x).backward()
        optimizer.step()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trained")
    for wrong in ("nothing", "gelu", "rate"):
        train(root / wrong, wrong)
    return root


@pytest.fixture
def training(run: Run, browser: Browser, trained: Path, tmp_path: Path) -> Browser:
    browser.messages.clear()
    browser.open(make_page(run, tmp_path, trained / "nothing", trained / "gelu"))
    return browser


HEADS = "[...document.querySelectorAll('#head th')].map(h => h.textContent)"


def test_what_follows_is_one_line_that_opens(training: Browser) -> None:
    assert training.value("document.querySelectorAll('.origin').length") == 1
    assert training.value("document.querySelector('h2').textContent") == "Where it began"
    *again, line = training.value("[...document.querySelectorAll('summary')].map(s => s.textContent)")
    assert all(re.fullmatch(r"again in [1-5] other calls? of the graph", other) for other in again)
    n = int(re.match(r"(\d+) places in later calls differ too, which may follow from this", line)[1])  # type: ignore[index]
    assert n > 5
    training.value("[...document.querySelectorAll('details')].at(-1).open = true")
    training.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
    items = training.value("[...document.querySelectorAll('details li')].map(i => i.textContent)")
    assert len(items) == n
    assert all(re.search(r"graph \d+, step [0-5]", item) for item in items)
    training.value("document.querySelector('details li button').click()")
    assert training.value("$('detail').style.display") == "block"
    assert training.messages == []


def test_page_and_text_tell_one_number_of_carrying_operators(run: Run, training: Browser, trained: Path) -> None:
    text = run("compare", trained / "nothing", trained / "gelu").stdout
    (carried,) = re.findall(r"carried on by ([0-9,]+) operators", text)
    label = "[...document.querySelectorAll('.origin dt')].find(t => t.textContent === 'carried on')"
    assert training.value(f"{label}.nextSibling.textContent") == f"by {carried} operators"
    assert "carry" not in training.value("$('summary').textContent")


def test_rows_of_several_steps_are_told_apart(training: Browser) -> None:
    assert {"graph", "step"} <= set(training.value(HEADS))
    search(training, "gelu output")
    rows = training.value(
        "[...document.querySelectorAll('#rows tr')].filter(r => r.children.length).map(r => r.textContent)"
    )
    assert len(rows) == len(set(rows)) > 6


def test_one_step_needs_no_column_of_steps(chain: Browser) -> None:
    assert not {"rank", "graph", "step"} & set(chain.value(HEADS))


def test_rows_stand_in_order_of_execution(training: Browser) -> None:
    """A backward graph comes after its own forward graph."""
    calls = training.value("pairs.map(groupOf).map(g => [g[2], g[1]])")
    order = list(dict.fromkeys(map(tuple, calls)))
    forward, backward = sorted({graph for _, graph in order})
    assert order == [(step, graph) for step in range(6) for graph in (forward, backward)]


def test_colours_have_a_legend(training: Browser) -> None:
    legend = training.value("[...$('legend').children].map(c => c.textContent)")
    assert legend[-1] == "where it began"
    assert {"same", "different"} <= set(legend)
    assert training.messages == []


def test_weights_of_a_call_are_one_place(run: Run, browser: Browser, trained: Path, tmp_path: Path) -> None:
    browser.messages.clear()
    browser.open(make_page(run, tmp_path, trained / "nothing", trained / "rate"))
    assert browser.value("document.querySelectorAll('.origin').length") == 1
    lines = browser.value("[...document.querySelectorAll('summary')].map(s => s.textContent)")
    assert re.fullmatch(r"and [2-7] more weights of this call", lines[0])
    assert "after step 0's update, which was not dumped: compile opt.step" in browser.value(
        "document.querySelector('.origin').textContent"
    )
    assert browser.messages == []


def test_the_page_holds_each_text_once(run: Run, trained: Path, tmp_path: Path) -> None:
    """A further step adds only numbers: names, lines and modules are already there."""
    page = make_page(run, tmp_path, trained / "nothing", trained / "gelu").read_text()
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    assert len(data["texts"]) == len(set(data["texts"]))
    assert len(data["tensors"]) < len(data["pairs"]) / 4
    size = len(json.dumps(data["pairs"], separators=(",", ":")))
    assert size / len(data["pairs"]) < 150


@pytest.mark.parametrize("is_missing", [True, False])
def test_what_is_written_differently_looks_like_no_failure(
    is_missing: bool, run: Run, browser: Browser, tmp_path: Path
) -> None:
    """A tensor on the target side only; in the page's data it is missing or not."""
    write_chain(tmp_path / "good")
    write_chain(tmp_path / "bad")
    folder = tmp_path / "bad" / "worldsize1_global_rank0" / "graph_1" / "0"
    np.save(folder / "extra-aten.exp.default.OUTPUT.0.20251017071211000099.npy", np.ones(3, dtype=np.float32))
    page = make_page(run, tmp_path, tmp_path / "good", tmp_path / "bad")
    text = page.read_text()
    start = text.index('],"tensors":[')
    given = re.search(r'\[\d+,(?:null|"extra[^"]*"),(?:null|"[^"]*"),0,[^]]*\]', text[start:])
    assert given is not None
    fields = given[0].split(",")
    fields[-3] = str(int(is_missing))
    page.write_text(text[:start] + text[start:].replace(given[0], ",".join(fields)))
    browser.messages.clear()
    browser.open(page)
    search(browser, "extra")
    colour = browser.value(
        "[...document.querySelectorAll('#rows td')].find(c => c.textContent === 'only in target').style.color"
    )
    assert colour == ("var(--other)" if is_missing else "var(--rewritten)")
    assert ("written differently" in browser.value("$('summary').textContent")) == (not is_missing)
    assert browser.messages == []


def test_a_region_tells_what_it_is_made_of(run: Run, browser: Browser, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    fxtap = pytest.importorskip("fxtap")
    table = torch._decomp.get_decompositions([torch.ops.aten.native_layer_norm])
    torch.manual_seed(0)
    norm, x = torch.nn.LayerNorm(16), torch.randn(4, 16)
    for side, decompositions in (("good", None), ("bad", table)):
        config = fxtap.CompilerConfig()
        config.debug.data_dump.type = "npy"
        config.debug.data_dump.path = str(tmp_path / side)
        backend = fxtap.get_npu_backend(compiler_config=config, custom_decompositions=decompositions)
        torch.compiler.reset()
        with torch.no_grad():
            torch.compile(lambda x: norm(x.exp()).sin(), backend=backend)(x)
    browser.messages.clear()
    browser.open(make_page(run, tmp_path, tmp_path / "good", tmp_path / "bad"))
    assert browser.value("pairs.findIndex(p => p[P.nGolden] > 0)") >= 0
    browser.value("table.choose(pairs.findIndex(p => p[P.nGolden] > 0), true)")
    detail = browser.value("$('detail').textContent")
    assert re.search(r"native_layer_norm: 1 operator against [4-9]", detail)
    assert "rests on" in detail
    assert browser.messages == []


def test_values_that_are_not_finite_are_counted_and_placed(run: Run, browser: Browser, tmp_path: Path) -> None:
    np.save(tmp_path / "good.npy", np.array([1, 2, 3, np.inf], dtype=np.float32))
    np.save(tmp_path / "bad.npy", np.array([1, np.nan, 3, -np.inf], dtype=np.float32))
    browser.messages.clear()
    browser.open(make_page(run, tmp_path, tmp_path / "good.npy", tmp_path / "bad.npy"))
    browser.value("table.choose(0, true)")
    detail = browser.value("$('detail').textContent")
    assert "1 element is NaN on one side alone" in detail
    assert "1 element is infinite on one side" in detail
    assert "relative L2" not in detail
    assert "[1]  golden 2, target nan" in detail
    assert "[3]  golden inf, target -inf" in detail
    assert browser.messages == []
