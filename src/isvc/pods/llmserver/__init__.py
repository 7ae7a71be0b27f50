"""An LLM server for one machine: vLLM's command line, OpenAI's API, llama.cpp inside.

`python -m isvc.pods.llmserver --model /mnt/models --port 8000` serves a GGUF file the way `vllm serve` serves a
checkpoint: the same flags, paths, error bodies and metric names, so that a pod written for vLLM runs here
unchanged. It stands alone: nothing else of isvc is imported. Where vLLM itself is installed beside a GPU, it is
what runs.
"""
