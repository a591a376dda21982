"""Runs a LLaMA-Factory job: ``llamafactory.py --job plan.json --device npu|cpu --out FOLDER``."""

from __future__ import annotations

import importlib.util
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from common.launch import Framework, main

# figures of the summary file, by their own names, with their units
SUMMARY = {
    "train_loss": "nat/token",
    "train_runtime": "s",
    "train_samples_per_second": "sample/s",
    "train_steps_per_second": "step/s",
    "effective_tokens_per_sec": "token/s/device",
    "total_flos": "flop",
    "num_input_tokens_seen": "token",
    "eval_loss": "nat/token",
}
# text training imports these without using them
_UNUSED_BY_TEXT = ("torchaudio",)
_GIB = 1024**3


class LlamaFactory(Framework):
    """LLaMA-Factory writes one JSON object a logging event into its output folder, and its summary at the end."""

    package = "llamafactory"

    def __init__(self, plan: dict[str, Any], folder: Path, device: str) -> None:
        super().__init__(plan, folder, device)
        self.settings: dict[str, Any] = {}
        self.output: Path | None = None
        self._offset = 0
        self._tokens = 0
        self._done = False

    def prepare(self) -> None:
        """Where the job's results will lie."""
        self.settings = self._settings()
        if self.settings.get("output_dir"):
            self.output = self.cwd / str(self.settings["output_dir"])
            log = self.output / "trainer_log.jsonl"
            # an older run's lines are not this run's
            self._offset = log.stat().st_size if log.is_file() else 0

    def _settings(self) -> dict[str, Any]:
        """The job's own keys: the file's, then the words behind it."""
        from omegaconf import OmegaConf

        command = self.plan["command"]
        words = command if isinstance(command, list) else []
        merged: dict[str, Any] = {}
        for word in words:
            if word.endswith((".yaml", ".yml", ".json")) and "=" not in word:
                merged.update(OmegaConf.to_container(OmegaConf.load(self.cwd / word)))  # type: ignore[arg-type]
            elif re.match(r"[A-Za-z_][\w.]*=", word):
                key, _, value = word.partition("=")
                merged[key] = value
        return merged

    def command(self) -> list[str]:
        """On a CPU the job is told so, as the framework asks for it."""
        command = super().command()
        if self.device == "cpu" and isinstance(self.plan["command"], list):
            command.append("use_cpu=true")
        return command

    def environment(self) -> dict[str, str]:
        """Peak device memory in the log; no look at the network; on a CPU an empty module for each one text never uses."""
        variables = {"RECORD_VRAM": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        if (self.plan.get("model") or {}).get("kind") != "tiny":
            del variables["HF_HUB_OFFLINE"]
        if self.device == "cpu":
            variables["DISABLE_VERSION_CHECK"] = "1"
            variables["OMP_NUM_THREADS"] = "1"
            if self.devices > 1:
                variables |= {"FORCE_TORCHRUN": "1", "NPROC_PER_NODE": str(self.devices)}
            missing = [name for name in _UNUSED_BY_TEXT if importlib.util.find_spec(name) is None]
            if missing:
                folder = self.folder / "unused-modules"
                for name in missing:
                    (folder / name).mkdir(parents=True, exist_ok=True)
                    (folder / name / "__init__.py").write_text(
                        '"""Empty: text training imports it and does not use it."""\n'
                    )
                variables["PYTHONPATH"] = str(folder)
        return variables

    def poll(self) -> None:
        """New lines of ``trainer_log.jsonl``, and the summary once it is there."""
        if self.output is None:
            return
        log = self.output / "trainer_log.jsonl"
        if log.is_file():
            size = log.stat().st_size
            if size < self._offset:
                self._offset = 0
            if size > self._offset:
                with log.open("rb") as file:
                    file.seek(self._offset)
                    data = file.read()
                whole = data[: data.rfind(b"\n") + 1]
                self._offset += len(whole)
                for line in whole.splitlines():
                    self._logged(json.loads(line))

    def _logged(self, entry: dict[str, Any]) -> None:
        loss = entry.get("loss")
        if loss is None or "current_steps" not in entry:
            return
        tokens, vram = entry.get("total_tokens"), entry.get("vram_allocated")
        fields: dict[str, Any] = {"learning_rate": entry.get("lr"), "total_tokens": tokens}
        if vram and self.device != "cpu":
            fields["memory_bytes"] = int(vram * _GIB)
        step, before = int(entry["current_steps"]), self.measured.steps
        if entry.get("throughput") is not None:
            # the framework's figure: all devices, since the start, padding counted
            fields["tokens_per_second"] = float(entry["throughput"])
        if step > before:
            self.step(step, float(loss), **fields)

    def line(self, text: str) -> None:
        """The framework's own word that training is done."""
        if "Training completed" in text or "***** train metrics *****" in text:
            self._done = True
            self.measured.finished = True

    def died(self, tail: list[str]) -> tuple[str, str] | None:
        """After a good exit: the summary must be there, with a finite loss."""
        summary = self.output / "all_results.json" if self.output else None
        if summary is None or not summary.is_file():
            return ("framework", "no all_results.json was written") if self.output and self._trains() else None
        figures = json.loads(summary.read_text(encoding="utf-8"))
        for name, unit in SUMMARY.items():
            if isinstance(figures.get(name), (int, float)):
                self.metric(name, figures[name], unit)
        loss = figures.get("train_loss")
        if loss is not None and not math.isfinite(loss):
            return "nan-loss", f"the mean training loss is {loss}"
        return None

    def _trains(self) -> bool:
        return bool(self.settings.get("do_train")) and self.settings.get("stage") != "ppo"


if __name__ == "__main__":
    sys.exit(main(LlamaFactory))
