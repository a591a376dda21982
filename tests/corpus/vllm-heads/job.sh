vllm serve Qwen/Qwen3-235B-A22B --tensor-parallel-size 5
