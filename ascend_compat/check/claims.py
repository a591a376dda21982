"""What a release's tables say of the features a job asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ascend_compat.check.finding import Finding, Source, Text
from ascend_compat.check.labels import Labels
from ascend_compat.check.remembered import Remembered
from ascend_compat.check.sources import address_of, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from ascend_compat.check.alternatives import Alternatives
    from ascend_compat.check.catalogue import Catalogue
    from ascend_compat.check.finding import Verdict
    from ascend_compat.jobs.model import Span

BUNDLE = "ascendfactory"
_DENIED = {"unsupported": "AC1001", "not-applicable": "AC1002", "withdrawn": "AC1003"}
_STATUS_ZH = {
    "supported": "支持",
    "partial": "有条件支持",
    "unsupported": "不支持",
    "not-applicable": "不适用",
    "withdrawn": "已下线",
    "unknown": "未说明",
}


@dataclass(frozen=True, slots=True)
class Question:
    """One model in one framework, and the features asked of it; ``spans`` point at the lines that ask."""

    framework: str
    model: str
    features: tuple[str, ...]
    spans: dict[str, Span | None]
    model_span: Span | None = None
    facts: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The release that answered, the findings, and what they make of the job."""

    release: str | None
    findings: tuple[Finding, ...]
    verdict: Verdict


class _Claim(NamedTuple):
    feature: str
    status: str
    condition: str | None
    condition_zh: str | None
    source: str | None
    column: str | None
    heading_en: str | None
    heading_zh: str | None


class _Table(NamedTuple):
    product: str
    framework: str
    release: str
    completeness: str
    version: str | None
    assumed: str | None


