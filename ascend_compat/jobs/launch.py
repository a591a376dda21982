"""Words of a command -> the launch it is: launcher options, the entry it starts, and the settings of its framework."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from ascend_compat.jobs import launch_arguments as arguments
from ascend_compat.jobs.bash_state import State, Variable, scalar
from ascend_compat.jobs.model import Launch, Problem, Setting, Span
from ascend_compat.jobs.shell_text import Word, place, text_of
from ascend_compat.jobs.wrappers import value_of

_PYTHON = re.compile(r"python[0-9.]*")
_LAUNCH_MODULES = re.compile(r"(?:torch|torch_npu)\.distributed\.(?:launch|run)|torchrun|accelerate\.commands\.launch")
_PYTHON_WITH_VALUE = frozenset(("-X", "-W", "-Q", "--check-hash-based-pycs"))
_BARE = {
    "torchrun": frozenset(
        (
            "--standalone", "--no_python", "--use_env", "--run_path", "-m", "--module", "--virtual_local_rank",
            "--help", "-h",
        )
    ),
    "deepspeed": frozenset(
        ("--no_local_rank", "--no_python", "--module", "-m", "--enable_each_rank_log", "--save_pid", "--use_pipe",
         "--no_ssh", "--no_ssh_check", "--force_multi", "--bind_cores_to_rank", "--elastic_training")
    ),
    "accelerate": frozenset(
        ("--cpu", "--multi_gpu", "--tpu", "--ipex", "--use_deepspeed", "--use_fsdp", "--use_megatron_lm", "--use_xpu",
         "--debug", "--quiet", "-q", "-m", "--module", "--no_python", "--same_network", "--enable_cpu_affinity",
         "--use_parallelism_config")
    ),
    "msrun": frozenset(),
}  # fmt: skip
_MODULE = frozenset(("-m", "--module"))
_MM = re.compile(
    r"(?:pretrain|posttrain|inference|evaluate|train)_(?:sora|vlm|llava|internvl|qwen\w*vl|qwen\w*omni|deepseekvl"
    r"|ae|t2v|i2v|omni|transformers|whisper|lumina|mm)\w*\.py"
)
_LLM = re.compile(
    r"(?:pretrain|posttrain|train_fsdp2|ray_gpt|inference|evaluation|evaluate|convert_ckpt|preprocess|cli_demo"
    r"|web_demo|run_text_generation)\w*\.py|\w+_ckpt_\w+\.py"
)
_MEGATRON = frozenset(("--tensor-model-parallel-size", "--num-attention-heads", "--global-batch-size"))
_MULTIMODAL = frozenset(("--mm-data", "--mm-model", "--mm-tool"))
_LLAMA = frozenset(("train_bash.py", "llamafactory", "llamafactory.cli", "llamafactory.launcher"))
_LLAMA_KEYS = frozenset(("--model_name_or_path", "--stage", "--finetuning_type"))


@dataclass(slots=True)
class _Command:
    """A command under its launcher: what is started, with which arguments."""

    entry: str = ""
    module: bool = False
    arguments: list[Word] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    program: str = ""


def recognise(words: list[Word], span: Span, state: State) -> Launch | None:
    """The launch that a command is; None for any other command."""
    command = _Command()
    name = text_of(words[0]).rpartition("/")[2]
    launch: Launch | None = None
    if name in ("llamafactory-cli", "lmf"):
        launch = _llamafactory_cli(words, span)
    elif name == "ascendfactory-cli":
        launch = Launch(span.file, span.line, "bash", "ascendfactory", "ascendfactory", _with_verb(name, words))
        launch.settings += arguments.job_file(words[1:], launch, dotted=True)
    elif name == "vllm" and text_of(words[1] if len(words) > 1 else []) == "serve":
        launch = Launch(span.file, span.line, "bash", "vllm", "vllm", "vllm serve")
        rest = words[2:]
        if rest and not text_of(rest[0]).startswith("-"):
            launch.settings.append(arguments.setting("--model", rest[0]))
            rest = rest[1:]
        launch.settings += arguments.flags(rest, launch)
    elif _started(words, command):
        launch = _entry(command, span)
    if launch is None:
        return None
    launch.settings[:0] = [*_environment(state), *command.settings]
    if launch.framework == "mindspeed-rl":
        launch.settings[:0] = _variables(state, ("NNODES", "NPUS_PER_NODE"))
    if launch.framework == "llamafactory":
        launch.settings.append(Setting("launch:program", command.program or name, span))
        verb = launch.entry.partition(" ")[2]
        launch.settings.append(Setting("launch:command", verb or "train", span))
    launch.problems[:0] = command.problems
    return launch


def by_arguments(words: list[Word], span: Span, state: State) -> Launch | None:
    """The launch of a program that the file does not name, known by verl's overrides among its arguments."""
    sections = {text_of(word).lstrip("+").partition(".")[0] for word in words[1:] if "=" in text_of(word)}
    if not {"trainer", "data"} <= sections:
        return None
    launch = Launch(span.file, span.line, "bash", "verl", "verl", text_of(words[0]))
    launch.settings += [*_environment(state), *arguments.overrides(words[1:], launch)]
    return launch


