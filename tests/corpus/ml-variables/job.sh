#!/bin/bash
GPUS=8
NNODES=${NNODES:-2}
TP=$((GPUS / 4))
PP=2
WORLD=$(($GPUS*$NNODES))
MODEL_ARGS="
    --num-layers 32 \
    --hidden-size 4096 \
    --ffn-hidden-size 12288 \
    --num-attention-heads 32 \
    --group-query-attention \
    --num-query-groups 8
"
SIZES=(--tensor-model-parallel-size "$TP")
SIZES+=(--pipeline-model-parallel-size "${PP}" --sequence-parallel)
torchrun --nproc_per_node $GPUS --nnodes=$NNODES pretrain_gpt.py $MODEL_ARGS "${SIZES[@]}" \
    --seq-length 4096 --max-position-embeddings 32768 --micro-batch-size 1 --global-batch-size $((WORLD * 4)) \
    --bf16 --swiglu --train-iters 10 --lr 1e-5 --tokenizer-type PretrainedFromHF --tokenizer-name-or-path ./tok \
    --data-path ./data 2>&1 | tee logs/run.log
