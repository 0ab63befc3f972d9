"""fxtap compare end to end: exit statuses, reports as text, JSON and CSV, files, signals."""

from __future__ import annotations

import csv
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chains import STEP, write_chain
from program_run import Run, strict_json

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


RANK = "worldsize1_global_rank0"


def write_index(rank: Path, version: int) -> None:
    """Write an index without rows, of some version."""
    with sqlite3.connect(rank / "fxtap.db") as index:
        index.executescript(
            f"PRAGMA application_id = {0x66787470}; PRAGMA user_version = {version}; CREATE TABLE run(id);"
        )
    index.close()


@pytest.fixture
def chains(tmp_path: Path) -> Path:
    """Make dumps `good`, `again` and `bad` (operator 4 is wrong)."""
    write_chain(tmp_path / "good")
    write_chain(tmp_path / "again")
    write_chain(tmp_path / "bad", wrong=4)
    return tmp_path


def display_width(line: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 0 if unicodedata.combining(c) else 1 for c in line)


def test_same(run: Run, chains: Path) -> None:
    done = run("compare", "good", "again")
    assert done.returncode == 0
    assert done.stdout.startswith("SAME  20 tensors, all equal\n")
    assert done.stderr == ""


def test_the_origin_comes_first(run: Run, chains: Path) -> None:
    done = run("compare", "good", "bad")
    assert done.returncode == 1
    assert done.stdout.startswith("DIFFERENT  11 of 20 tensors differ\n\nOrigin  mul_4  aten.mul.Tensor\n")
    assert "carried on by 5 operators" in done.stdout
    assert run("compare", "good", "bad", "-q").stdout == "DIFFERENT  11 of 20 tensors differ\n"


def test_options_stand_before_and_after_paths(run: Run, chains: Path) -> None:
    expected = run("compare", "good", "bad", "--op", "mul_4*").stdout
    assert run("compare", "--op", "mul_4*", "good", "bad").stdout == expected
    assert run("compare", "good", "--op=mul_4*", "bad").stdout == expected
    assert expected.startswith("DIFFERENT  1 of 2 tensors differ")


@pytest.mark.parametrize(
    ("options", "status"),
    [
        (["--atol", "10"], 0),
        (["--rtol", "1e-3"], 1),
        (["--cosine", "0.5"], 0),
        (["--cosine", "0.9999999"], 1),
        (["--max-abs", "2"], 0),
        (["--max-abs", "0.1"], 1),
        (["--rel-l2", "5"], 0),
        (["--rel-l2", "1e-3"], 1),
        (["--max-ulp", "4"], 1),
        (["--fail-fast"], 1),
        (["--read-all", "--threads", "1"], 1),
    ],
)
def test_what_counts_as_close(run: Run, chains: Path, options: list[str], status: int) -> None:
    assert run("compare", "good", "bad", *options).returncode == status
    assert run("compare", "good", "again", *options).returncode == 0


def test_rules_from_a_file_win_over_the_command_line(run: Run, chains: Path) -> None:
    (chains / "rules.toml").write_text("# the rest\n[[rule]]\nnode = 'mul_[4-9]*'\natol = 10 # loose\n")
    assert run("compare", "good", "bad", "--rules", "rules.toml").returncode == 0
    assert run("compare", "good", "bad", "--rules", "rules.toml", "--atol", "0").returncode == 0
    (chains / "rules.toml").write_text("[[rule]]\nnode = 'mul_[4-8]*'\natol = 10\n[[rule]]\nrtol = oops\n")
    done = run("compare", "good", "bad", "--rules", "rules.toml")
    assert (done.returncode, done.stderr) == (2, "fxtap: rules.toml: line 5: rtol takes a decimal number\n")


def test_a_map_pairs_other_names(run: Run, chains: Path) -> None:
    write_chain(chains / "other", names="times{}x")
    (chains / "map").write_text("mul_* times*x\n")
    report = strict_json(run("compare", "good", "other", "--map", "map", "--json", "-").stdout)
    assert report["verdict"] == "same"
    assert report["pairing"]["mapped"] == 20


def test_two_steps_of_one_dump(run: Run, chains: Path) -> None:
    write_chain(chains / "good", wrong=7, step=STEP[:-1] + "1")
    done = run("compare", "good", "--step", "0:1")
    assert done.returncode == 1
    assert "Origin  mul_7" in done.stdout