class Claims:
    """Asks the claim tables; one object serves any number of jobs."""

    def __init__(self, con: duckdb.DuckDBPyConnection, catalogue: Catalogue) -> None:
        self._con = Remembered(con)
        self._catalogue = catalogue
        self.labels = Labels(con)
        self._tables: list[_Table] | None = None

    @cached_property
    def _alternatives(self) -> Alternatives:
        """Loaded with the first denial: most jobs need none."""
        from ascend_compat.check.alternatives import Alternatives

        return Alternatives(self._con, self.labels)

    def _stated(self) -> list[_Table]:
        """What every release has of a table for each framework, newest release first."""
        if self._tables is None:
            rows = self._con.execute(
                "SELECT product, framework, release, completeness, version, assumed FROM release_framework ORDER BY ordinal DESC"
            ).fetchall()
            self._tables = [_Table(*row) for row in rows]
        return self._tables

    def _with_table(self, product: str, framework: str) -> list[_Table]:
        known = ("full", "partial")
        return [
            table
            for table in self._stated()
            if table.product == product and table.framework == framework and table.completeness in known
        ]

    def own_release(self, product: str, framework: str, version: str) -> str | None:
        """The release of a framework's own product that is ``version``, where it has a table."""
        tables = self._with_table(product, framework)
        return next((table.release for table in tables if table.release == version), None)

    def release_for(self, product: str, framework: str) -> tuple[str | None, tuple[str, ...]]:
        """The newest release whose table states the framework completely (else in part), and the newer ones known in part."""
        tables = self._with_table(product, framework)
        if not tables:
            return None, ()
        at = next((at for at, table in enumerate(tables) if table.completeness == "full"), 0)
        return tables[at].release, tuple(table.release for table in tables[:at])

    def stated_features(self, product: str, release: str | None, framework: str) -> list[str]:
        """Features that a release's table has columns for (``release`` None takes the default one)."""
        release = release or self.release_for(product, framework)[0]
        rows = self._con.execute(
            "SELECT DISTINCT feature FROM claim WHERE product = ? AND release = ? AND framework = ? ORDER BY 1",
            [product, release, framework],
        ).fetchall()
        return [feature for (feature,) in rows]

    def framework_version(self, product: str, release: str | None, framework: str) -> tuple[str | None, str | None]:
        """The version of a framework that a release packs, as its page says and else as is assumed."""
        asked = (product, release, framework)
        found = (table for table in self._stated() if (table.product, table.release, table.framework) == asked)
        table = next(found, None)
        if table is None:
            return None, None
        return (None if table.version == "unknown" else table.version), table.assumed

    def framework_missing(self, product: str, release: str, framework: str) -> bool:
        """Whether the release lists its frameworks and this one is not among them."""
        listed = {
            table.framework
            for table in self._stated()
            if (table.product, table.release) == (product, release) and table.completeness != "absent"
        }
        return bool(listed) and framework not in listed

    def answer(self, product: str, release: str | None, question: Question) -> Answer:
        """Findings of one question. ``release`` None takes the default one of product and framework."""
        newer: tuple[str, ...] = ()
        if release is None:
            release, newer = self.release_for(product, question.framework)
        if release is None:
            words = self.labels.words(product=product, framework=question.framework)
            return Answer(None, (self._catalogue.finding("AC1011", *words),), "unverified")
        if self.framework_missing(product, release, question.framework):
            words = self.labels.words(product=product, release=release, framework=question.framework)
            ways = self._alternatives.frameworks(product, release, question, question.features)
            finding = self._catalogue.finding(
                "AC1009", *words, span=question.model_span, verdict="unsupported", ways_out=ways, topic="model-support"
            )
            return Answer(release, (finding,), "unsupported")
        question = self._as_listed(product, release, question)
        claims = self._claims(product, release, question)
        findings: list[Finding] = []
        verdict: Verdict = "supported" if claims else "unverified"
        seen_columns: set[tuple[str, str]] = set()
        silent = [name for name in question.features if name not in claims or claims[name].status == "unknown"]
        last = self._last_stated(product, question, silent)
        for feature in question.features:
            claim = claims.get(feature)
            status = claim.status if claim else "unknown"
            if claim and claim.column is not None:
                if (claim.column, status) in seen_columns:
                    continue
                seen_columns.add((claim.column, status))
            if status in _DENIED:
                assert claim is not None
                findings.append(self._denied(product, release, question, claim))
                verdict = "unsupported"
            elif status == "partial":
                assert claim is not None
                findings.append(self._finding("AC1004", product, release, question, claim))
            elif status == "unknown" and verdict == "supported":
                verdict = "unverified"
        if silent:
            findings.append(self._unknown(product, release, question, silent, last))
        findings.extend(self._notes(product, newer, question, "AC1008"))
        return Answer(release, tuple(findings), verdict)

    def _as_listed(self, product: str, release: str, question: Question) -> Question:
        """The question about the model whose tensors a variant shares, where the release lists only that one."""
        shared = self.labels.variant_of(question.model)
        if shared is None:
            return question
        listed = self._con.execute(
            "SELECT 1 FROM cell WHERE product = ? AND release = ? AND model = ? LIMIT 1",
            [product, release, question.model],
        ).fetchall()
        return question if listed else replace(question, model=shared)

    def overview(self, product: str, release: str | None, question: Question) -> Answer:
        """All that a release states of a model in a framework, as notes; ``supported`` when it grants anything."""
        release = release or self.release_for(product, question.framework)[0]
        if release is None or self.framework_missing(product, release, question.framework):
            return self.answer(product, release, question)
        asked = replace(question, features=tuple(self.stated_features(product, release, question.framework)))
        asked = self._as_listed(product, release, asked)
        stated = {claim.status for claim in self._claims(product, release, asked).values()}
        verdict: Verdict = "supported" if stated & {"supported", "partial"} else "unsupported"
        if not stated - {"unknown"}:
            verdict = "unverified"
        return Answer(release, tuple(self._notes(product, (release,), asked, "AC1012")), verdict)

    def notes(self, product: str, question: Question) -> tuple[Finding, ...]:
        """What another product's default release says, as notes."""
        release, _ = self.release_for(product, question.framework)
        if release is None:
            return ()
        question = self._as_listed(product, release, question)
        return tuple(self._notes(product, (release,), question, "AC1007"))

    def _notes(self, product: str, releases: Sequence[str], question: Question, code: str) -> list[Finding]:
        """One note for each thing said, whichever releases say it."""
        said: dict[tuple[str, str | None, tuple[str, ...]], list[tuple[str, _Claim]]] = {}
        for release in releases:
            by_status: dict[tuple[str, str | None], list[_Claim]] = {}
            for claim in self._claims(product, release, question).values():
                if claim.status != "unknown":
                    by_status.setdefault((claim.status, claim.condition), []).append(claim)
            for (status, condition), claims in by_status.items():
                features = tuple(claim.feature for claim in claims)
                said.setdefault((status, condition, features), []).append((release, claims[0]))
        notes = []
        for (status, condition, features), places in said.items():
            claim = places[0][1]
            english, chinese = self.labels.words(
                product=product,
                release=", ".join(release for release, _ in reversed(places)),
                framework=question.framework,
                model=question.model,
            )
            names = [self.feature_name(feature) for feature in features]
            english |= {"feature": ", ".join(name.en for name in names), "status": _with(status, condition)}
            chinese |= {
                "feature": "、".join(name.zh for name in names),
                "status": _with(_STATUS_ZH[status], claim.condition_zh or condition),
            }
            sources = tuple(source for release, one in places for source in _sources(one, release))
            notes.append(self._catalogue.finding(code, english, chinese, sources=sources))
        return notes

    def _claims(self, product: str, release: str, question: Question) -> dict[str, _Claim]:
        if not question.features:
            return {}
        marks = ", ".join("?" for _ in question.features)
        rows = self._con.execute(
            'SELECT feature, status, condition, condition_zh, source, "column", heading_en, heading_zh FROM claim '
            f"WHERE product = ? AND release = ? AND framework = ? AND model = ? AND feature IN ({marks})",
            [product, release, question.framework, question.model, *question.features],
        ).fetchall()
        return {row[0]: _Claim(*row) for row in rows}

    def feature_name(self, feature: str) -> Text:
        """A feature's name in both languages."""
        return self.labels.name("feature", feature)

    def _finding(
        self, code: str, product: str, release: str, question: Question, claim: _Claim, **rest: Any
    ) -> Finding:
        english, chinese = self.labels.words(
            product=product, release=release, framework=question.framework, model=question.model, feature=claim.feature
        )
        reason = None
        if claim.heading_en and claim.heading_zh:
            reason = Text(
                f'in the column "{claim.heading_en}" of {english["framework"]}, the cell of {english["model"]} is {claim.status}',
                f"{chinese['framework']} 的“{claim.heading_zh}”一列中，{chinese['model']} 的取值为“{_STATUS_ZH[claim.status]}”",
            )
        rest.setdefault("span", question.spans.get(claim.feature) or question.model_span)
        return self._catalogue.finding(
            code,
            {**english, "condition": claim.condition},
            {**chinese, "condition": claim.condition_zh or claim.condition},
            topic="model-support",
            reason=reason,
            sources=_sources(claim, release),
            **rest,
        )

    def _denied(self, product: str, release: str, question: Question, claim: _Claim) -> Finding:
        ways = self._alternatives.of(product, release, question, claim.feature)
        return self._finding(
            _DENIED[claim.status], product, release, question, claim, verdict="unsupported", ways_out=ways
        )

    def _last_stated(
        self, product: str, question: Question, features: Sequence[str]
    ) -> dict[str, tuple[str, str, str | None]]:
        """By feature, the release that last stated it, what it stated, and that release's date."""
        if not features:
            return {}
        marks = ", ".join("?" for _ in features)
        rows = self._con.execute(
            "SELECT cl.feature, cl.release, cl.status, r.date FROM claim cl JOIN release r USING (product, release) "
            f"WHERE cl.product = ? AND cl.framework = ? AND cl.model = ? AND cl.feature IN ({marks}) "
            "AND cl.status <> 'unknown' ORDER BY r.ordinal",
            [product, question.framework, question.model, *features],
        ).fetchall()
        return {feature: (release, status, date) for feature, release, status, date in rows}

    def _unknown(
        self,
        product: str,
        release: str,
        question: Question,
        features: Sequence[str],
        last: Mapping[str, tuple[str, str, str | None]],
    ) -> Finding:
        """One note for all features the release says nothing of, with what was last stated of each."""
        english, chinese = self.labels.words(
            product=product, release=release, framework=question.framework, model=question.model
        )
        names = {feature: self.feature_name(feature) for feature in features}
        stated: dict[tuple[str, str, str | None], list[str]] = {}
        for feature in features:
            if feature in last:
                stated.setdefault(last[feature], []).append(feature)
        reason = None
        if stated:
            reason = Text(
                "last stated: "
                + "; ".join(
                    f"{', '.join(names[each].en for each in said)}: {status} by {at} ({date or 'no date'})"
                    for (at, status, date), said in stated.items()
                ),
                "最近一次说明："
                + "；".join(
                    f"{'、'.join(names[each].zh for each in said)}：{at}（{date or '无日期'}）{_STATUS_ZH[status]}"
                    for (at, status, date), said in stated.items()
                ),
            )
        spans = (question.spans.get(feature) for feature in features)
        return self._catalogue.finding(
            "AC1005",
            {**english, "feature": ", ".join(name.en for name in names.values())},
            {**chinese, "feature": "、".join(name.zh for name in names.values())},
            span=next((span for span in spans if span), question.model_span),
            verdict="unverified",
            reason=reason,
        )


def _sources(claim: _Claim, release: str) -> tuple[Source, ...]:
    if not claim.source:
        return ()
    source = parsed(claim.source)
    date = source.get("date")
    return (Source(address_of(claim.source), date if date != "unknown" else None, release, None),)


def _with(status: str, condition: str | None) -> str:
    return f"{status} ({condition})" if condition else status
