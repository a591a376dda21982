"""From launches to reports: interpret, run the rules, ask the claims, find ways out, decide the verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ascend_compat.check.catalogue import Catalogue, fill, show
from ascend_compat.check.claims import BUNDLE, Claims, Question
from ascend_compat.check.finding import VERDICTS, Finding, Report, Source, Text, WayOut
from ascend_compat.check.remembered import Remembered
from ascend_compat.check.rules import Row, Rule, Vocabulary, evaluate, load_rules
from ascend_compat.check.sources import address
from ascend_compat.check.wayout import Broken, ways_out
from ascend_compat.jobs.model import Fact, Span
from ascend_compat.matrix.predicates import names_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb

    from ascend_compat.check.finding import Severity, Verdict
    from ascend_compat.jobs.model import Job, Launch, Problem
    from ascend_compat.jobs.spec import Spec

# jobs whose ways out are kept
_KEPT = 2000
_ORIGIN = {
    "default": ("default", "默认值"),
    "model": ("from the model", "来自模型"),
    "derived": ("derived", "推导得出"),
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the caller may say besides the jobs."""

    product: str | None = None
    release: str | None = None
    framework_version: str | None = None
    stack: Mapping[str, Any] | None = None


class Engine:
    """One matrix connection and what was read from it; serves any number of jobs."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        from ascend_compat.matrix.names import Names

        self.con = con
        self.catalogue = Catalogue(con)
        self.claims = Claims(con, self.catalogue)
        self.names = Names(con)
        self._asked = Remembered(con)
        self._types: dict[str, str] | None = None
        self._specs: dict[str, Spec | None] = {}
        self._rules: dict[tuple[str, str, str | None], list[Rule]] = {}
        self._ways: dict[tuple[object, str, frozenset[str]], dict[str, tuple[WayOut, ...]]] = {}

    @property
    def types(self) -> dict[str, str]:
        """Declared facts and their types."""
        if self._types is None:
            self._types = dict(self.con.execute("SELECT name, type FROM fact").fetchall())
        return self._types

    def spec(self, framework: str) -> Spec | None:
        """Keys, derivations and features of a framework; None for one the matrix does not hold."""
        if framework not in self._specs:
            from ascend_compat.jobs.spec import load_spec

            self._specs[framework] = load_spec(self.con, framework)
        return self._specs[framework]

    def vocabulary(self, framework: str) -> Vocabulary:
        """What the rule engine needs of a framework."""
        spec = self.spec(framework)
        if spec is None:
            return Vocabulary(self.types, (), ())
        return Vocabulary(self.types, spec.derived, spec.features, spec.trees)

    def rules(self, framework: str, version: str, bundle: str | None = None) -> list[Rule]:
        """Rules of a framework at a version; for a file of the bundle also those of that release of the bundle."""
        key = (framework, version, bundle)
        if key not in self._rules:
            spec = self.spec(framework)
            ordinals = {framework: self.names.ordinal(spec.product, version) if spec else None}
            frameworks = [framework]
            if bundle is not None:
                frameworks.append(BUNDLE)
                ordinals[BUNDLE] = self.names.ordinal(BUNDLE, bundle)
            self._rules[key] = load_rules(self.con, frameworks, ordinals, self.types)
        return self._rules[key]

    def check(self, launches: Sequence[Launch], options: Options) -> list[Report]:
        """One report a launch, in the order given; launches of one framework and version share their statements."""
        jobs = [self.understand(launch, options) for launch in launches]
        reports: list[Report | None] = [None] * len(jobs)
        groups: dict[tuple[str, str, str | None], list[int]] = {}
        for number, job in enumerate(jobs):
            if job is None:
                reports[number] = self._unread(launches[number])
            else:
                groups.setdefault((job.launch.framework, job.version, self._bundle(job, options)), []).append(number)
        for (framework, version, bundle), numbers in groups.items():
            members = [job for job in (jobs[number] for number in numbers) if job is not None]
            for number, report in zip(numbers, self._group(framework, version, bundle, members, options)):
                reports[number] = report
        return [report for report in reports if report is not None]

    def understand(self, launch: Launch, options: Options) -> Job | None:
        """A launch with its facts, derived ones left out; None for a framework the matrix does not hold."""
        from ascend_compat.jobs.interpret import interpret

        spec = self.spec(launch.framework)
        if spec is None:
            return None
        version, basis = self.version_of(launch, spec, options)
        return interpret(launch, spec, version, basis, names=self.names, con=self.con)

    def version_of(self, launch: Launch, spec: Spec, options: Options) -> tuple[str, str]:
        """The framework version a job's keys are read under, and what says so: option, stack, release or default."""
        if options.framework_version:
            return options.framework_version, "option"
        installed = (options.stack or {}).get(f"{launch.framework.replace('-', '_')}_version")
        if isinstance(installed, str):
            return installed, "stack"
        if self.product_of(launch, options) == BUNDLE:
            release = options.release or self.claims.release_for(BUNDLE, launch.framework)[0]
            version, assumed = self.claims.framework_version(BUNDLE, release, launch.framework)
            if version:
                return version, "release"
            if assumed:
                return assumed, "assumed"
        return spec.newest, "default"

    def product_of(self, launch: Launch, options: Options) -> str:
        """Whose table answers: the option's, else the one the job's form names."""
        return options.product or launch.product

    def _unread(self, launch: Launch) -> Report:
        return Report(launch.file, launch.line, launch.product, None, launch.framework, None, "unverified", [])

    def _bundle(self, job: Job, options: Options) -> str | None:
        """The release of the bundle whose own rules a file in the bundle's form must keep."""
        if job.launch.product != BUNDLE:
            return None
        named = options.release if options.product in (None, BUNDLE) else None
        return named or self.claims.release_for(BUNDLE, job.launch.framework)[0]

    def _add_bundle_facts(self, job: Job, framework: str, bundle: str) -> None:
        """The backend the bundle is told to use, and the published minimum number of devices of model, method and length."""
        job.facts.setdefault("af_backend", Fact("af_backend", framework, "derived"))
        length, method = job.facts.get("seq_length"), job.facts.get("finetuning_type")
        lora = job.facts.get("lora_r")
        named = method.value if method and method.value else "lora" if lora and lora.origin == "stated" else "full"
        row = self._asked.execute(
            "SELECT least(snt9b, snt9b23) FROM minimum_devices d JOIN release r USING (product, release) WHERE d.product = ? "
            "AND d.framework = ? AND d.model = ? AND d.method = ? AND d.seq_length >= ? AND r.ordinal <= ? "
            "AND snt9b IS NOT NULL ORDER BY r.ordinal DESC, d.seq_length, snt9b LIMIT 1",
            [BUNDLE, framework, job.model, named, length.value if length else None, self.names.ordinal(BUNDLE, bundle)],
        ).fetchone()
        if row:
            job.facts.setdefault("af_min_cards", Fact("af_min_cards", row[0], "derived"))

    def _group(
        self, framework: str, version: str, bundle: str | None, jobs: Sequence[Job], options: Options
    ) -> list[Report]:
        vocabulary = self.vocabulary(framework)
        rules = self.rules(framework, version, bundle)
        for job in jobs if bundle else ():
            self._add_bundle_facts(job, framework, str(bundle))
        rows = [row_of(job, options.stack) for job in jobs]
        outcomes = evaluate(self.con, rows, rules, vocabulary)
        broken = [Broken(row, outcome.broken) for row, outcome in zip(rows, outcomes) if outcome.broken]
        found = iter(self._ways_out((framework, version, bundle), broken))
        reports = []
        for job, row, outcome in zip(jobs, rows, outcomes):
            ways = next(found) if outcome.broken else {}
            findings = [self.problem(problem) for problem in (*job.launch.problems, *job.problems)]
            findings += [
                self.broken_rule(rule, job, row, outcome.derived, ways.get(rule.id, ())) for rule in outcome.broken
            ]
            report = Report(
                job.launch.file,
                job.launch.line,
                self.product_of(job.launch, options),
                None,
                framework,
                version,
                "unverified",
            )
            self._claims(job, outcome.features, options, report, findings)
            if options.stack is not None:
                from ascend_compat.check.stack import at_stack_lines, stack_findings

                findings = at_stack_lines(findings, options.stack)
                findings += stack_findings(self, job, row, outcome, options.stack, report.release)
            report.findings = sorted(findings, key=_order)
            report.verdict = worst([report.verdict, *(finding.verdict for finding in findings)])
            reports.append(report)
        return reports

    def _ways_out(
        self, key: tuple[str, str, str | None], broken: Sequence[Broken]
    ) -> list[dict[str, tuple[WayOut, ...]]]:
        """Ways out of each; jobs of the same facts share theirs, as the files of one experiment often do."""
        spec = self.spec(key[0])
        assert spec is not None
        if len(self._ways) > _KEPT:
            self._ways.clear()
        ids = [(key, repr(sorted(job.row.facts.items())), job.row.unknown) for job in broken]
        new = {each: job for each, job in zip(ids, broken) if each not in self._ways}
        if new:
            found = ways_out(self.con, list(new.values()), self.rules(*key), self.vocabulary(key[0]), spec.switch_of)
            self._ways.update(zip(new, found))
        return [self._ways[each] for each in ids]

    def _claims(
        self, job: Job, features: Sequence[str], options: Options, report: Report, findings: list[Finding]
    ) -> None:
        if job.model is None:
            named = job.facts.get("model")
            if named is not None and isinstance(named.value, str):
                findings.append(self.catalogue.finding("AC1006", {"model": named.value}, span=named.span))
            report.release = self._release(report, job, options)
            return
        spec = self.spec(job.launch.framework)
        spans = {name: self._asked_at(job, spec, name) for name in features}
        named = job.facts.get("model")
        question = Question(job.launch.framework, job.model, tuple(features), spans, named.span if named else None)
        answer = self.claims.answer(report.product or "", self._release(report, job, options, default=None), question)
        report.release = answer.release
        report.verdict = answer.verdict
        findings.extend(answer.findings)
        if report.product != BUNDLE:
            findings.extend(self.claims.notes(BUNDLE, question))

    def _release(self, report: Report, job: Job, options: Options, default: str | None = "newest") -> str | None:
        """The release asked for, else that of the framework's own version, else (with a default) the newest with a table."""
        product = report.product or ""
        if options.release:
            return options.release
        if product != BUNDLE:
            own = self.claims.own_release(product, job.launch.framework, job.version)
            if own:
                return own
        return self.claims.release_for(product, job.launch.framework)[0] if default else None

    def _asked_at(self, job: Job, spec: Spec | None, feature: str) -> Span | None:
        """The line that asks for a feature: the first stated fact its condition names."""
        when = dict(spec.features).get(feature, "") if spec else ""
        for name in sorted(names_in(when), key=when.find):
            fact = job.facts.get(name)
            if fact is not None and fact.origin == "stated":
                return fact.span
        return None

    def against_architecture(self, product: str, release: str | None, question: Question) -> list[Finding]:
        """A warning where a table ticks a feature of expert layers for a model that has none."""
        if "expert-parallel" not in question.features:
            return []
        row = self.con.execute("SELECT num_experts FROM model WHERE id = ?", [question.model]).fetchone()
        if row is None or row[0]:
            return []
        words = self.claims.labels.words(
            product=product, release=release, model=question.model, feature="expert-parallel"
        )
        return [self.catalogue.finding("AC1010", *words, topic="ep-world")]

    def problem(self, problem: Problem) -> Finding:
        """The finding of something a reader could not take."""
        return self.catalogue.finding(problem.code, dict(problem.words), span=problem.span)

    def broken_rule(
        self, rule: Rule, job: Job | None, row: Row, derived: Mapping[str, Any], ways: tuple[WayOut, ...]
    ) -> Finding:
        """The finding of a broken rule, at the line a user would edit first."""
        values = {**row.facts, **{name: value for name, value in derived.items() if row.facts.get(name) is None}}
        facts = job.facts if job else {}
        span, key = self._place(rule, facts)
        if span is None and job is not None:
            span = _unknown_key_at(rule, job) or Span(job.launch.file, job.launch.line)
        severity: Severity = "error" if rule.severity == "impossible" else "warning"
        reason = Text(
            ", ".join(_because(name, values.get(name), facts.get(name), 0) for name in rule.facts),
            "，".join(_because(name, values.get(name), facts.get(name), 1) for name in rule.facts),
        )
        return Finding(
            code=rule.id,
            severity=severity,
            message=Text(fill(rule.message_en, values), fill(rule.message_zh, values)),
            topic=rule.topic,
            verdict="impossible" if rule.severity == "impossible" else None,
            span=span,
            key=key,
            reason=reason,
            sources=(Source(address(rule.source), rule.source.get("date"), None, rule.source.get("symbol")),),
            ways_out=ways,
            facts={name: values.get(name) for name in rule.facts},
        )

    def _place(self, rule: Rule, facts: Mapping[str, Fact]) -> tuple[Span | None, str | None]:
        order = [way["change"] for way in rule.ways_out if "change" in way]
        order += [name for way in rule.ways_out for name in way.get("set", {})]
        order += sorted(rule.facts, key=f"{rule.requires} {rule.when or ''}".find)
        for origins in (("stated",), ("derived", "model", "default")):
            for name in order:
                fact = facts.get(name)
                if fact is not None and fact.span is not None and fact.origin in origins:
                    return fact.span, fact.key
        return None, None