def _with_verb(name: str, words: list[Word]) -> str:
    verb = text_of(words[1]) if len(words) > 1 else ""
    return f"{name} {verb}" if verb.isalpha() else name


def _environment(state: State) -> list[Setting]:
    return _variables(state, sorted(state.exported), "env")


def _variables(state: State, names: Iterable[str], kind: str = "shell") -> list[Setting]:
    """Variables of the script that have a value, as settings ``kind:NAME``."""
    settings: list[Setting] = []
    for name in names:
        value: Variable | None = state.variables.get(name)
        text = scalar(value)
        if text:
            at, chain, note = place(text)
            settings.append(Setting(f"{kind}:{name}", value_of(list(text)), at, chain, guess=note))
    return settings


def _llamafactory_cli(words: list[Word], span: Span) -> Launch:
    launch = Launch(span.file, span.line, "bash", "llamafactory", "llamafactory", _with_verb("llamafactory-cli", words))
    launch.settings += arguments.job_file(words[1:], launch, dotted=False)
    return launch


def _started(words: list[Word], command: _Command) -> bool:
    """Takes launcher options off ``words``; whether a Python program is started."""
    for _ in range(4):
        if not words:
            return False
        name = text_of(words[0]).rpartition("/")[2]
        if not command.program or command.program == "python":
            command.program = "python" if _PYTHON.fullmatch(name) else name
        if name == "accelerate" and text_of(words[1] if len(words) > 1 else []) == "launch":
            words = _options("accelerate", words[2:], command)
        elif name in ("torchrun", "deepspeed", "msrun"):
            words = _options(name, words[1:], command)
        elif _PYTHON.fullmatch(name):
            words = _python(words[1:], command)
        else:
            command.entry, command.arguments = text_of(words[0]), words[1:]
            return name.endswith(".py") or command.module
        if command.module and words:
            module = text_of(words[0])
            if _LAUNCH_MODULES.fullmatch(module):
                command.module = False
                command.program = "torchrun" if module.startswith("torch.") else module.partition(".")[0]
                launcher = "accelerate" if module.startswith("accelerate") else "torchrun"
                words = _options(launcher, words[1:], command)
        if command.module and len(words) > 1 and text_of(words[0]) == "verl_mlite.launch":
            words = words[1:]
        if words and not _PYTHON.fullmatch(text_of(words[0]).rpartition("/")[2]):
            command.entry, command.arguments = text_of(words[0]), words[1:]
            return command.module or command.entry.endswith(".py")
    return False


def _python(words: list[Word], command: _Command) -> list[Word]:
    index = 0
    while index < len(words):
        text = text_of(words[index])
        if text == "-m":
            command.module = True
            return words[index + 1 :]
        if text == "-c" or not text.startswith("-"):
            break
        index += 2 if text in _PYTHON_WITH_VALUE else 1
    return [] if index < len(words) and text_of(words[index]) == "-c" else words[index:]


