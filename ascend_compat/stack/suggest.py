"""Sets of versions that agree with each other and with what a user asks for; or why there is none, and the nearest one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ascend_compat.stack.facts import FRAMEWORKS, minor_of
from ascend_compat.stack.model import Stack, Stated, package_name
from ascend_compat.stack.versions import cann_name, release_of, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ascend_compat.stack.tables import Record, Tables

# components a user may ask for, in the order reasons are given
WISHES = ("framework", "framework_version", "chip", "vllm", "vllm_ascend", "cann", "torch_npu", "torch", "python")
NAMES = {
    "framework": "framework", "framework_version": "release", "chip": "chip", "cann": "CANN", "nnal": "NNAL",
    "torch": "torch", "torch_npu": "torch-npu", "python": "Python", "vllm": "vllm", "vllm_ascend": "vllm-ascend",
    "triton_ascend": "triton-ascend", "transformers": "transformers", "mindspeed": "MindSpeed", "megatron": "Megatron-LM",
    "driver": "driver",
}  # fmt: skip
NAMES_ZH = {**NAMES, "framework": "框架", "framework_version": "版本", "chip": "芯片", "driver": "驱动"}
_PACKAGES = ("torch", "torch_npu", "vllm", "vllm_ascend", "triton_ascend", "transformers")
_TRAINING = ("A2", "A3")
# a branch, which no index offers
_BRANCH = "-dev"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One complete set: versions by component, the Python releases it runs on, and what each pair rests on."""

    components: dict[str, str]
    pythons: tuple[str, ...]
    sources: tuple[tuple[str, str], ...]

    def install(self, language: str = "en") -> list[str]:
        """Lines for a shell, in the order they have to run; comments in ``en`` or ``zh``."""
        parts, chinese = self.components, language == "zh"
        nnal = f", NNAL {parts['nnal']}" if "nnal" in parts else ""
        if chinese:
            lines = [
                f"# Python {parts['python']}；CANN {parts['cann']}：toolkit 与芯片对应的 kernels{nnal}；随后 source 其 set_env.sh"
            ]
        else:
            lines = [
                f"# Python {parts['python']}; CANN {parts['cann']}: toolkit, the kernels of your chip{nnal}; then source set_env.sh"
            ]
        for name in ("vllm", "vllm_ascend"):
            if name in parts and not parts[name].endswith(_BRANCH):
                lines.append(f"pip install {package_name(name)}=={parts[name]}")
        lines.append(f"pip install torch=={parts['torch']} torch-npu=={parts['torch_npu']}")
        rest = [f"{package_name(name)}=={parts[name]}" for name in ("triton_ascend", "transformers") if name in parts]
        if rest:
            lines.append(f"pip install {' '.join(rest)}")
        named = [f"{NAMES[name]} {parts[name]}" for name in ("megatron", "mindspeed") if name in parts]
        if parts.get("vllm_ascend", "").endswith(_BRANCH):
            named.append(f"vllm-ascend v{parts['vllm_ascend']}")
        if parts.get("framework") in ("llamafactory", "verl") and parts["framework_version"][0].isdigit():
            lines.append(f"pip install --no-deps {parts['framework']}=={parts['framework_version']}")
        elif parts.get("framework", "vllm-ascend") != "vllm-ascend":
            named.insert(0, f"{parts['framework']} {parts['framework_version']}")
        if named:
            lines.append(f"# 检出 {'、'.join(named)}" if chinese else f"# check out {', '.join(named)}")
        return lines

    def stack(self) -> Stack:
        """The set as a stack, to be checked like any other."""
        stack = Stack("suggested set")
        for name in ("chip", "cann", "nnal", "python"):
            if name in self.components:
                stack.state(name, self.components[name])
        for name in _PACKAGES:
            if name in self.components:
                stack.packages[package_name(name)] = Stated(self.components[name])
        framework = self.components.get("framework")
        if framework in FRAMEWORKS and self.components["framework_version"][0].isdigit():
            stack.packages[framework] = Stated(self.components["framework_version"])
        return stack


