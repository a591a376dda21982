#!/bin/bash
TP=4
if [ "$TP" -gt 2 ]; then
  PP=2
else
  PP=1
fi
if [ -n "$BIG" ]; then
  SEQ=8192
else
  SEQ=4096
fi
launch() {
  torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --tensor-model-parallel-size $1 --pipeline-model-parallel-size $2 \
    --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length $SEQ --max-position-embeddings 8192 \
    --micro-batch-size 1 --global-batch-size 8 --bf16 --train-iters 1 --lr 1e-5
}
launch $TP $PP