def _options(launcher: str, words: list[Word], command: _Command) -> list[Word]:
    """The launcher's own options as settings; the words from the started program on."""
    index = 0
    bare = _BARE[launcher]
    while index < len(words):
        word = words[index]
        text = text_of(word)
        if not text.startswith("-"):
            if arguments.is_absent(word) or (word[0].why is not None and not text.endswith(".py")):
                index += 1
                continue
            if not text.endswith(".py") and any(text_of(later).endswith(".py") for later in words[index:]):
                _broken(words, index, command)
                while not text_of(words[index]).endswith(".py"):
                    index += 1
            break
        option, equals, _ = text.partition("=")
        option = option[:2] + option[2:].replace("-", "_")
        index += 1
        if option in _MODULE:
            command.module = True
            if equals:
                return words[index - 1 :]
            break
        key = f"{launcher}:{option}"
        if equals:
            command.settings.append(arguments.setting(key, word, len(option) + 1))
        elif option in bare or index >= len(words):
            command.settings.append(arguments.bare(key, word))
        else:
            command.settings.append(arguments.setting(key, words[index]))
            index += 1
    return words[index:]


def _broken(words: list[Word], index: int, command: _Command) -> None:
    """A value with blanks and without quotes leaves words that the launcher takes for the program."""
    at = place(words[index])[0]
    command.problems.append(Problem("AC2114", at, {"word": text_of(words[index]), "text": at.text.strip()[:80]}))


def _entry(command: _Command, span: Span) -> Launch | None:
    entry = command.entry.removeprefix("./")
    base = entry.rpartition("/")[2]
    framework = _framework(entry, base, command.module)
    if framework is None and base == "train.py" and _is_llamafactory(entry, command.arguments):
        framework = "llamafactory"
    if framework in (None, "mindspeed-llm") and any(text_of(word) in _MULTIMODAL for word in command.arguments):
        framework = "mindspeed-mm"
    if framework is None and any(text_of(word) in _MEGATRON for word in command.arguments):
        framework = "mindspeed-llm"
    if framework is None:
        return None
    shown = entry if command.module else base
    if framework == "llamafactory" and base in ("train.py", "train_bash.py"):
        shown = entry
    launch = Launch(span.file, span.line, "bash", framework, framework, shown)
    if framework in ("verl", "mindspeed-rl") and "model_merger" not in entry:
        launch.settings += arguments.overrides(command.arguments, launch)
    elif framework == "llamafactory":
        launch.settings += arguments.job_file(command.arguments, launch, dotted=False)
    else:
        rest = command.arguments
        if rest and text_of(rest[0]).endswith((".yaml", ".yml", ".json")) and "fsdp2" in base:
            launch.settings.append(arguments.setting("file:config", rest[0]))
            rest = rest[1:]
        launch.settings += arguments.flags(rest, launch)
    return launch


def _is_llamafactory(entry: str, words: list[Word]) -> bool:
    """Whether a ``train.py``, a name that many projects use, is LLaMA-Factory's."""
    folder = entry.rpartition("/")[0]
    if re.search("llama-?factory", folder, re.IGNORECASE):
        return True
    if folder.rpartition("/")[2] not in ("", "src"):
        return False
    said = {text_of(word).partition("=")[0] for word in words}
    first = text_of(words[0]) if words else ""
    return bool(said & _LLAMA_KEYS) or (folder != "" and first.endswith((".yaml", ".yml", ".json")))


def _framework(entry: str, base: str, module: bool) -> str | None:
    """The framework whose entry a module or script is; None where it is none we know."""
    dotted = entry if module else entry.removesuffix(".py").replace("/", ".")
    if module:
        if entry.startswith("vllm.entrypoints"):
            return "vllm"
        if entry in _LLAMA or entry.startswith("llamafactory."):
            return "llamafactory"
    if re.search(r"(?:^|\.)(?:verl(?:_\w+)?\.(?:trainer|experimental|launch|model_merger)|recipe\.)", dotted) or (
        base.startswith(("main_ppo", "main_dapo", "fsdp_sft_trainer"))
    ):
        return "verl"
    if module:
        return "mindspeed-llm" if re.match(r"mindspeed_llm\.|pretrain_gpt|posttrain_gpt", entry) else None
    if re.search(r"(?:^|/)cli/(?:train|infer|convert|preprocess|eval)\w*\.py$|(?:^|/)rlhf_gpt\.py$", entry):
        return "mindspeed-rl"
    if _MM.fullmatch(base) or "mindspeed_mm/" in entry:
        return "mindspeed-mm"
    if base in _LLAMA:
        return "llamafactory"
    return "mindspeed-llm" if _LLM.fullmatch(base) else None
