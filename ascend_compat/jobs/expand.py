"""A command that names a job file -> the launch with that file's settings below the command's own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ascend_compat.jobs import ascendfactory, llamafactory, mindspeed_rl, side_files, verl_yaml
from ascend_compat.jobs.model import Launch, Problem, Setting, Unresolved
from ascend_compat.jobs.yaml_tree import Document, TreeError

CONFIG = "file:config"
_ACCELERATE = ("accelerate:--config_file", "accelerate:--config-file")
# Names of verl's own and its recipes' configs, which stand beside the entry and not beside the script.
_SHIPPED = re.compile(r"(?:\w*_)?(?:trainer|trainer_engine)(?:\.yaml)?")
_HYDRA = ("mindspeed-rl", "verl")


def expand(launch: Launch, root: Path) -> Launch:
    """The launch with what its job file, accelerate file and DeepSpeed file say; ``root`` is the script's folder.

    A file that is not there is a problem, and what it may set is unknown.
    """
    if launch.framework == "mindspeed-llm" and "fsdp2" in launch.entry:
        launch.settings = [_fsdp2(setting) for setting in launch.settings]
    named = _named(launch)
    if named is not None and isinstance(named.value, str):
        path = _find(launch, named.value, root)
        if path is not None:
            launch = _with_file(launch, named, path)
        elif launch.framework != "verl" or not _SHIPPED.fullmatch(named.value):
            _missing(launch, named)
    if launch.framework == "llamafactory":
        _side_files(launch, root)
    return launch


def _named(launch: Launch) -> Setting | None:
    found = _last(launch, CONFIG)
    if found is None and launch.framework in _HYDRA:
        found = _last(launch, "--config-name")
        if launch.framework == "verl" and _folder(launch) is None:
            return None  # the shipped config, whose values are the framework's defaults
    return found


def _folder(launch: Launch) -> Setting | None:
    return _last(launch, "--config-path") or _last(launch, "--config-dir")


def _last(launch: Launch, key: str) -> Setting | None:
    return next((setting for setting in reversed(launch.settings) if setting.key == key), None)


def _find(launch: Launch, name: str, root: Path) -> Path | None:
    folders = ("configs", "configs/rlhf") if launch.framework == "mindspeed-rl" else ()
    path = _folder(launch)
    if path is not None and isinstance(path.value, str):
        folders = (path.value.removeprefix("./"), *folders)
    names = [name] if name.endswith((".yaml", ".yml", ".json")) else [f"{name}.yaml", name]
    for candidate in names:
        found = side_files.find(candidate, root, folders)
        if found is not None:
            return found
    return None


def _missing(launch: Launch, named: Setting) -> None:
    name = str(named.value)
    why = Unresolved(f"{name} is not here", f"找不到 {name}")
    launch.settings.insert(0, Setting(CONFIG, why, named.span, named.chain))
    launch.problems.append(Problem("AC2029", named.span, {"file": name}))
    if launch.product == "ascendfactory":
        paths = {setting.key.removeprefix("backend_config.").replace("-", "_") for setting in launch.settings}
        heads = {part for path in paths for part in _heads(path)}
        launch.framework = ascendfactory.backend_by_sections(heads) or launch.framework
        launch.settings = [_override(setting, launch.framework) for setting in launch.settings]


def _heads(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(1, min(len(parts), 3) + 1)]


def _with_file(launch: Launch, named: Setting, path: Path) -> Launch:
    try:
        document = side_files.document(path)
    except TreeError as error:
        launch.problems.append(error.problem)
        return launch
    inside = _inside(launch, document, path)
    if inside is None:
        return launch
    own = [setting for setting in launch.settings if setting is not named or named.key != CONFIG]
    if launch.product == "ascendfactory":
        own = [_override(setting, inside.framework) for setting in own]
        launch = replace(launch, framework=inside.framework)
    launch.settings = [*(replace(setting, chain=(*setting.chain, named.span)) for setting in inside.settings), *own]
    launch.problems = [*inside.problems, *launch.problems]
    return launch


def _inside(launch: Launch, document: Document, path: Path) -> Launch | None:
    folder = path.parent
    if launch.product == "ascendfactory":
        return ascendfactory.read(document, folder)
    inside = Launch(str(path), 1, launch.format, launch.framework, launch.product, launch.entry)
    inside.problems += document.problems
    if launch.framework == "llamafactory":
        llamafactory.add(inside, document, document.root, folder)
    elif launch.framework == "mindspeed-rl":
        mindspeed_rl.add(inside, document, document.root, folder)
    elif launch.framework == "verl":
        verl_yaml.add(inside, document, document.root)
    elif launch.framework == "mindspeed-llm":
        verl_yaml.add(inside, document, document.root)
        inside.settings = [replace(setting, key=f"fsdp2:{setting.key}") for setting in inside.settings]
    else:
        return None
    return inside


def _fsdp2(setting: Setting) -> Setting:
    """A dotted argument of the FSDP2 trainer, whose keys are not Megatron's."""
    if setting.key.startswith("--") and "." in setting.key:
        return replace(setting, key=f"fsdp2:{setting.key[2:]}")
    return setting


def _override(setting: Setting, framework: str) -> Setting:
    if ":" in setting.key:
        return setting
    return replace(setting, key=ascendfactory.override(framework, setting.key))


def _side_files(launch: Launch, root: Path) -> None:
    """The accelerate file on the command line, and the DeepSpeed file an override names."""
    for key in _ACCELERATE:
        setting = _last(launch, key)
        if setting is not None and isinstance(setting.value, str):
            settings, problems = side_files.accelerate(setting.value, setting.span, root)
            launch.settings[:0] = settings
            launch.problems += problems
    chosen = _last(launch, "deepspeed") or _last(launch, "--deepspeed")
    if chosen is not None and chosen.span.file == launch.file:
        launch.settings = [setting for setting in launch.settings if not setting.key.startswith("deepspeed-json:")]
        if isinstance(chosen.value, str) and chosen.value:
            settings, problems = side_files.deepspeed(chosen.value, chosen.span, root)
            launch.settings[:0] = settings
            launch.problems += problems
