"""Numbers that are none, shapes that no format has, sizes no machine has: a clean answer to each, in every reader."""

from __future__ import annotations

from pathlib import Path

import pytest
from trust_targets import Targets

from ascend_compat.jobs.bash import read_shell

# fmt: off
B = '9' * 5000
S = '\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 2\n'
L='stage: sft\nmodel_name_or_path: Qwen/Qwen2-7B\n'
V='python3 -m verl.trainer.main_ppo '
CASES: list[tuple[str, str]] = [('shell',x+S) for x in ['shift ²','A=(1 2); A[²]=1',f'A=(1); A[{B}]=1',f'A=abc; B=${{A:{B}:{B}}}','A=abc; B=${A:²:1}',f'for i in {{1..{B}}}; do X=1; done',f'for i in $(seq {B}); do X=1; done','for i in $(seq 1 ² 3); do :; done',f'for ((i=0;i<{B};i++)); do :; done',f'[ {B} -gt 1 ] && X=1','[ ² -gt 1 ] && X=1',f'X=$(({B}+1))','X=$((²))',f'X=$((16#{"f"*6000}))','X=$((99#1)); Y=$((1#1)); Z=$((0#0)); W=$((08))',f'echo ${B}','echo ${²}',f'echo ${{{B}}}','X=$((10**1000000))','X=$((1<<999999999))','X=$((1<<-1)); Y=$((1>>-5)); Z=$((2**-1))',f'echo {{1..{B}}}','echo {1..999999999}',f'#SBATCH --nodes={B}',f'set -- a b; shift {B}',f'break {B}; continue ²',f'exit {B}',f'printf "%{B}d" 1','printf -v X "%999999999d" 1',f'X=a; Y=${{X/*/{"b"*10}}}',f'read X <<< {B}','local X=1','declare -i X=08','X=${#B}','let X=²',f'export NNODES={B}',f'torchrun --nnodes {B} --nproc_per_node {B} pretrain_gpt.py --num-layers {B}',f'torchrun --nnodes 1:{B} pretrain_gpt.py --tensor-model-parallel-size ² --seq-length 1e400',f'seq -w 1 {B}', 'X=$(expr ² + 1)',f'X=$(expr {B} \\* {B})', 'X=$(printf "%s" ²)', 'X=$(seq 1 99999999 | wc -l)',f'X=$(basename {B})']]
CASES += [('verl',V+x+'\n') for x in [f'a={B}',f'trainer.nnodes={B}','trainer.nnodes=²','trainer.nnodes=1e400','trainer.n_gpus_per_node=nan','trainer.nnodes=-inf','data.train_batch_size=[1,[2,{a:[3]}]]','a={'*200,'a='+'['*3000,"a='","a=\"x","+a=1 ++a=2 ~a ~b=1","a@b=c","hydra.searchpath=[x]","--config-path=² --config-name=²","a=${b}","=1","a.=1",".a=1","a..b=1"]]
CASES += [('yaml',L+x+'\n') for x in [f'num_train_epochs: {B}','per_device_train_batch_size: ²','cutoff_len: 1e400','cutoff_len: .nan','cutoff_len: -.inf','? [a]\n: 1','? {a: 1}\n: 1','lora_target: [1, 2]','deepspeed: {a: [1]}','deepspeed: 5','model_name_or_path: [1]','stage: {a: 1}','finetuning_type: 2020-01-01','dataset: !!binary aGk=','cutoff_len: !!int x','cutoff_len: !!float x','lora_rank: !!int 0x','cutoff_len: 0b','cutoff_len: 1:30:00','cutoff_len: 0o17','cutoff_len: +','cutoff_len: _','cutoff_len: 1__','cutoff_len: 0x_','bf16: maybe','fp16: []']]
K='apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {%s}}}\n'
CASES += [('yaml',K%x) for x in ['containers: 5','containers: [5]','containers: {a: 1}','containers: [{command: 5}]','containers: [{command: [torchrun, pretrain_gpt.py], args: {a: 1}}]',f'containers: [{{command: [torchrun, pretrain_gpt.py, --num-layers, {B}], resources: {{limits: {{huawei.com/Ascend910: {B}}}}}}}]','containers: [{command: [torchrun, pretrain_gpt.py], resources: {limits: {huawei.com/Ascend910: "²"}}}]','containers: [{command: [torchrun, pretrain_gpt.py], env: [{name: A}, {value: 1}, 5]}]','containers: [{command: [torchrun, pretrain_gpt.py], env: {a: b}}]']]
CASES += [('yaml',f'apiVersion: batch/v1\nkind: {k}\nspec: {v}\n') for k in ['Job','[1]','{a: 1}','5','List'] for v in ['5','[1]','{template: 5}','{template: {spec: 5}}','{tasks: [{replicas: ²}]}','{parallelism: '+B+'}']]
CASES += [('stack',x+'\n') for x in [f'npu_count: {B}','npu_count: ²','npu_memory: '+B,'npu_memory: ²','nodes: ²',f'torch=={B}','torch==²','torch==','cann: ²',f'cann: {B}.{B}',f'python: {B}','chip: ²','driver: '+'1.'*5000,'ASCEND_RT_VISIBLE_DEVICES='+B,'ASCEND_RT_VISIBLE_DEVICES=0-²','image: a:²','image: '+'a/'*500+':1']]
T='Model\tX\nQwen2-7B\t√\n'
CASES += [('table',x) for x in ['<table><tr><td rowspan=² colspan=²>Model</td></tr></table>','<table><tr><td rowspan=99999 colspan=99999>Model</td></tr></table>'*3,'<table>'+'<tr><td colspan=1000 rowspan=1000>Model'*300,'|Model|\n|---|\n'+'|a|\n'*100,'Model\n','Model\tModel\n\n\n', '<table>'*5000]]
# fmt: on


@pytest.mark.parametrize("letter", ["\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\ufeff"])
def test_a_blank_that_is_none_to_a_shell_is_part_of_a_word(letter: str) -> None:
    script = f"X=a{letter}b\n{letter}\ntorchrun pretrain_gpt.py --save $X --load c{letter}d --num-layers 2\n"
    (launch,) = read_shell(script, "job.sh", root=None)
    values = {setting.key: setting.value for setting in launch.settings}
    assert (values["--save"], values["--load"]) == (f"a{letter}b", f"c{letter}d")


def test_odd_values_get_a_clean_answer(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    targets = Targets(tmp_path)
    assert len(CASES) == 153
    taken = [targets.run(target, text.encode()) for target, text in CASES]
    assert 80 < sum(taken) < len(CASES)
