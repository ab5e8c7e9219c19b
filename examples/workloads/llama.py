"""Text generation with a Llama model of transformers, random weights: prefill, then decoding with a KV cache.

    ipw run -- python3 examples/workloads/llama.py --model 1b --batch 8 --length 128 --precision bf16
"""
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from common import build, measure, options_of, part

# hidden size, layers, heads, heads of the cache, width of the feed-forward network, tied embeddings
SIZES = {"1b": (2048, 16, 32, 8, 8192, True), "3b": (3072, 28, 24, 8, 8192, True), "8b": (4096, 32, 32, 8, 14336, False)}
VOCABULARY, PROMPT = 128256, 128


def make():
    width, layers, heads, cached, hidden, is_tied = SIZES[options.model]
    return LlamaForCausalLM(LlamaConfig(
        hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=cached,
        intermediate_size=hidden, vocab_size=VOCABULARY, tie_word_embeddings=is_tied, max_position_embeddings=8192))


options = options_of(__doc__, list(SIZES), length=(128, f"tokens to generate after {PROMPT} of the prompt"))
model = build(options, make)
prompts = torch.randint(0, VOCABULARY, (options.batch, PROMPT))


def run():
    with part(options, "prepare"):
        tokens = prompts.to(options.device)
    with part(options, "prefill"):
        found = model(tokens, use_cache=True, logits_to_keep=1)
    for _ in range(options.length - 1):
        with part(options, "decode"):
            tokens = found.logits[:, -1:].argmax(-1)
            found = model(tokens, past_key_values=found.past_key_values, use_cache=True)


measure(options, run, tokens=options.batch * options.length, prompt_tokens=options.batch * PROMPT)
