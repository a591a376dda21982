"""Text that knows where it was written: sources, pieces of words, and the splitting of words."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ascend_compat.jobs.model import Span, Unresolved

_LINE = re.compile(r"\r\n|\n")
_NONBLANK = re.compile(r"[^ \t\n]+")


class Source:
    """A text to be read as shell, able to point into the file a user edits.

    ``pieces`` maps a text that was put together from several places back to them.
    """

    __slots__ = ("_lines", "_places", "_starts", "file", "pieces", "text")

    def __init__(self, file: str, text: str, pieces: Sequence[Piece] = ()) -> None:
        self.file, self.text, self.pieces = file, text, pieces
        self._starts: list[int] = []
        self._lines: list[str] = []
        self._places: list[int] = []

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> Source:
        """A text made of ``pieces``, such as the string that ``bash -c`` is given."""
        made = cls(pieces[0].source.file if pieces else "", "".join(piece.text for piece in pieces), pieces)
        position = 0
        for piece in pieces:
            made._places.append(position)
            position += len(piece.text)
        return made

    def span(self, at: int, length: int = 1) -> Span:
        """The place of ``length`` characters from ``at``."""
        if self.pieces:
            piece = self.pieces[max(0, bisect_right(self._places, at) - 1)]
            shift = at - self._places[max(0, bisect_right(self._places, at) - 1)]
            return piece.source.span(piece.at + shift, length) if piece.exact else piece.span()
        self._index()
        line = bisect_right(self._starts, at) - 1
        whole = self._lines[line] if line < len(self._lines) else ""
        return Span(self.file, line + 1, at - self._starts[line] + 1, max(1, length), whole)

    def offset(self, line: int, column: int) -> int:
        """The character at a 0-based line and column."""
        self._index()
        return self._starts[line] + column if line < len(self._starts) else len(self.text)

    def _index(self) -> None:
        if not self._starts:
            self._starts = [0, *(match.end() for match in _LINE.finditer(self.text))]
            self._lines = _LINE.split(self.text)


Site = tuple[Source, int, int]


class Piece:
    """A stretch of a word. ``size`` is its length in the source.

    ``split``: it comes from an expansion outside quotes, so blanks in it part words. ``why``: it is not known, ``text``
    then shows it as written. ``bare``: letters of the word itself, outside quotes. ``unset`` names the variable that nothing in the file sets. ``maybe``: only some branch
    brings it. ``note``: its value is inferred. ``chain``: the uses that led to it, outermost first.
    """

    __slots__ = ("at", "bare", "chain", "maybe", "note", "size", "source", "split", "text", "unset", "why")

    def __init__(
        self,
        text: str,
        source: Source,
        at: int,
        size: int,
        *,
        split: bool = False,
        chain: tuple[Site, ...] = (),
        why: Unresolved | None = None,
        unset: str = "",
        maybe: Unresolved | None = None,
        note: Unresolved | None = None,
        bare: bool = False,
    ) -> None:
        self.text, self.source, self.at, self.size = text, source, at, size
        self.bare = bare
        self.split, self.chain, self.why, self.unset, self.maybe, self.note = split, chain, why, unset, maybe, note

    @property
    def exact(self) -> bool:
        """Whether the text stands in the source letter for letter."""
        return self.size == len(self.text)

    def span(self) -> Span:
        """Where the piece was written."""
        return self.source.span(self.at, self.size)

    def used(self, site: Site, split: bool) -> Piece:
        """The piece as an expansion at ``site`` brings it."""
        return self._like(self.text, self.at, self.size, split, (site, *self.chain[:7]))

    def cut(self, start: int, end: int) -> Piece:
        """Characters ``start`` to ``end`` of the piece."""
        if self.exact:
            return self._like(self.text[start:end], self.at + start, end - start, False, self.chain)
        return self._like(self.text[start:end], self.at, self.size, False, self.chain)

    def doubted(self, maybe: Unresolved) -> Piece:
        """The piece where only some branch brings it."""
        made = self._like(self.text, self.at, self.size, self.split, self.chain)
        made.maybe = self.maybe or maybe
        return made

    def _like(self, text: str, at: int, size: int, split: bool, chain: tuple[Site, ...]) -> Piece:
        return Piece(
            text,
            self.source,
            at,
            size,
            split=split,
            chain=chain,
            why=self.why,
            unset=self.unset,
            maybe=self.maybe,
            note=self.note,
        )


Word = list[Piece]
Text = tuple[Piece, ...]
BREAK = Piece("", Source("", ""), 0, 0)
"""Stands between the elements of an array: a border between words, quoted or not."""


def text_of(word: Iterable[Piece]) -> str:
    """The text of a word, unknown pieces as they are written."""
    return "".join([piece.text for piece in word])


def reason(word: Iterable[Piece]) -> Unresolved | None:
    """Why the text of a word is not known; None where it is."""
    for piece in word:
        if piece.why is not None or piece.maybe is not None:
            return piece.why or piece.maybe
    return None


def doubt(word: Iterable[Piece]) -> Unresolved | None:
    """Why it is not known whether a word is there at all."""
    return next((piece.maybe for piece in word if piece.maybe is not None), None)


def split(pieces: Iterable[Piece]) -> list[Word]:
    """The words that bash makes of one written word."""
    words: list[Word] = []
    word: Word = []
    for piece in pieces:
        if piece is BREAK:
            if word:
                words.append(word)
            word = []
        elif not piece.split or piece.why is not None:
            word.append(piece)
        else:
            end = 0
            for match in _NONBLANK.finditer(piece.text):
                if match.start() > end and word:
                    words.append(word)
                    word = []
                word.append(piece.cut(match.start(), match.end()))
                end = match.end()
            if end < len(piece.text) and word:
                words.append(word)
                word = []
    if word:
        words.append(word)
    return words


def place(word: Sequence[Piece]) -> tuple[Span, tuple[Span, ...], Unresolved | None]:
    """The text a user would edit to change a word, the uses that led to it, and the note of an inferred value."""
    known = [piece for piece in word if piece.text] or list(word)
    best = min(known, key=lambda piece: len(piece.chain))
    note = next((piece.note for piece in word if piece.note is not None), None)
    chain = tuple(source.span(at, size) for source, at, size in best.chain)
    length = best.size
    if len(known) > 1:
        same = [piece for piece in known if piece.source is best.source and piece.chain == best.chain]
        last = same[-1]
        first = same[0]
        between = best.source.text[first.at : last.at + last.size]
        if len(same) > 1 and last.at >= first.at and "\n" not in between:
            return first.source.span(first.at, len(between)), chain, note
    return best.source.span(best.at, length), chain, note
