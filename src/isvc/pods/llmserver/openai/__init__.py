"""OpenAI's API with vLLM's additions: requests, what llama.cpp is asked for them, and the answers made of that."""
