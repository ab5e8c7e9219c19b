"""Speech recognition with a Whisper model of transformers, random weights: encoder, then a decoder with a KV cache.

    ipw run -- python3 examples/workloads/whisper.py --model base --batch 8 --length 64 --precision fp16

An input is the spectrogram of 30 seconds, and has `length` tokens: a model with random weights finds no end.
"""
import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration
from transformers.modeling_outputs import BaseModelOutput

from common import build, host, measure, options_of, part, to_device

SIZES = {"base": (512, 6, 8), "tiny": (384, 4, 6), "small": (768, 12, 12)}  # width, layers, heads
SECONDS, FRAMES = 30, 3000


def make():
    width, layers, heads = SIZES[options.model]
    return WhisperForConditionalGeneration(WhisperConfig(
        d_model=width, encoder_layers=layers, decoder_layers=layers, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=4 * width, decoder_ffn_dim=4 * width))


options = options_of(__doc__, list(SIZES), length=(64, "tokens of a transcript"))
model = build(options, make)
spectrograms = host(options, torch.randn(options.batch, model.config.num_mel_bins, FRAMES))


def run():
    with part(options, "prepare"):
        features = to_device(options, spectrograms)
        tokens = torch.full((options.batch, 1), model.config.decoder_start_token_id, device=options.device)
    with part(options, "encode"):
        states = BaseModelOutput(last_hidden_state=model.model.encoder(features).last_hidden_state)
    cache = None
    for _ in range(options.length):
        with part(options, "decode"):
            found = model(encoder_outputs=states, decoder_input_ids=tokens, past_key_values=cache, use_cache=True)
            cache, tokens = found.past_key_values, found.logits[:, -1:].argmax(-1)


measure(options, run, audio_s=options.batch * SECONDS, tokens=options.batch * options.length)