def test_folders_of_two_steps(run: Run, chains: Path) -> None:
    write_chain(chains / "good", wrong=7, step=STEP[:-1] + "1")
    done = run("compare", f"good/{STEP}", f"good/{STEP[:-1]}1")
    assert done.returncode == 1
    assert done.stdout.startswith("DIFFERENT  5 of 20 tensors differ\n\nOrigin  mul_7  ")


def test_stopping_early_is_the_same_every_time(run: Run, tmp_path: Path) -> None:
    """Other threads are past the first difference by then; without an index only files have dtypes and shapes."""
    for step in range(40):
        for side in ("good", "bad"):
            wrong = 5 if side == "bad" and step == 1 else None
            write_chain(tmp_path / side, wrong, step=f"{STEP[:-1]}{step}")
    expected = run("compare", "good", "bad", "--fail-fast", "--threads", "1", "--json", "-")
    report = strict_json(expected.stdout)
    assert report["stopped_early"] and report["counts"]["different"] == 1
    assert report["counts"]["not compared"] == 800 - 20 - 12
    for _ in range(4):
        assert run("compare", "good", "bad", "--fail-fast", "--threads", "8", "--json", "-").stdout == expected.stdout


def test_replicas(run: Run, tmp_path: Path) -> None:
    for rank in range(3):
        write_chain(tmp_path / "dump", wrong=2 if rank == 2 else None, step=f"worldsize3_global_rank{rank}/graph_1/0")
    report = strict_json(run("compare", "--across-ranks", "dump", "--json", "-").stdout)
    assert report["counts"]["pairs"] == 40
    assert [(o["node"], o["rank"]) for o in report["origins"]] == [("mul_2", 2)]
    shutil.rmtree(tmp_path / "dump/worldsize3_global_rank1/graph_1")
    write_chain(tmp_path / "dump", step="worldsize3_global_rank1/graph_2/0")
    counts = strict_json(run("compare", "--across-ranks", "dump", "--json", "-").stdout)["counts"]
    assert (counts["only in golden"], counts["only in target"]) == (20, 20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no dump given"),
        (["good"], "--step A:B"),
        (["good", "bad", "again"], "too many paths: 'again'"),
        (["--across-ranks", "good", "bad"], "too many paths: 'bad'"),
        (["--across-ranks", "good"], "only rank 0"),
        (["good", "absent"], "No such file"),
        (["good", "empty"], "contains neither a dump nor an .npy file"),
        (["good", "bad", "--jsn", "x"], "unknown option"),
        (["good", "bad", "--json"], "value"),
        (["good", "bad", "--step", "one"], "--step takes A or A:B"),
        (["good", "bad", "--step", "1:2:3"], "--step takes A or A:B"),
        (["good", "bad", "--rtol", "-1"], "--rtol takes a number"),
        (["good", "bad", "--rtol", "nan"], "--rtol takes a number"),
        (["good", "bad", "--cosine", "2"], "from 0 to 1"),
        (["good", "bad", "--threads", "0"], "--threads takes"),
        (["good", "bad", "--json", "-", "--csv", "-"], "only one report"),
        (["good", "bad", "--map", "absent"], "cannot open absent: No such file or directory"),
        (["good", "bad", "--rules", "absent"], "cannot open absent: No such file or directory"),
        (["good", "bad", "--json", "taken"], "'taken' already exists; use --force to overwrite it"),
        (["good", "bad", "--json", "absent/x"], "No such file or directory"),
        (["good", "bad", "--graph", "9"], "good: no tensors of graph 9"),
        (["good", "bad", "--step", "0:7"], "bad: no tensors of step 7"),
        (["hollow", "hollow"], "no tensors to compare on either side"),
        (["empty", "empty"], "contains neither a dump nor an .npy file"),
        (["good", "later"], "fxtap.db: index version 99 is not supported; this fxtap reads version 1"),
    ],
)
def test_trouble_is_one_line_and_status_two(run: Run, chains: Path, arguments: list[str], message: str) -> None:
    (chains / "empty").mkdir()
    (chains / "hollow" / STEP).mkdir(parents=True)
    write_chain(chains / "later")
    write_index(chains / "later" / RANK, version=99)
    (chains / "taken").write_text("mine")
    done = run("compare", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert (chains / "taken").read_text() == "mine"


def test_what_cannot_be_read_is_named_and_the_rest_compared(run: Run, chains: Path) -> None:
    files = sorted((chains / "again" / STEP).iterdir())
    files[0].write_bytes(files[0].read_bytes()[:200])
    files[1].write_bytes(b"no array")
    files[2].unlink()
    done = run("compare", "good", "again")
    assert done.returncode == 2
    assert done.stdout.startswith("DIFFERENT  17 tensors agree, but 1 is missing, 2 cannot be read\n")
    unreadable = re.sub(r"\s", "", done.stdout.partition("Unreadable\n")[2])
    assert "truncated:theheaderdeclares256bytesofdata,found72" in unreadable
    assert f"{files[1]}:nota.npyfile" in unreadable
    assert done.stderr == ""


def test_bytes_after_the_data_are_a_warning(run: Run, chains: Path) -> None:
    """The values are still compared; one warning per pair, in every report and also from shards."""
    for side, i, extra in (("good", 2, 3), ("again", 5, 300), ("good", 6, 1), ("again", 6, 2), ("bad", 8, 5)):
        (path,) = (chains / side / STEP).glob(f"mul_{i}-*OUTPUT*")
        with path.open("ab") as file:
            file.write(bytes(extra))

    def said(target: str, *options: str) -> list[list[tuple[str, str, str]]]:
        done = run("compare", "good", target, "--json", "-", *options)
        return [
            re.findall(r"(golden|target): \S*/mul_(\d)-\S*: (\d+) bytes follow the data", line)
            for line in strict_json(done.stdout)["warnings"]
        ]

    assert said("again") == [
        [("golden", "2", "3")],
        [("golden", "6", "1"), ("target", "6", "2")],
        [("target", "5", "300")],
    ]
    (chains / "parts").mkdir()
    for shard in range(2):
        assert run("compare", "good", "again", "--shard", f"{shard}/2", "--out", f"parts/{shard}").returncode == 0
    assert said("again", "--merge", "parts") == said("again")
    done = run("compare", "good", "again")
    assert done.returncode == 0 and done.stdout.startswith("SAME  20 tensors, all equal\n")
    assert done.stdout.count("Warning") == 1 and "300 bytes follow the data" in " ".join(done.stdout.split())
    assert "Origin  mul_4" in run("compare", "good", "bad").stdout
    assert [warning[0][1] for warning in said("bad")] == ["2", "6", "8"]


def test_an_index_of_a_later_version_among_others(run: Run, tmp_path: Path) -> None:
    """Its rank is read by file names, the others as usual."""
    for side in ("good", "bad"):
        for rank in range(2):
            step = f"worldsize2_global_rank{rank}/graph_1/0"
            write_chain(tmp_path / side, wrong=3 + rank if side == "bad" else None, step=step)
    write_index(tmp_path / "bad" / "worldsize2_global_rank1", version=99)
    done = run("compare", "good", "bad")
    assert done.returncode == 1 and done.stderr == ""
    assert done.stdout.startswith("DIFFERENT  24 of 40 tensors differ\n")
    assert [done.stdout.count(f"  mul_{i}  ") for i in (3, 4)] == [1, 1]
    path = tmp_path / "bad" / "worldsize2_global_rank1" / "fxtap.db"
    said = (
        f"target: {path}: index version 99 is not supported; this fxtap reads version 1; reading by file names instead"
    )
    assert re.sub(r"\s", "", done.stdout).count(re.sub(r"\s", "", said)) == 1
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_one_side_is_empty(run: Run, chains: Path) -> None:
    (chains / "hollow" / STEP).mkdir(parents=True)
    for sides, found in ((("good", "hollow"), "golden"), (("hollow", "good"), "target")):
        done = run("compare", *sides, "-q")
        assert done.returncode == 1 and done.stderr == ""
        assert done.stdout == "DIFFERENT  the two sides share nothing: 20 have no counterpart\n"
        assert f"only in {found}" in run("compare", *sides).stdout.lower()


def test_sides_that_share_nothing(run: Run, chains: Path) -> None:
    np.save(chains / "one.npy", np.zeros(3))
    (chains / "plain").mkdir()
    np.save(chains / "plain" / "other.npy", np.zeros(3))
    done = run("compare", "plain", "good")
    assert done.returncode == 1
    assert done.stdout.startswith("DIFFERENT  the two sides share nothing: 21 have no counterpart\n")


def test_reports_appear_whole_and_are_not_written_over(run: Run, chains: Path) -> None:
    done = run("compare", "good", "bad", "--json", "r.json", "--csv", "r.csv", "--html", "r.html")
    assert done.returncode == 1
    assert done.stdout.endswith("Wrote r.json\nWrote r.csv\nWrote r.html\n")
    before = (chains / "r.json").read_bytes()
    assert run("compare", "good", "again", "--json", "r.json").returncode == 2
    assert (chains / "r.json").read_bytes() == before
    assert run("compare", "good", "again", "--json", "r.json", "--force").returncode == 0
    assert strict_json((chains / "r.json").read_text())["verdict"] == "same"
    assert not [path for path in chains.iterdir() if path.name.startswith(".")]
    with Path("/dev/full").open("wb") as full:
        assert run("compare", "good", "bad", "--csv", full.name).returncode == 2


def documented_keys() -> set[str]:
    return set(re.findall(r"`([a-z0-9_ ]+)`", (DOCS / "compare-json.md").read_text()))


def keys_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys_of, value.values()), set())
    return set().union(*map(keys_of, value), set()) if isinstance(value, list) else set()