@dataclass(slots=True)
class Answer:
    """Sets, newest first; without any, the chain of reasons as (English, Chinese) and the nearest sets."""

    sets: list[Suggestion]
    reasons: list[tuple[str, str]] = field(default_factory=list)
    nearest: list[Suggestion] = field(default_factory=list)


def suggest(tables: Tables, wishes: Mapping[str, str]) -> Answer:
    """Sets for the wishes (names of :data:`WISHES`); ``framework`` is an id, the rest versions."""
    wishes = {name: wishes[name] for name in WISHES if wishes.get(name)}
    every = sorted(_candidates(tables), key=_age, reverse=True)
    fitting = [made for made in every if all(_fits(made, name, wish) for name, wish in wishes.items())]
    if "framework" not in wishes:
        fitting.sort(key=lambda made: "framework" in made.components)
    if fitting:
        return Answer(_unlike([_with(made, wishes) for made in fitting]))
    core = _core(every, wishes)
    counted = sorted(every, key=lambda made: -sum(_fits(made, name, wish) for name, wish in wishes.items()))
    best = sum(_fits(counted[0], name, wish) for name, wish in wishes.items())
    near = [made for made in counted if sum(_fits(made, name, wish) for name, wish in wishes.items()) == best]
    if "framework" not in wishes:
        near.sort(key=lambda made: "framework" in made.components)
    kept = {name: wish for name, wish in wishes.items() if _fits(near[0], name, wish)}
    return Answer([], _chain(every, core), _unlike([_with(made, kept) for made in near])[:1])


def _candidates(tables: Tables) -> Iterable[Suggestion]:
    official = tables.source("torch_npu")
    for row in tables.builds:
        yield from _complete(tables, row, {}, (("torch-npu / CANN", official),))
    source = tables.source("vllm_ascend")
    for row in tables.vllm_ascend:
        parts = {"framework": "vllm-ascend", "framework_version": row["vllm_ascend"]}
        parts |= {
            name: row[name] for name in ("vllm", "vllm_ascend", "triton_ascend") if row.get(name, "none") != "none"
        }
        yield from _complete(tables, row, parts, (("vllm-ascend / torch-npu / CANN", source),))
    for row in tables.sets:
        if "slip" in row:
            continue
        parts = {"framework": row["product"], "framework_version": row["release"]}
        for name in ("vllm", "vllm_ascend", "triton_ascend", "transformers", "mindspeed", "megatron", "driver"):
            if row.get(name):
                parts[name] = row[name].split("@")[0]
        yield from _complete(tables, row, parts, ((f"{row['product']} / torch / CANN", row["source"]),))


def _complete(
    tables: Tables, row: Record, parts: Mapping[str, str], sources: tuple[tuple[str, str], ...]
) -> Iterable[Suggestion]:
    build = row.get("torch_npu", "unknown")
    if build == "unknown":
        known = tables.builds_for(row["torch"], row["cann"])
        if not known:
            return
        build = known[0]["torch_npu"]
        sources = (*sources, ("torch-npu / CANN", tables.source("torch_npu")))
    pythons = _pythons(tables, row)
    if not pythons:
        return
    made = {"cann": cann_name(row["cann"]), "torch": row["torch"], "torch_npu": build.split("+")[0], **parts}
    if "vllm_ascend" in made:
        made["nnal"] = made["cann"]
    sources = (*sources, ("torch / Python", tables.source("torch_python")))
    yield Suggestion({**made, "python": pythons[-1]}, tuple(pythons), sources)


def _pythons(tables: Tables, row: Record) -> list[str]:
    built = sorted(tables.pythons(row["torch"]), key=version_key)
    stated = row.get("python", "unknown")
    if stated != "unknown":
        return [python for python in built if python == stated]
    if "python_min" in row:
        low, high = version_key(row["python_min"]), version_key(row["python_below"])
        return [python for python in built if low <= version_key(python) < high]
    return built


def _age(made: Suggestion) -> tuple[tuple[int, ...], ...]:
    parts = made.components
    return (
        version_key(parts["cann"]),
        version_key(parts["torch"]),
        version_key(parts["torch_npu"]),
        version_key(parts.get("framework_version", "")),
    )


