#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
NPUS_PER_NODE=8
NNODES=1
TP=8
PP=1

DISTRIBUTED_ARGS="
    --nproc_per_node $NPUS_PER_NODE \
    --nnodes $NNODES \
    --node_rank 0 \
    --master_addr localhost \
    --master_port 6000
"

GPT_ARGS="
    --use-mcore-models \
    --tensor-model-parallel-size ${TP} \
    --pipeline-model-parallel-size ${PP} \
    --sequence-parallel \
    --num-layers 28 \
    --hidden-size 3584 \
    --ffn-hidden-size 18944 \
    --num-attention-heads 28 \
    --group-query-attention \
    --num-query-groups 4 \
    --seq-length 4096 \
    --max-position-embeddings 32768 \
    --micro-batch-size 1 \
    --global-batch-size 64 \
    --position-embedding-type rope \
    --normalization RMSNorm \
    --swiglu \
    --bf16 \
    --use-flash-attn \
    --train-iters 2000 \
    --lr 1.25e-6 \
    --tokenizer-type PretrainedFromHF \
    --tokenizer-name-or-path ./model_from_hf/qwen2.5-7b-hf
"

torchrun $DISTRIBUTED_ARGS posttrain_gpt.py \
    $GPT_ARGS \
    --stage sft \
    --finetune \
    --is-instruction-dataset \
    --prompt-type qwen \
    --data-path ./dataset/alpaca \
    --load ./ckpt \
    --save ./out \
    --save-interval 2000 | tee logs/tune_qwen25_7b.log
