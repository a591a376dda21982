"""Reads HTML back: tables as text, ids, links, and what a page loads."""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from ascend_compat.docs.page import Page

# layouts of these models alone: those of all take half a minute, and the site is made with all of them in tests/browser
PLANNED = ("qwen2.5-7b", "qwen3-30b-a3b")
Made = Mapping[str, list[Page]]


class Reader(HTMLParser):
    """Collects while it is fed. A table is a list of rows of cell texts; text for screen readers alone is left out."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.spans: list[list[list[tuple[int, int]]]] = []
        self._open: list[str] | None = None
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if said.get("id"):
            self.ids.add(said["id"])
        if tag == "a" and "href" in said:
            self.links.append(said["href"])
        elif tag == "link" and "href" in said:
            self.loads.append(said["href"])
        elif "src" in said:
            self.loads.append(said["src"])
        if tag == "span" and (self._unseen or said.get("class") == "unseen"):
            self._unseen += 1
        if tag == "table":
            self.tables.append([])
            self.spans.append([])
        elif tag == "tr":
            self.tables[-1].append([])
            self.spans[-1].append([])
        elif tag in ("td", "th"):
            self._open = []
            self.spans[-1][-1].append((int(said.get("colspan", "1")), int(said.get("rowspan", "1"))))

    def handle_endtag(self, tag: str) -> None:
        if tag == "span" and self._unseen:
            self._unseen -= 1
        if tag in ("td", "th") and self._open is not None:
            self.tables[-1][-1].append("".join(self._open).strip())
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None and not self._unseen:
            self._open.append(data)


def read(text: str) -> Reader:
    """A document, read."""
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


def spread(reader: Reader, number: int) -> list[list[str]]:
    """A table with every merged cell repeated over the places it covers."""
    made: list[list[str]] = []
    held: dict[tuple[int, int], str] = {}
    for line, (cells, spans) in enumerate(zip(reader.tables[number], reader.spans[number], strict=True)):
        row: list[str] = []
        for text, (across, down) in zip(cells, spans, strict=True):
            while (line, len(row)) in held:
                row.append(held[line, len(row)])
            for _ in range(across):
                for below in range(1, down):
                    held[line + below, len(row)] = text
                row.append(text)
        while (line, len(row)) in held:
            row.append(held[line, len(row)])
        made.append(row)
    return made


def inside(address: str) -> tuple[str, str] | None:
    """Path and fragment of an address within the site; None for one outside."""
    parts = urlsplit(address)
    return None if parts.scheme or parts.netloc else (unquote(parts.path), unquote(parts.fragment))