def test_every_json_key_is_documented(run: Run, chains: Path) -> None:
    (chains / "rules.toml").write_text(
        "[[rule]]\nnode='none'\ntarget='x'\ndtype='bool'\nrtol=1\natol=1\ncosine=1\nmax_abs=1\nrel_l2=1\nmax_ulp=1\n"
    )
    report = strict_json(run("compare", "good", "bad", "--rules", "rules.toml", "--json", "-").stdout)
    report["default_tolerances"] = {"dtype": {"rtol": 0, "atol": 0}}
    assert keys_of(report) <= documented_keys()
    pair = next(p for p in report["pairs"] if p["name"] == "mul_4-aten.mul.Tensor.OUTPUT.0")
    golden, target = (np.load(pair[f"{side}_path"]).astype(np.float64) for side in ("golden", "target"))
    error = np.abs(target - golden)
    assert pair["max_abs_err"] == error.max()
    assert pair["rel_l2"] == pytest.approx(np.linalg.norm(error) / np.linalg.norm(golden), rel=1e-12)
    assert pair["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-12)
    assert pair["mismatched"] == 64
    assert pair["worst"][0]["index"] == int(np.argmax(error))
    assert report["origins"][0]["node"] == "mul_4"
    assert report["origins"][0]["growth"] is None


def test_csv_reads_back(run: Run, chains: Path) -> None:
    rows = list(csv.DictReader(run("compare", "good", "bad", "--csv", "-").stdout.splitlines()))
    assert len(rows) == 20
    known = {
        "Cosine",
        "EucDist",
        "MaxAbsErr",
        "MaxRelativeErr",
        "One Thousandth Err Ratio",
        "Five Thousandths Err Ratio",
    }
    assert known <= set(rows[0])
    bad = next(row for row in rows if row["Golden Name"] == "mul_4-aten.mul.Tensor.OUTPUT.0")
    assert bad["Result"] == "different"
    assert float(bad["MaxAbsErr"]) == pytest.approx(0.5, rel=1e-6)
    assert bad["Golden Tensor Shape"] == "[8, 8]"


@pytest.mark.parametrize(
    "name", ["ev\x1bil\x07", "a\x1b]0;title\x07", "層の正規化" * 12, "x" * 200, "é" * 70, "\u202egnp"]
)
def test_hostile_and_wide_names_fit_the_terminal(run: Run, tmp_path: Path, name: str) -> None:
    for side, wrong in (("good", None), ("bad", 0)):
        write_chain(tmp_path / name[:40] / side, wrong, names=name + "_{}")
    good, bad = (tmp_path / name[:40] / side for side in ("good", "bad"))
    for locale in ("C.UTF-8", "C"):
        done = run("compare", good, bad, LC_ALL=locale)
        assert done.returncode == 1
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", done.stdout)
        assert max(map(display_width, done.stdout.splitlines())) <= 80
        assert locale != "C" or done.stdout.isascii()
    report = strict_json(run("compare", good, bad, "--json", "-").stdout)
    assert report["origins"][0]["node"] == name + "_0"


def test_shards_put_together_are_the_whole(run: Run, chains: Path) -> None:
    for step in range(1, 5):
        for side in ("good", "bad"):
            write_chain(chains / side, wrong=3 if side == "bad" and step > 2 else None, step=STEP[:-1] + str(step))
    (chains / "parts").mkdir()
    for shard in range(3):
        assert run("compare", "good", "bad", "--shard", f"{shard}/3", "--out", f"parts/{shard}").returncode == 0
    for form in ("--json", "--csv", "--html"):
        whole, merged = (
            run("compare", "good", "bad", form, "-"),
            run("compare", "good", "bad", "--merge", "parts", form, "-"),
        )
        assert merged.stdout == whole.stdout
        assert merged.returncode == whole.returncode == 1


def test_help_and_manual_say_the_same(run: Run) -> None:
    text = run("compare", "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    page = (DOCS / "man" / "fxtap-compare.1").read_text().replace("\\-", "-")
    options = set(re.findall(r"--[a-z0-9-]+", text))
    assert len(options) > 20
    assert not [option for option in options if option not in page]


def write_hole(path: Path, gib: int) -> None:
    path.parent.mkdir()
    array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(gib << 28,))
    del array


def test_an_interrupt_ends_it_without_a_trace(program: str, tmp_path: Path) -> None:
    write_hole(tmp_path / "good" / "a.npy", 1)
    write_hole(tmp_path / "bad" / "a.npy", 1)
    command = [program, "compare", "good", "bad", "--threads", "1", "--json", "r.json"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(0.15)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode in (-signal.SIGINT, 0)  # 0: it finished before the signal
    assert err == b""
    if process.returncode != 0:
        assert out == b""
        assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "good"]


def save_pair(folder: Path, golden: list[float], target: list[float]) -> tuple[Path, Path]:
    for name, values in (("golden.npy", golden), ("target.npy", target)):
        np.save(folder / name, np.array(values, dtype=np.float32))
    return folder / "golden.npy", folder / "target.npy"


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("golden", "target", "says", "places"),
    [
        ([1, 2, 3, 4], [1, NAN, 3, NAN], ["2 elements are NaN on one side alone"], [1, 3]),
        ([INF, 2, 3, -INF], [-INF, 2, 3, -INF], ["1 element is infinite on one side, or of the other sign"], [0]),
        ([NAN, NAN], [1, 2], ["2 elements are NaN on one side alone"], [0, 1]),
        (
            [1, 2, 3, 4],
            [5, NAN, INF, 4],
            ["1 element is NaN on one side alone", "1 element is infinite", "elsewhere relative L2 "],
            [1, 2, 0],
        ),
    ],
)
def test_values_that_are_not_finite_are_counted_and_placed(
    golden: list[float], target: list[float], says: list[str], places: list[int], run: Run, tmp_path: Path
) -> None:
    sides = save_pair(tmp_path, golden, target)
    text = run("compare", *sides).stdout
    assert all(line in text for line in says)
    assert "L2 nan" not in text
    assert ("relative L2" in text) == ("elsewhere relative L2 " in says)
    assert [int(at) for at in re.findall(r"at \[(\d+)\]: golden", text)] == places
    run("compare", *sides, "-q", "--json", tmp_path / "report.json")
    (pair,) = strict_json((tmp_path / "report.json").read_text())["pairs"]
    assert [point["index"] for point in pair["worst"]] == places


