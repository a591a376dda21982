"""What a release's tables say of the features a job asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ascend_compat.check.finding import Finding, Source, Text, WayOut
from ascend_compat.check.labels import Labels
from ascend_compat.check.remembered import Remembered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

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
            ways = self._other_frameworks(product, release, question, question.features)
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
        ways = (
            *self._other_frameworks(product, release, question, (claim.feature,)),
            *self._other_features(product, release, question),
            *self._other_releases(product, release, question, claim.feature),
            *self._upstream(product, question, claim.feature),
            *self._other_models(product, release, question, claim.feature),
        )
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

    def _other_frameworks(
        self, product: str, release: str, question: Question, features: Sequence[str]
    ) -> tuple[WayOut, ...]:
        if not features:
            return ()
        marks = ", ".join("?" for _ in features)
        rows = self._con.execute(
            "SELECT DISTINCT cl.framework FROM claim cl "
            f"WHERE cl.product = ? AND cl.release = ? AND cl.model = ? AND cl.feature IN ({marks}) "
            "AND cl.status IN ('supported', 'partial') AND cl.framework <> ? ORDER BY 1",
            [product, release, question.model, *features, question.framework],
        ).fetchall()
        ways = []
        for (framework,) in rows:
            english, chinese = self.labels.words(
                product=product, framework=framework, model=question.model, feature=features[0]
            )
            text = Text(
                "use {framework}: {product} {release} supports {feature} for {model} there".format(
                    **english, release=release
                ),
                "改用 {framework}：{product} {release} 在其中支持 {model} 使用{feature}".format(
                    **chinese, release=release
                ),
            )
            ways.append(WayOut(text, {"framework": framework}))
        return tuple(ways)

    def _other_features(self, product: str, release: str, question: Question) -> tuple[WayOut, ...]:
        rows = self._con.execute(
            "SELECT cl.feature FROM claim cl JOIN feature f ON f.id = cl.feature WHERE cl.product = ? AND cl.release = ? "
            "AND cl.framework = ? AND cl.model = ? AND cl.status = 'supported' AND f.\"group\" IN "
            '(SELECT "group" FROM feature WHERE list_contains(?, id)) AND NOT list_contains(?, cl.feature) ORDER BY 1',
            [product, release, question.framework, question.model, list(question.features), list(question.features)],
        ).fetchall()
        if not rows:
            return ()
        names = [self.feature_name(row[0]) for row in rows[:3]]
        return (
            WayOut(
                Text(
                    f"{product} {release} does support for {question.model} in {question.framework}: "
                    + ", ".join(name.en for name in names),
                    f"{product} {release} 的 {question.framework} 对 {question.model} 支持："
                    + "、".join(name.zh for name in names),
                ),
                {"feature": rows[0][0]},
            ),
        )

    def _other_releases(self, product: str, release: str, question: Question, feature: str) -> tuple[WayOut, ...]:
        row = self._con.execute(
            "SELECT cl.release FROM claim cl JOIN release r USING (product, release) WHERE cl.product = ? AND cl.framework = ? "
            "AND cl.model = ? AND cl.feature = ? AND cl.status IN ('supported', 'partial') AND cl.release <> ? "
            "ORDER BY r.ordinal DESC LIMIT 1",
            [product, question.framework, question.model, feature, release],
        ).fetchone()
        if row is None:
            return ()
        text = Text(f"use release {row[0]}, which has it", f"改用支持该特性的版本 {row[0]}")
        return (WayOut(text, {"release": row[0]}),)

    def _upstream(self, product: str, question: Question, feature: str) -> tuple[WayOut, ...]:
        row = self._con.execute(
            "SELECT cl.product, cl.release, cl.source FROM claim cl JOIN release r USING (product, release) "
            "WHERE cl.product = ? AND cl.product <> ? AND cl.model = ? AND cl.feature = ? "
            "AND cl.status IN ('supported', 'partial') ORDER BY r.ordinal LIMIT 1",
            [question.framework, product, question.model, feature],
        ).fetchone()
        if row is None:
            return ()
        english, chinese = self.labels.words(product=row[0], model=question.model, feature=feature)
        place = {"since": row[1], "source": _address(row[2])}
        text = Text(
            "outside the bundle, upstream {product} has {feature} for {model} since {since} ({source})".format(
                **english, **place
            ),
            "在方案之外，上游 {product} 自 {since} 起对 {model} 提供{feature}（{source}）".format(**chinese, **place),
        )
        return (WayOut(text, {"product": row[0], "release": row[1]}),)

    def _other_models(self, product: str, release: str, question: Question, feature: str) -> tuple[WayOut, ...]:
        row = self._con.execute(
            "SELECT m.id FROM claim cl JOIN model m ON m.id = cl.model, (SELECT family, total_params FROM model WHERE id = ?) me "
            "WHERE cl.product = ? AND cl.release = ? AND cl.framework = ? AND cl.feature = ? AND cl.status = 'supported' "
            "AND m.family = me.family ORDER BY abs(ln(m.total_params / me.total_params)), m.id LIMIT 1",
            [question.model, product, release, question.framework, feature],
        ).fetchone()
        if row is None:
            return ()
        name = self.labels.name("model", row[0])
        text = Text(f"the nearest model that has it there is {name.en}", f"该框架中支持该特性的最接近模型是 {name.zh}")
        return (WayOut(text, {"model": row[0]}),)


def _sources(claim: _Claim, release: str) -> tuple[Source, ...]:
    if not claim.source:
        return ()
    source = _parsed(claim.source)
    date = source.get("date")
    return (Source(_address(claim.source), date if date != "unknown" else None, release, None),)


def _with(status: str, condition: str | None) -> str:
    return f"{status} ({condition})" if condition else status


def _parsed(source: str) -> dict[str, Any]:
    if source.startswith("{"):
        parsed = json.loads(source)
        if isinstance(parsed, dict):
            return parsed
    return {"url": source}


def _address(source: str) -> str:
    return address(_parsed(source))


def address(source: dict[str, Any]) -> str:
    """A source document as one address: a page, or ``repo:path@commit``."""
    if "url" in source:
        return str(source["url"])
    place = str(source.get("path", ""))
    if source.get("line"):
        place += f":{source['line']}"
    commit = str(source.get("commit", ""))[:12]
    return f"{source.get('repo', '')}:{place}" + (f"@{commit}" if commit else "")