def _unknown_key_at(rule: Rule, job: Job) -> Span | None:
    """The first key the framework does not know, for a rule that counts such keys."""
    if not any(name.startswith("unknown") for name in rule.facts):
        return None
    return next((problem.span for problem in job.problems if problem.code in _UNKNOWN_KEY_CODES), None)


_UNKNOWN_KEY_CODES = ("AC2020", "AC2021", "AC2022", "AC2039")


def row_of(job: Job, stack: Mapping[str, Any] | None) -> Row:
    """A job's own facts (stated, defaults, its model's) beside the facts of its stack."""
    facts = {name: fact.value for name, fact in job.facts.items() if fact.origin != "unknown"}
    unknown = frozenset(name for name, fact in job.facts.items() if fact.origin == "unknown")
    if stack:
        facts = {**stack, **facts}
    return Row(facts, unknown)


def worst(verdicts: Iterable[Verdict | None]) -> Verdict:
    """The worst of some verdicts; none at all is ``supported``."""
    return max((verdict for verdict in verdicts if verdict), key=VERDICTS.index, default="supported")


def _order(finding: Finding) -> tuple[int, int, str]:
    severity = ("error", "warning", "note").index(finding.severity)
    return severity, finding.span.line if finding.span else 0, finding.code


def _because(name: str, value: Any, fact: Fact | None, language: int) -> str:
    text = f"{name} = {show(value)}"
    if fact is not None and fact.origin == "stated" and fact.span is not None:
        return f"{text} (line {fact.span.line})" if language == 0 else f"{text}（第 {fact.span.line} 行）"
    if fact is not None and fact.origin in _ORIGIN:
        return f"{text} ({_ORIGIN[fact.origin][0]})" if language == 0 else f"{text}（{_ORIGIN[fact.origin][1]}）"
    return text