def _fits(made: Suggestion, name: str, wish: str) -> bool:
    if name == "python":
        return minor_of(wish) in made.pythons
    if name == "chip":
        return wish in _TRAINING or "framework" not in made.components
    have = made.components.get(name)
    if name == "framework":
        return have == wish
    if have is None:
        return False
    if name == "torch":
        wish = release_of(wish)
    if not version_key(wish):
        return have == wish
    return version_key(have) == version_key(cann_name(wish) if name == "cann" else wish)


def _with(made: Suggestion, wishes: Mapping[str, str]) -> Suggestion:
    changed = dict(made.components)
    if "python" in wishes:
        changed["python"] = minor_of(wishes["python"]) or changed["python"]
    if "chip" in wishes:
        changed["chip"] = wishes["chip"]
    return Suggestion(changed, made.pythons, made.sources)


def _unlike(sets: Sequence[Suggestion]) -> list[Suggestion]:
    seen: dict[tuple[tuple[str, str], ...], Suggestion] = {}
    for made in sets:
        shown = tuple(sorted((name, value) for name, value in made.components.items() if name != "driver"))
        seen.setdefault(shown, made)
    return list(seen.values())


def _core(every: Sequence[Suggestion], wishes: Mapping[str, str]) -> dict[str, str]:
    """A smallest part of the wishes that no set meets: leave out one wish after the other while none does."""
    core = dict(wishes)
    for name in reversed(list(wishes)):
        fewer = {other: wish for other, wish in core.items() if other != name}
        if fewer and not any(all(_fits(made, other, wish) for other, wish in fewer.items()) for made in every):
            core = fewer
    return core


def _chain(every: Sequence[Suggestion], core: Mapping[str, str]) -> list[tuple[str, str]]:
    """What the wishes leave for the last one, and what that one needs in its turn."""
    *others, last = core.items()
    asked, asked_zh = _asked(*last)
    if not others:
        known = _values(every, last[0])
        return [
            (
                f"no table names {asked}; known are {', '.join(known)}",
                f"各表中没有 {asked_zh}；已知的有 {'、'.join(known)}",
            )
        ]
    left = [made for made in every if all(_fits(made, name, wish) for name, wish in others)]
    subject = " with ".join(_asked(*wish)[0] for wish in others)
    subject_zh = " 与 ".join(_asked(*wish)[1] for wish in others)
    meeting = [made for made in every if _fits(made, *last)]
    reasons = [_needs(subject, subject_zh, last[0], _values(left, last[0]))]
    if meeting:
        reasons.append(_needs(asked, asked_zh, others[0][0], _values(meeting, others[0][0])))
    else:
        reasons.append((f"no table names {asked}", f"各表中没有 {asked_zh}"))
    (english, chinese), (second, second_zh) = reasons
    return [(f"because {english},", f"因为 {chinese}，"), (f"and {second}.", f"而 {second_zh}。")]


def _needs(subject: str, subject_zh: str, name: str, values: Sequence[str]) -> tuple[str, str]:
    if not values:
        return f"{subject} comes without {NAMES[name]}", f"{subject_zh} 不含 {NAMES_ZH[name]}"
    listed = " or ".join(filter(None, (", ".join(values[:-1]), values[-1])))
    listed_zh = "、".join(values)
    if name == "framework":
        return f"{subject} is documented for {listed} alone", f"{subject_zh} 仅见于 {listed_zh} 的文档"
    return f"{subject} needs {NAMES[name]} {listed}", f"{subject_zh} 需要 {NAMES_ZH[name]} {listed_zh}"


def _asked(name: str, wish: str) -> tuple[str, str]:
    return (wish, wish) if name == "framework" else (f"{NAMES[name]} {wish}", f"{NAMES_ZH[name]} {wish}")


def _values(sets: Iterable[Suggestion], name: str) -> list[str]:
    if name == "chip":
        return list(_TRAINING)
    if name == "python":
        found = {python for made in sets for python in made.pythons}
    else:
        found = {made.components[name] for made in sets if name in made.components}
    return sorted(found, key=lambda value: (version_key(value), value), reverse=True)
