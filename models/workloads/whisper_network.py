"""A small Whisper: log-mel spectrogram, encoder, decoder with a cache of keys and values.

Names of parts are those of WhisperForConditionalGeneration in transformers, which can load the weights.
"""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from digit_tokens import vocabulary
from log_mel import BINS, CHUNK_S, FFT, HOP, RATE, mel_filters

SHAPE = {"d_model": 64, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 2,
         "decoder_attention_heads": 2, "encoder_ffn_dim": 192, "decoder_ffn_dim": 192, "num_mel_bins": BINS,
         "max_source_positions": CHUNK_S * RATE // HOP // 2, "max_target_positions": 32,
         "vocab_size": len(vocabulary())}


def log_mel(samples):
    """As WhisperFeatureExtractor: samples (batch, CHUNK_S * RATE), padded with silence."""
    spectrum = torch.stft(samples, FFT, HOP, window=torch.hann_window(FFT, device=samples.device), center=True,
                          pad_mode="reflect", return_complex=True)
    power = spectrum[..., :-1].abs() ** 2
    values = (torch.from_numpy(mel_filters()).to(samples.device) @ power).clamp(min=1e-10).log10()
    return (torch.maximum(values, values.amax((1, 2), True) - 8) + 4) / 4


def sinusoids(length, width):
    steps = torch.exp(-np.log(10000) / (width // 2 - 1) * torch.arange(width // 2))
    angles = torch.arange(length)[:, None] * steps[None]
    return torch.cat([angles.sin(), angles.cos()], 1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head_width = heads, width // heads
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj, self.q_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.out_proj = nn.Linear(width, width)

    def split(self, x):
        return x.reshape(x.shape[0], -1, self.heads, self.head_width).transpose(1, 2)

    def keys_values(self, x):
        return self.split(self.k_proj(x)), self.split(self.v_proj(x))

    def forward(self, x, keys, values, mask=None):
        scores = self.split(self.q_proj(x) * self.head_width ** -0.5) @ keys.transpose(2, 3)
        if mask is not None:
            scores = scores + mask
        mixed = torch.softmax(scores, -1) @ values
        return self.out_proj(mixed.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width = shape["d_model"]
        self.self_attn = Attention(width, shape["encoder_attention_heads"])
        self.self_attn_layer_norm, self.final_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, shape["encoder_ffn_dim"])
        self.fc2 = nn.Linear(shape["encoder_ffn_dim"], width)

    def forward(self, x):
        y = self.self_attn_layer_norm(x)
        x = x + self.self_attn(y, *self.self_attn.keys_values(y))
        return x + self.fc2(F.gelu(self.fc1(self.final_layer_norm(x))))


class Encoder(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width = shape["d_model"]
        self.conv1 = nn.Conv1d(shape["num_mel_bins"], width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.embed_positions = nn.Embedding(shape["max_source_positions"], width)
        self.embed_positions.weight.data = sinusoids(shape["max_source_positions"], width)
        self.embed_positions.requires_grad_(False)
        self.layers = nn.ModuleList(EncoderLayer(shape) for _ in range(shape["encoder_layers"]))
        self.layer_norm = nn.LayerNorm(width)

    def forward(self, features):
        x = F.gelu(self.conv2(F.gelu(self.conv1(features)))).transpose(1, 2) + self.embed_positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.layer_norm(x)


class DecoderLayer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width, heads = shape["d_model"], shape["decoder_attention_heads"]
        self.self_attn, self.encoder_attn = Attention(width, heads), Attention(width, heads)
        self.self_attn_layer_norm, self.encoder_attn_layer_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.final_layer_norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, shape["decoder_ffn_dim"])
        self.fc2 = nn.Linear(shape["decoder_ffn_dim"], width)

    def forward(self, x, past, cross, mask=None):
        """Returns the outputs and all keys and values of the decoder so far."""
        y = self.self_attn_layer_norm(x)
        keys, values = self.self_attn.keys_values(y)
        if past is not None:
            keys, values = torch.cat([past[0], keys], 2), torch.cat([past[1], values], 2)
        x = x + self.self_attn(y, keys, values, mask)
        x = x + self.encoder_attn(self.encoder_attn_layer_norm(x), *cross)
        return x + self.fc2(F.gelu(self.fc1(self.final_layer_norm(x)))), (keys, values)


class Decoder(nn.Module):
    def __init__(self, shape):
        super().__init__()
        width = shape["d_model"]
        self.embed_tokens = nn.Embedding(shape["vocab_size"], width)
        self.embed_positions = nn.Embedding(shape["max_target_positions"], width)
        nn.init.normal_(self.embed_tokens.weight, std=0.02)
        nn.init.normal_(self.embed_positions.weight, std=0.02)
        self.layers = nn.ModuleList(DecoderLayer(shape) for _ in range(shape["decoder_layers"]))
        self.layer_norm = nn.LayerNorm(width)

    def first(self, tokens, states):
        """Logits, and for each layer keys and values of the decoder and of the encoder."""
        places = torch.ones_like(tokens[:1]).cumsum(1) - 1
        mask = (places[0][:, None] < places).to(states.dtype) * -1e9
        x, caches = self.embed_tokens(tokens) + self.embed_positions(places), []
        for layer in self.layers:
            cross = layer.encoder_attn.keys_values(states)
            x, own = layer(x, None, cross, mask)
            caches.append((*own, *cross))
        return F.linear(self.layer_norm(x), self.embed_tokens.weight), caches

    def next(self, tokens, caches):
        """The same for one more token; the keys and values of the encoder stay."""
        places = torch.zeros_like(tokens[:1]) + caches[0][0].shape[2]
        x, grown = self.embed_tokens(tokens) + self.embed_positions(places), []
        for layer, cache in zip(self.layers, caches):
            x, own = layer(x, cache[:2], cache[2:])
            grown.append(own)
        return F.linear(self.layer_norm(x), self.embed_tokens.weight), grown


class Parts(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.encoder, self.decoder = Encoder(shape), Decoder(shape)


class Whisper(nn.Module):
    def __init__(self, shape=None):
        super().__init__()
        self.model = Parts(shape or SHAPE)

    def forward(self, features, tokens):
        return self.model.decoder.first(tokens, self.model.encoder(features))[0]


@torch.no_grad()
def transcribe(network, features, prompt, end, most=12):
    """Greedy; the tokens after the prompt without the end, of each row."""
    states = network.model.encoder(features)
    tokens = torch.tensor([prompt] * len(features), device=features.device)
    logits, caches = network.model.decoder.first(tokens, states)
    outputs, cross = [], [cache[2:] for cache in caches]
    for _ in range(most):
        token = logits[:, -1:].argmax(-1)
        outputs.append(token)
        logits, grown = network.model.decoder.next(token, caches)
        caches = [(*own, *other) for own, other in zip(grown, cross)]
    rows = torch.cat(outputs, 1).tolist()
    return [row[:row.index(end)] if end in row else row for row in rows]