def test_thousands_that_are_not_finite_show_the_first(run: Run, tmp_path: Path) -> None:
    """The first element in row-major order, however the tensor is split for reading."""
    golden = np.ones(50_000, dtype=np.float32)
    target = golden.copy()
    target[7::5] = np.nan
    target[:3] = 2
    np.save(tmp_path / "golden.npy", golden)
    np.save(tmp_path / "target.npy", target)
    run("compare", tmp_path / "golden.npy", tmp_path / "target.npy", "-q", "--json", tmp_path / "report.json")
    (pair,) = strict_json((tmp_path / "report.json").read_text())["pairs"]
    assert [point["index"] for point in pair["worst"]] == [7, 12, 17, 22, 27]
    assert pair["nan_mismatched"] == len(golden[7::5])
    assert pair["max_abs_err"] == 1


@pytest.mark.parametrize(
    ("option", "limit", "says"),
    [("--rel-l2", "0.001", "relative L2 "), ("--max-abs", "1e-6", "max abs "), ("--cosine", "0.9999999", "cosine ")],
)
def test_a_limit_that_alone_makes_the_difference_is_named(
    option: str, limit: str, says: str, run: Run, tmp_path: Path
) -> None:
    sides = save_pair(tmp_path, [1, 2, 3], [1.01, 2, 2.99])
    text = run("compare", *sides, option, limit).stdout
    assert re.search(rf"^ +{says}\S+, the limit is {float(limit):g}$", text, re.M), text
    assert "the limit is" not in run("compare", *sides).stdout
