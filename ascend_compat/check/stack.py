"""A stack against the version tables and the stack rules, alone or under a job."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ascend_compat.check.catalogue import Catalogue, fill, show
from ascend_compat.check.claims import BUNDLE
from ascend_compat.check.finding import Finding, Report, Source, Text, WayOut
from ascend_compat.check.rules import Row, Rule, Vocabulary, evaluate, load_rules
from ascend_compat.check.sources import address
from ascend_compat.stack.derive import bound_facts, framework_facts, table_facts
from ascend_compat.stack.facts import PACKAGES
from ascend_compat.stack.model import Stack, StackFacts
from ascend_compat.stack.tables import Tables
from ascend_compat.stack.versions import release_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from ascend_compat.check.engine import Engine
    from ascend_compat.check.finding import Severity, Verdict
    from ascend_compat.check.rules import Outcome
    from ascend_compat.jobs.model import Job, Span

FRAMEWORK = "stack"
_CHECKERS: WeakKeyDictionary[Engine, StackChecker] = WeakKeyDictionary()
_TRIED = 6
_SHOWN = 3
# what a way out may change, where its candidates are listed, and the words for one
_CHOICES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "torch_version": (("torch_npu_torch",), "pip install torch=={}", "pip install torch=={}"),
    "torch_npu_version": (("cann_torch_npu", "line_builds"), "pip install torch-npu=={}", "pip install torch-npu=={}"),
    "cann_version": (
        ("torch_npu_cann",),
        "install CANN {} (toolkit, kernels and NNAL)",
        "安装 CANN {}（toolkit、kernels 与 NNAL）",
    ),
    "vllm_version": (("vllm_ascend_vllm",), "pip install vllm=={}", "pip install vllm=={}"),
    "vllm_ascend_version": (("vllm_vllm_ascend",), "pip install vllm-ascend=={}", "pip install vllm-ascend=={}"),
}
# a fact by which a rule is known to rest on a table's rows, where those rows' addresses are, and whether the rule's own counts
_ROW_SOURCES = (
    ("bound_enforced", "bound_source", False),
    ("framework_cann", "framework_source", False),
    ("framework_torch", "framework_source", False),
    ("framework_core", "framework_source", False),
    ("ascendfactory_release", "ascendfactory_source", False),
    ("torch_npu_cann", "pair_source", True),
)
_PLACES = ("pair_source", "ascendfactory_source")
_PLACE = re.compile(r"\{(\w+)\}")
_REMEMBERED = 512
_EXPECTED = (
    ("torch_version", "torch", "torch"),
    ("torch_npu_version", "torch-npu", "torch-npu"),
    ("cann_version", "CANN", "CANN"),
    ("python_version", "Python", "Python"),
    ("chip", "chip", "芯片"),
)


@dataclass(frozen=True, slots=True)
class _Break:
    rule: Rule
    facts: Mapping[str, Any]


class StackChecker:
    """One matrix connection and what was read from it; serves any number of stacks. ``today`` is a month, ``2026-12``."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, types: Mapping[str, str] | None = None, today: str | None = None
    ) -> None:
        self.con = con
        self.tables = Tables(con)
        self.catalogue = Catalogue(con)
        self.types = types or dict(con.execute("SELECT name, type FROM fact").fetchall())
        self.rules = load_rules(con, [FRAMEWORK], None, self.types)
        self.today = today or datetime.date.today().strftime("%Y-%m")
        self._seen: dict[tuple[tuple[str, str], ...], list[_Break]] = {}
        self._asked = {"framework", "framework_version", *PACKAGES.values(), *_PLACES}
        for rule in self.rules:
            self._asked.update(rule.facts, _PLACE.findall(f"{rule.message_en} {rule.ways_out}"))

    def findings(
        self,
        stack: StackFacts,
        job: Mapping[str, Any] | None = None,
        *,
        spans: Mapping[str, Span | None] | None = None,
        already: Sequence[Rule] = (),
    ) -> list[Finding]:
        """Findings of a stack; ``job`` are a job's facts by name, ``already`` rules of its framework that broke.

        Where a rule of the framework has said the same, the stack's rule stays silent.
        """
        base = {**stack, **(job or {})}
        facts = self._facts(base)
        places = {**stack.spans, **(spans or {})}
        broken = self._broken(facts)
        said = [item for item in broken if not _repeats(item, already)]
        ways = self._ways(base, said, {item.rule.id for item in broken if item.rule.severity == "impossible"})
        findings = [self._finding(item, places, ways.get(item.rule.id, ())) for item in said]
        return findings + self._notes(stack, facts, places, alone=job is None)

    def report(self, stack: Stack) -> Report:
        """The report of a stack on its own: ``supported`` needs a confirmed torch_npu and CANN pair and no warning."""
        facts = stack.facts(self.con)
        findings = self.findings(facts)
        if "npu" in stack.absent:
            findings.append(self.catalogue.finding("AC3001", {}))
        failure = stack.value("npu_smi_failure")
        if failure:
            findings.append(self.catalogue.finding("AC3002", {"reason": failure}))
        findings += [
            self.catalogue.finding("AC3009", {"remark": english}, {"remark": chinese})
            for english, chinese in stack.notes
        ]
        verdict: Verdict = "supported"
        if any(finding.severity == "error" for finding in findings):
            verdict = "impossible"
        elif any(finding.severity == "warning" for finding in findings) or not self._confirmed(facts):
            verdict = "unverified"
        return Report(stack.source, None, None, None, None, None, verdict, sorted(findings, key=_order))

    def _confirmed(self, stack: StackFacts) -> bool:
        facts = self._facts(stack)
        return facts.get("cann_version") in facts.get("torch_npu_cann", ()) and "torch_release" in facts

    def _facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {**facts, **table_facts(self.tables, facts, self.today)}

    def _rows(self, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The stack with each of its frameworks, then each package such a framework bounds."""
        named = facts.get("framework")
        version = facts.get("framework_version")
        frameworks = framework_facts(self.tables, facts, named, version)
        rows = [{**facts, **framework} for framework in frameworks] or [dict(facts)]
        versions = {package: facts[fact] for package, fact in PACKAGES.items() if facts.get(fact)}
        if facts.get("python_version"):
            versions["python"] = facts["python_version"]
        for framework in frameworks:
            for bound in bound_facts(self.tables, versions, framework):
                rows.append({**bound, "disable_version_check": facts.get("disable_version_check")})
        return rows

    def _broken(self, facts: Mapping[str, Any]) -> list[_Break]:
        """Rules that facts break; jobs that differ only in what no rule asks for are answered once."""
        key = tuple(sorted((name, repr(value)) for name, value in facts.items() if name in self._asked))
        if key not in self._seen:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[key] = self._evaluate(facts)
        return self._seen[key]

    def _evaluate(self, facts: Mapping[str, Any]) -> list[_Break]:
        rows = self._rows(facts)
        outcomes = evaluate(self.con, [Row(row) for row in rows], self.rules, Vocabulary(self.types, (), ()))
        found: dict[tuple[str, str], _Break] = {}
        for row, outcome in zip(rows, outcomes):
            for rule in outcome.broken:
                found.setdefault((rule.id, fill(rule.message_en, dict(row))), _Break(rule, row))
        return list(found.values())

    def _ways(
        self, base: Mapping[str, Any], broken: Sequence[_Break], before: set[str]
    ) -> dict[str, tuple[WayOut, ...]]:
        """Versions that mend a rule and break no other, by rule; every one is tried on the rules first."""
        found: dict[str, list[WayOut]] = {}
        for item in broken:
            for way in item.rule.ways_out:
                name = way.get("change")
                if name not in _CHOICES:
                    continue
                held = [
                    value
                    for value in self._candidates(name, item.facts)
                    if self._mends(base, name, value, item, before)
                ]
                if held:
                    text = _choice(name, held[:_SHOWN])
                    found.setdefault(item.rule.id, []).append(WayOut(text, {name: held[0]}))
        return {rule: tuple(ways) for rule, ways in found.items()}

    def _candidates(self, name: str, facts: Mapping[str, Any]) -> list[str]:
        for listed in _CHOICES[name][0]:
            values = [value for value in facts.get(listed) or () if value != facts.get(name)]
            if values:
                return values[:_TRIED]
        return []

    def _mends(self, base: Mapping[str, Any], name: str, value: str, item: _Break, before: set[str]) -> bool:
        changed = {**base, name: value}
        if name == "torch_version":
            changed["torch_release"] = release_of(value)
        if name == "cann_version" and base.get("nnal_version"):
            changed["nnal_version"] = value
        after = {
            broken.rule.id for broken in self._broken(self._facts(changed)) if broken.rule.severity == "impossible"
        }
        return item.rule.id not in after and after <= before

    def _finding(self, item: _Break, places: Mapping[str, Span | None], computed: tuple[WayOut, ...]) -> Finding:
        rule, facts = item.rule, item.facts
        words, words_zh = _words(facts, ", "), _words(facts, "、")
        severity: Severity = "error" if rule.severity == "impossible" else "warning"
        ways = [*computed]
        for way in rule.ways_out:
            if "say" in way and _filled(way["say"]["en"], words):
                ways.append(WayOut(Text(fill(way["say"]["en"], words), fill(way["say"]["zh"], words_zh))))
        shown = [name for name in rule.facts if facts.get(name) is not None]
        reason = ", ".join(f"{name} = {show(facts[name])}" for name in shown)
        named = [_placed(name, facts) for name in _by_place(rule, shown)]
        place = next((places[name] for name in named if places.get(name) is not None), None)
        return Finding(
            code=rule.id,
            severity=severity,
            message=Text(fill(rule.message_en, words), fill(rule.message_zh, words_zh)),
            topic=rule.topic,
            verdict="impossible" if rule.severity == "impossible" else None,
            span=place,
            reason=Text(reason, reason.replace(", ", "，")) if reason else None,
            sources=self._sources(rule, facts),
            ways_out=tuple(ways),
            facts={name: facts[name] for name in shown},
        )

    def _sources(self, rule: Rule, facts: Mapping[str, Any]) -> tuple[Source, ...]:
        own = Source(address(rule.source), rule.source.get("date"), None, rule.source.get("symbol"))
        for fact, name, too in _ROW_SOURCES:
            if fact in rule.facts and facts.get(name):
                rows = tuple(_source(text) for text in facts[name][:_SHOWN])
                return (own, *rows) if too else rows
        return (own,)

    def _notes(
        self, stack: StackFacts, facts: Mapping[str, Any], places: Mapping[str, Span | None], alone: bool
    ) -> list[Finding]:
        notes = []
        absent = {f"{name}_version" for name in stack.stack.absent} | (
            {"chip"} if "npu" in stack.stack.absent else set()
        )
        chip = facts.get("chip")
        if chip and "chip_family" not in facts:
            notes.append(self.catalogue.finding("AC3004", {"chip": chip}, span=places.get("chip")))
        if facts.get("vllm_ascend_version") and not facts.get("nnal_version"):
            words = {"vllm_ascend_version": facts["vllm_ascend_version"]}
            notes.append(self.catalogue.finding("AC3005", words, topic="version-nnal-CANN"))
        ended = self._ended(facts) if facts.get("torch_npu_version") else None
        if ended:
            words = {"torch_release": facts["torch_release"], "date": ended}
            sources = (Source(self.tables.source("torch_npu_lifecycle")),)
            notes.append(self.catalogue.finding("AC3006", words, span=places.get("torch_version"), sources=sources))
        missing = [item for item in _EXPECTED if item[0] not in stack and item[0] not in absent]
        if alone and missing:
            words_en = {"missing": ", ".join(item[1] for item in missing)}
            words_zh = {"missing": "、".join(item[2] for item in missing)}
            notes.append(self.catalogue.finding("AC3008", words_en, words_zh))
        return notes

    def _ended(self, facts: Mapping[str, Any]) -> str | None:
        for row in self.tables.rows("torch_npu_lifecycle"):
            if row["torch"] == facts.get("torch_release") and row["end_of_life"] != "none":
                return str(row["end_of_life"])
        return None


def check_stack(
    con: duckdb.DuckDBPyConnection, stack: Stack, job: Mapping[str, Any] | None = None, today: str | None = None
) -> list[Finding]:
    """Findings of a stack, alone or with a job's facts by name (``bf16``, ``nnodes``, ``devices_per_node``, ``framework``)."""
    return StackChecker(con, today=today).findings(stack.facts(con), job)


def stack_findings(
    engine: Engine, job: Job, row: Row, outcome: Outcome, stack: Mapping[str, Any], release: str | None = None
) -> list[Finding]:
    """Findings of the stack a job is checked on, less what the framework's own rules have said.

    ``release`` is the product's release the job is checked against; AscendFactory's names the stack it comes with.
    """
    if not isinstance(stack, StackFacts):
        stack = StackFacts(Stack("stack"), stack, {})
    facts = {name: value for name, value in {**outcome.derived, **row.facts}.items() if value is not None}
    facts["framework"] = job.launch.framework
    facts["framework_version"] = job.version
    if job.launch.product == BUNDLE and release and "ascendfactory_release" not in stack:
        facts["ascendfactory_release"] = release
    spans = {name: fact.span for name, fact in job.facts.items() if fact.origin == "stated"}
    checker = _CHECKERS.get(engine)
    if checker is None:
        checker = _CHECKERS[engine] = StackChecker(engine.con, engine.types)
    return checker.findings(stack, facts, spans=spans, already=outcome.broken)


def at_stack_lines(findings: Sequence[Finding], stack: Mapping[str, Any]) -> list[Finding]:
    """Findings of the framework's rules without a key in the job, put at the line of the stack they are about."""
    if not isinstance(stack, StackFacts):
        return list(findings)
    return [finding if finding.key else _at(finding, stack.spans) for finding in findings]


def _at(finding: Finding, spans: Mapping[str, Span | None]) -> Finding:
    versions_first = sorted(finding.facts, key=lambda name: not name.endswith("_version"))
    span = next((spans[name] for name in versions_first if spans.get(name) is not None), None)
    return replace(finding, span=span) if span else finding


def _repeats(item: _Break, already: Sequence[Rule]) -> bool:
    topics = item.rule.topic, item.rule.facts
    for rule in already:
        if rule.topic == topics[0] and set(rule.facts) & set(topics[1]):
            return True
        package = item.facts.get("package") if item.rule.id.startswith("ST-BOUND") else None
        if package and f"{package}_version" in rule.facts and rule.topic.startswith("version"):
            return True
    return False


def _by_place(rule: Rule, names: Sequence[str]) -> list[str]:
    changed = [way["change"] for way in rule.ways_out if way.get("change") in names]
    text = f"{rule.requires} {rule.when or ''}"
    return changed + sorted(names, key=text.find)


def _placed(name: str, facts: Mapping[str, Any]) -> str:
    """The fact whose line shows another: a bounded package's version stands where that package is listed."""
    if name == "package_version":
        return PACKAGES.get(facts["package"], f"{facts['package']}_version")
    return name


def _choice(name: str, held: Sequence[str]) -> Text:
    """The first of some versions that fit as a command, the rest named behind it."""
    english, chinese = (template.format(held[0]) for template in _CHOICES[name][1:])
    if len(held) > 1:
        english += f"; {' or '.join(held[1:])} would do as well"
        chinese += f"；{'、'.join(held[1:])} 也可"
    return Text(english, chinese)


def _source(written: str) -> Source:
    """An address of a table's row; a date in brackets at its end is its date."""
    found = re.match(r"(.*\S) \((\d{4}-\d\d(?:-\d\d)?)\)$", written)
    return Source(found.group(1), found.group(2)) if found else Source(written)


def _words(facts: Mapping[str, Any], between: str) -> dict[str, Any]:
    return {name: between.join(map(str, value)) if isinstance(value, list) else value for name, value in facts.items()}


def _filled(template: str, words: Mapping[str, Any]) -> bool:
    return all(words.get(name) not in (None, [], "") for name in _PLACE.findall(template))


def _order(finding: Finding) -> tuple[int, int, str]:
    severity = ("error", "warning", "note").index(finding.severity)
    return severity, finding.span.line if finding.span else 0, finding.code


def probe_findings(checker: StackChecker, results: Sequence[tuple[str, str | None, int | None]]) -> list[Finding]:
    """Findings of a probe: what importing each module came to."""
    findings = []
    for module, reason, devices in results:
        if reason is not None:
            words: dict[str, Any] = {"module": module, "reason": reason}
            findings.append(checker.catalogue.finding("AC3003", words, topic="autoload", verdict="impossible"))
        else:
            findings.append(checker.catalogue.finding("AC3007", {"module": module, "devices": devices}))
    return findings
