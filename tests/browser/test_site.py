"""The site as files: no dead link, nothing from outside, the seed's table, the same bytes again."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from conftest import build
from docs_reading import inside, read, spread

SEED = Path(__file__).resolve().parents[1] / "data" / "seed" / "590603-zh.txt"


def seen(path: Path) -> tuple[Path, set[str], list[str], list[str]]:
    reader = read(path.read_text(encoding="utf-8"))
    return path, reader.ids, reader.links, reader.loads


def test_no_link_is_dead_and_nothing_comes_from_outside(site: Path) -> None:
    with ProcessPoolExecutor(2) as pool:
        pages = list(pool.map(seen, sorted(site.rglob("*.html")), chunksize=50))
    ids = {path: found for path, found, _, _ in pages}
    outside = {address for _, _, _, loads in pages for address in loads if inside(address) is None}
    assert outside == set()
    dead, count = set(), 0
    for path, _, links, loads in pages:
        for address in (*links, *loads):
            place = inside(address)
            if place is None:
                continue
            count += 1
            target = (path.parent / place[0]).resolve() if place[0] else path
            if not target.is_file() or (place[1] and place[1] not in ids.get(target, {place[1]})):
                dead.add((str(path.relative_to(site)), address))
    assert dead == set()
    assert len(pages) > 1100 and count > 100_000
    languages = [sum(path.is_relative_to(site / language) for path in ids) for language in ("en", "zh")]
    assert languages[0] == languages[1]


def test_style_sheets_and_scripts_ask_no_one(site: Path) -> None:
    files = [path for ending in ("css", "js") for path in site.rglob(f"*.{ending}") if path.name != "data.js"]
    assert len(files) > 10
    for path in files:
        text = path.read_text(encoding="utf-8")
        for word in ("url(http", "url('http", 'url("http', "@import", "url(//", 'fetch("http', "importScripts"):
            assert word not in text, f"{path.name}: {word}"


def test_the_chinese_page_carries_the_seed(site: Path) -> None:
    reader = read((site / "zh" / "matrix" / "ascendfactory-6.5.906.html").read_text(encoding="utf-8"))
    shown = [row for row in spread(reader, 0) if len(row) == 20][3:]
    lines = [line.split("\t") for line in SEED.read_text(encoding="utf-8").splitlines()]
    seed = [
        cells
        for cells in lines[next(n for n, cells in enumerate(lines) if cells[0] == "模型系列") + 3 :]
        if len(cells) == 20
    ]
    assert sum(len(cells) - 2 for cells in seed) == 612
    assert [row[2:] for row in shown] == [cells[2:] for cells in seed]


def test_building_again_gives_the_same_bytes(site: Path, tmp_path: Path) -> None:
    """In one language, to save time; its build shares nothing with the other's."""
    done = build(tmp_path, "--lang", "zh", seed="7")
    assert (done.returncode, done.stderr) == (0, "")
    first = {path.relative_to(site): path.read_bytes() for path in (site / "zh").rglob("*") if path.is_file()}
    again = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "zh").rglob("*") if path.is_file()}
    assert sorted(first) == sorted(again)
    assert [path for path in first if first[path] != again[path]] == []
    assert len(first) > 1000
