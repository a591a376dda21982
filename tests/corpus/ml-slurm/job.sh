#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gres=npu:8
export CUDA_DEVICE_MAX_CONNECTIONS=1
torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py \
    --use-mcore-models \
    --group-query-attention \
    --bf16 \
    --use-flash-attn \
    --swiglu \
    --sequence-parallel \
    --disable-bias-linear \
    --untie-embeddings-and-output-weights \
    --tensor-model-parallel-size 2 \
    --pipeline-model-parallel-size 2 \
    --num-layers 32 \
    --hidden-size 4096 \
    --ffn-hidden-size 12288 \
    --num-attention-heads 32 \
    --num-query-groups 8 \
    --seq-length 4096 \
    --max-position-embeddings 32768 \
    --micro-batch-size 1 \
    --global-batch-size 64 \
    --train-iters 10 \
    --lr 1e-5 \
    --tokenizer-type PretrainedFromHF \
    --tokenizer-name-or-path ./tok \
    --data-path ./data \
    --save ./out \
    --save-interval 100
