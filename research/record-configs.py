#!/usr/bin/env python3
"""Records reference figures of transformers and diffusers for the models in tests/fixtures/configs/models.json: the parameters of each
(on the meta device, so that large models need no memory), and for small ones the multiply-accumulates of forward passes,
counted by PyTorch's FlopCounterMode on the CPU, and the number of KV cache elements after them.

    pip install torch transformers diffusers timm
    research/record-configs.py [NAME ...]

The file is input and output: each model has `config` (its config.json) and optionally `passes` with the arguments of a
pass; this adds `parameters`, `macs` and `cached`.  tests/cli/test_model_families.py compares ipw with them."""

import json
import sys
from pathlib import Path

import diffusers
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

PATH = Path(__file__).resolve().parent.parent / "tests/fixtures/configs/models.json"


def load(config):
    settings = {key: value for key, value in config.items() if key not in ("model_type", "architectures")}
    made = transformers.AutoConfig.for_model(config["model_type"], **settings)
    made._attn_implementation = "eager"
    made._experts_implementation = "eager"
    return made


def build_diffusion(config, device):
    settings = {key: value for key, value in config.items() if not key.startswith("_")}
    with torch.device(device):
        return getattr(diffusers, config["_class_name"])(**settings).eval()


def build(model, device):
    if "_class_name" in model["config"]:
        return build_diffusion(model["config"], device)
    config = load(model["config"])
    name = model.get("class") or model["config"]["architectures"][0]
    if model.get("text_only"):
        config = config.get_text_config()
        config._attn_implementation = "eager"
        config._experts_implementation = "eager"
    with torch.device(device):
        built = getattr(transformers, name)(config)
    built.tie_weights()
    return built.eval()


def ids(batch, tokens):
    return torch.ones((batch, tokens), dtype=torch.long)


def diffusion_inputs(config, options):
    batch, side = options.get("batch", 1), options["image"]
    if config["_class_name"] == "AutoencoderKL":
        return {"sample": torch.zeros(batch, 3, side, side)}
    if config["_class_name"] == "FluxTransformer2DModel":
        tokens = (side // 16) ** 2
        return {"hidden_states": torch.zeros(batch, tokens, config["in_channels"]), "timestep": torch.zeros(batch),
                "encoder_hidden_states": torch.zeros(batch, 512, config["joint_attention_dim"]),
                "pooled_projections": torch.zeros(batch, config["pooled_projection_dim"]), "guidance": torch.zeros(batch),
                "img_ids": torch.zeros(tokens, 3), "txt_ids": torch.zeros(512, 3)}
    pooled = config.get("projection_class_embeddings_input_dim", 0) - 6 * config.get("addition_time_embed_dim", 0)
    added = {"text_embeds": torch.zeros(batch, pooled), "time_ids": torch.zeros(batch, 6)} if pooled else None
    return {"sample": torch.zeros(batch, 4, side // 8, side // 8), "timestep": torch.zeros(batch),
            "encoder_hidden_states": torch.zeros(batch, 77, config["cross_attention_dim"]),
            "added_cond_kwargs": added}


def inputs(model, config, options):
    """Inputs of a complete forward pass of the model."""
    if "_class_name" in model["config"]:
        return diffusion_inputs(model["config"], options)
    batch, tokens = options.get("batch", 1), options.get("tokens", 0)
    kind, name = model["config"]["model_type"], model["config"]["architectures"][0]
    image = options.get("image", 0)
    pixels = torch.zeros(batch, 3, image, image)
    if kind == "whisper":
        frames = 2 * config.max_source_positions
        return {"input_features": torch.zeros(batch, config.num_mel_bins, frames),
                "decoder_input_ids": ids(batch, tokens)}
    if kind in ("detr", "segformer", "vit", "clip_vision_model", "siglip_vision_model"):
        return {"pixel_values": pixels}
    if kind in ("clip", "siglip"):
        return {"input_ids": ids(batch, tokens), "pixel_values": pixels}
    if kind in ("t5", "bart") and "Encoder" not in name and "Classification" not in name:
        return {"input_ids": ids(batch, tokens), "decoder_input_ids": ids(batch, 1)}
    if kind == "bart":  # the head reads at the end-of-sentence token
        return {"input_ids": torch.full((batch, tokens), config.eos_token_id)}
    return {"input_ids": ids(batch, tokens)}


def elements(cache):
    """Number of elements in a KV cache."""
    if hasattr(cache, "self_attention_cache"):
        return elements(cache.self_attention_cache) + elements(cache.cross_attention_cache)
    total = 0
    for layer in cache.layers:
        for what in ("keys", "values", "conv_states", "recurrent_states", "ssm_states"):
            tensor = getattr(layer, what, None)
            total += tensor.numel() if isinstance(tensor, torch.Tensor) else 0
    return total


def decode(model, built, options):
    """Decodes one token after context - 1 others.  Returns the FLOPs, and the number of cache elements afterwards."""
    context, batch = options["context"], options.get("batch", 1)
    outputs = context - 1
    if model["config"]["model_type"] in ("t5", "bart"):  # encoder input and decoder output, which begins with a start token
        outputs = context - options["tokens"]
    arguments = inputs(model, built.config, {**options, "tokens": options.get("tokens", context - 1)})
    if "decoder_input_ids" in arguments:
        arguments["decoder_input_ids"] = ids(batch, outputs)
    first = built(**arguments, use_cache=True)
    cache = first.get("past_key_values") or first.get("cache_params")
    step = {"input_ids": ids(batch, 1), "past_key_values": cache}
    if "decoder_input_ids" in arguments:
        step = {"decoder_input_ids": ids(batch, 1), "past_key_values": cache,
                "encoder_outputs": (first.encoder_last_hidden_state,)}
    elif "cache_params" in first:
        step = {"input_ids": ids(batch, 1), "cache_params": cache}
    with FlopCounterMode(display=False) as counter:
        built(**step, use_cache=True)
    return counter.get_total_flops(), elements(cache)


@torch.no_grad()
def record(model):
    built = build(model, "meta")
    model["parameters"] = sum(p.numel() for p in built.parameters())
    if not model.get("passes"):
        return
    built = build(model, "cpu")
    for one in model["passes"]:
        if one.get("phase") == "decode":
            flops, cached = decode(model, built, one)
            one["cached"] = cached
        else:
            with FlopCounterMode(display=False) as counter:
                built(**inputs(model, built.config, one))
            flops = counter.get_total_flops()
        assert flops % 2 == 0
        one["macs"] = flops // 2


def main():
    found = json.loads(PATH.read_text())
    wanted, failed = sys.argv[1:], 0
    for model in found["models"]:
        if wanted and model["name"] not in wanted:
            continue
        try:
            record(model)
            print(model["name"], model["parameters"], [p["macs"] for p in model.get("passes", [])])
        except Exception as error:  # still record the others
            failed += 1
            print(f"{model['name']}: {type(error).__name__}: {error}")
            if wanted:
                raise
    found["made_with"] = {"diffusers": diffusers.__version__, "torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}
    lines = ",\n".join("  " + json.dumps(model) for model in found["models"])
    PATH.write_text('{"made_with": %s,\n "models": [\n%s\n]}\n' % (json.dumps(found["made_with"]), lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
