#!/usr/bin/env python3
"""Models by config.json against transformers: exact parameter counts, and MACs and KV cache of a pass as counted by
PyTorch.  The figures in tests/fixtures/configs/models.json are recorded by research/record-configs.py, with the versions
of both."""

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from model_graphs import ConfigTest, show  # noqa: E402
from program import IPW, TIMEOUT_S  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()
RECORDED = json.loads((SOURCE / "tests/fixtures/configs/models.json").read_text())
MODELS = {model["name"]: model for model in RECORDED["models"]}


class Recorded(ConfigTest):
    def test_parameters_equal_transformers(self):
        for name, model in MODELS.items():
            with self.subTest(name):
                found = show(self.write(model["config"], name))
                self.assertNotIn("error", found)
                self.assertEqual(found["parameters"], model["parameters"])

    def test_macs_of_passes_equal_pytorch(self):
        for name, model in MODELS.items():
            for one in model.get("passes", []):
                settings = {key: value for key, value in one.items() if key not in ("macs", "cached")}
                with self.subTest(name, **settings):
                    found = self.show(model["config"], **settings)
                    self.assertEqual(found["macs"], one["macs"])
                    self.assertEqual(found["parameters"], model["parameters"])

    def test_kv_caches_equal_transformers(self):
        """K and V that a decoded token attends to, including its own, equal the cache of transformers after it."""
        compared = 0
        for name, model in MODELS.items():
            has_window = model["config"].get("sliding_window") or "attention_chunk_size" in model["config"]
            for one in model.get("passes", []):
                # transformers drops the token that leaves the window at once; and it repeats the K and V of
                # a group of heads for Falcon's newer models.
                if "cached" not in one or has_window or name == "falcon-new-small":
                    continue
                compared += 1
                settings = {key: value for key, value in one.items() if key not in ("macs", "cached")}
                with self.subTest(name, **settings):
                    found = self.show(model["config"], **settings)
                    # Decoders read the new K and V back from the cache; the others only write them.
                    is_read_back = model["config"]["architectures"][0].endswith("ForCausalLM")
                    new = 0 if is_read_back else found["out"]["cached"]
                    self.assertEqual(found["in"]["cached"] + new, one["cached"])
        self.assertGreater(compared, 15)


class Caches(ConfigTest):
    def cached(self, name, context):
        found = self.show(MODELS[name]["config"], phase="decode", context=context)
        return found["in"]["cached"], found["out"]["cached"]

    def test_sliding_windows_bound_kv_cache(self):
        """gpt-oss-20b: 12 layers with a window of 128 tokens, 12 without."""
        token = 2 * 8 * 64
        for context in (100, 128, 129, 5000):
            read, written = self.cached("gpt-oss-20b", context)
            self.assertEqual(read, 12 * token * (min(context, 128) + context))
            self.assertEqual(written, 24 * token)

    def test_chunked_attention_restarts_at_each_chunk(self):
        """Llama 4 Scout: every fourth layer attends to all tokens, the others to those of the same chunk of 8192."""
        token = 2 * 8 * 128
        for context, seen in ((8192, 8192), (8193, 1), (20000, 20000 - 2 * 8192)):
            read, _ = self.cached("llama-4-scout", context)
            self.assertEqual(read, token * (12 * context + 36 * seen))
        config = MODELS["llama-4-scout"]["config"]
        of_prompt = self.show(config, tokens=20000)["operations"]["attention"]["macs"]

        def triangle(n):
            return n * (n + 1) // 2
        chunked = 2 * triangle(8192) + triangle(20000 - 2 * 8192)
        self.assertEqual(of_prompt, 40 * 256 * (12 * triangle(20000) + 36 * chunked))

    def test_mla_latents_are_cached(self):
        """DeepSeek V3: 512 latent and 64 rotary features per token and layer for any number of heads; queries attend to
        the latents directly, and the two up-projections of K and V are applied to one token."""
        layers, heads, latent, rotated = 61, 128, 512, 64
        read, written = self.cached("deepseek-v3", 1000)
        self.assertEqual(read, layers * 1000 * (latent + rotated))
        self.assertEqual(written, layers * (latent + rotated))
        config = MODELS["deepseek-v3"]["config"]
        near, far = (self.show(config, phase="decode", context=n)["macs"] for n in (1, 1001))
        self.assertEqual(far - near, layers * heads * 1000 * (2 * latent + rotated))
        one = self.show(config, tokens=1)["macs"]  # K and V have 192 and 128 features
        self.assertEqual(near - one, layers * heads * (2 * latent + rotated - 192 - 128))

    def test_mamba2_state_does_not_grow(self):
        """Mamba-2 2.7B: per layer 5120 features with 128 elements of state, and 4 tokens of 5376 channels.  A prompt of
        one chunk is a product of matrices per token; decode adds to the state."""
        layers, hidden, inner, state, kernel, heads, chunk = 64, 2560, 5120, 128, 4, 80, 256
        channels = inner + 2 * state
        for context in (2, 100_000):
            self.assertEqual(self.cached("mamba2-2.7b", context), (layers * (inner * state + channels * kernel),) * 2)
        config = MODELS["mamba2-2.7b"]["config"]
        matrices = hidden * (inner + channels + heads) + channels * kernel + inner * hidden
        head = 50288 * hidden
        decode = self.show(config, phase="decode", context=7, batch=3)
        self.assertEqual(decode["macs"], 3 * (layers * (matrices + inner * state) + head))
        for tokens in (100, 1024):
            near = min(tokens, chunk)
            scan = inner * (2 * state + near) + state * near
            self.assertEqual(self.show(config, tokens=tokens)["macs"], tokens * layers * (matrices + scan) + head)

    def test_falcon_h1_has_attention_and_a_state_in_every_layer(self):
        """1.5B: per layer K and V of two heads, and a state that does not grow."""
        token, state = 2 * 2 * 128, 3072 * 256 + (3072 + 2 * 256) * 4
        for context in (2, 5000):
            read, written = self.cached("falcon-h1-1.5b", context)
            self.assertEqual(read, 24 * (token * context + state))
            self.assertEqual(written, 24 * (token + state))

    def test_mamba_state_does_not_grow(self):
        """Mamba 130M: per layer 1536 features, each with the last 4 tokens and 16 elements of state."""
        layers, hidden, inner, state, kernel, rank = 24, 768, 1536, 16, 4, 48
        for context in (2, 100_000):
            self.assertEqual(self.cached("mamba-130m", context), (layers * inner * (kernel + state),) * 2)
        config = MODELS["mamba-130m"]["config"]
        matrices = 3 * hidden * inner + inner * (rank + 2 * state) + rank * inner
        per_token = layers * (matrices + inner * kernel + inner * state)
        head = 50280 * hidden
        decode = self.show(config, phase="decode", context=7, batch=3)
        self.assertEqual(decode["macs"], 3 * (per_token + head))
        self.assertEqual(self.show(config, tokens=50)["macs"], 50 * per_token + head)

    def test_token_reads_its_active_experts_only(self):
        """Llama 4 Scout, 107.8 billion parameters: one of 16 experts and the shared one."""
        config = MODELS["llama-4-scout"]["config"]
        idle = 48 * 15 * 3 * 5120 * 8192
        vectors = 97 * 5120  # norms
        table = 202048 * 5120
        found = self.show(config, phase="decode", context=1)
        attention = 48 * 40 * 128 * 2
        self.assertEqual(found["macs"], found["parameters"] - idle - vectors - table + attention)


class Heads(ConfigTest):
    def test_untied_head(self):
        """FLAN-T5 XL as published; transformers 5 ties the head of T5 unless a checkpoint has one."""
        tied = MODELS["flan-t5-xl"]
        found = self.show({**tied["config"], "tie_word_embeddings": False})
        self.assertEqual(found["parameters"], 2_849_757_184)
        self.assertEqual(found["parameters"] - tied["parameters"], 32128 * 2048)

    def test_config_without_architectures(self):
        """The base model: with pooler, without head."""
        config = {key: value for key, value in MODELS["bert-base-uncased"]["config"].items()
                  if key != "architectures"}
        self.assertEqual(self.show(config)["parameters"], 109_482_240)

    def test_encoder_decoder_positions(self):
        """A request of 20 input and 8 output tokens fits 21 positions: the output has its own table."""
        config = {**MODELS["bart-small"]["config"], "max_position_embeddings": 21}
        last = show(self.write(config), phase="decode", tokens=20, context=40)
        self.assertNotIn("error", last)
        self.assertIn("positions", show(self.write(config), phase="decode", tokens=20, context=41)["error"])
        self.assertIn("no output", show(self.write(config), phase="decode", tokens=20, context=20)["error"])
        done = subprocess.run([IPW, "estimate", "--model", str(self.write(config)), "--hardware", "h100",
                               "--prompt-tokens", "20", "--output-tokens", "8", "--json"],
                              capture_output=True, text=True, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_memory_of_decode_pass_includes_encoder(self):
        for name in ("t5-small-shape", "bart-small", "whisper-small-shape"):
            model = MODELS[name]
            decode = self.show(model["config"], phase="decode", context=5)
            self.assertEqual(decode["parameters"], model["parameters"])
            self.assertLess(decode["weights"]["weights"], model["parameters"])


class Quantized(ConfigTest):
    def test_mxfp4_applies_to_experts_only(self):
        """gpt-oss-20b as shipped: expert matrices have 4 bits per element and an 8-bit scale per 32 elements; the rest
        is bf16."""
        config = {**MODELS["gpt-oss-20b"]["config"], "quantization_config": {"quant_method": "mxfp4"}}
        found = self.show(config, phase="decode", batch=100_000)  # all experts are read
        experts = 24 * 32 * 3 * 2880 * 2880
        biases = 24 * 32 * 3 * 2880  # the same matrices in bf16
        self.assertAlmostEqual(found["weights"]["stored_bytes"], experts * 4.25 / 8 + 2 * biases, delta=1000)
        self.assertEqual(found["parameters"], MODELS["gpt-oss-20b"]["parameters"])


class Refused(ConfigTest):
    def refused(self, config, *words):
        answer = show(self.write(config))
        self.assertIn("error", answer)
        for word in words:
            self.assertIn(word, answer["error"])
        self.assertNotIn("\n", answer["error"])

    def test_unknown_type_is_one_line_that_names_the_list_of_known_types(self):
        done = self.estimate({"model_type": "rwkv"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn("unknown model_type 'rwkv'", done.stderr)
        self.assertLess(len(done.stderr), 250)
        page, count = re.search(r"(docs/\S+) lists the (\d+) known ones", done.stderr).groups()
        text = (SOURCE / page).read_text().split("### config.json")[1]
        listed = set(re.findall(r"`([a-z0-9_-]+)`", text.split("\n- ")[0]))
        self.assertEqual(len(listed) - len({"model_type", "_class_name"} & listed), int(count))
        kinds = sorted({model["config"]["model_type"] for model in MODELS.values() if "model_type" in model["config"]})
        self.assertEqual([kind for kind in kinds if kind not in listed], [])

    def test_unsupported_parts_of_diffusers_are_rejected(self):
        unet = MODELS["unet-small"]["config"]
        self.refused({**unet, "_class_name": "VQModel"}, "'_class_name'", "VQModel",
                     "only UNet2DConditionModel, AutoencoderKL and FluxTransformer2DModel")
        for key, value in (("time_cond_proj_dim", 256), ("class_embed_type", "timestep"), ("dual_cross_attention", True),
                           ("down_block_types", ["DownBlock2D", "AttnDownBlock2D"]), ("up_block_types", ["UpBlock2D"]),
                           ("addition_embed_type", "image"), ("block_out_channels", []), ("mid_block_type", "UNetMidBlock2D")):
            self.refused({**unet, key: value}, f"'{key}'")
        answer = show(self.write(unet), image=120)
        self.assertIn("multiple of 16", answer["error"])

    def test_unknown_heads_are_rejected(self):
        llama = MODELS["llama-small"]["config"]
        self.refused({**llama, "architectures": ["LlamaForDreams"]}, "'architectures'", "LlamaForDreams",
                     "ForSequenceClassification")
        for name in ("bert-Model-small", "gpt2-small-lm", "t5-small-shape", "bart-small", "deberta-small", "clip-small",
                     "mamba-small", "mamba2-small", "siglip-small", "segformer-Model-small", "detr-small"):
            self.refused({**MODELS[name]["config"], "architectures": ["XForDreams"]}, "'architectures'",
                         "XForDreams")

    def test_absurd_values_are_rejected_by_key(self):
        tried = 0
        for name in ("deepseek-v3-small", "gpt-oss-small", "llama4-text-small", "opt-projected-small",
                     "falcon-new-small", "bloom-small", "t5-small-shape", "bart-small", "whisper-small-shape", "deberta-v2-conv-small",
                     "mamba-small", "clip-vision-small", "detr-small", "mamba2-small", "falcon_h1-small",
                     "glm4_moe-small", "siglip-vision-small", "unet-small", "vae-small", "flux-small"):
            config = MODELS[name]["config"]
            for key, value in config.items():
                if isinstance(value, bool) or not isinstance(value, int) or key.endswith("_token_id") \
                        or key in ("n_group", "topk_group", "num_nextn_predict_layers"):
                    continue
                may_be_off = key in ("position_buckets", "max_relative_positions")  # -1: no limit
                values = (-2 if may_be_off else -1, 10**18, 1.5, "8", [], {}, True)
                tried += 1
                # Every value for the keys of one model, and each in turn for those of the others.
                for absurd in values if name == "gpt-oss-small" else values[tried % len(values):][:1]:
                    with self.subTest(f"{name} {key} {absurd}"):
                        self.refused({**config, key: absurd}, f"'{key}'")

    def test_inconsistent_values_are_rejected(self):
        llama4 = MODELS["llama4-text-small"]["config"]
        self.refused({**llama4, "moe_layers": [0, 3]}, "'moe_layers'", "regular pattern")
        self.refused({**llama4, "no_rope_layers": [1, 0]}, "'no_rope_layers'")
        self.refused({"model_type": "gemma3"}, "'text_config'")
        detr, segformer = MODELS["detr-small"]["config"], MODELS["segformer-Model-small"]["config"]
        self.refused({**detr, "backbone": "swin"}, "'backbone'", "resnet50")
        self.refused({**detr, "dilation": True}, "'dilation'")
        self.refused({**segformer, "depths": [2, 2]}, "'depths'", "4 integers")
        self.refused({**segformer, "num_attention_heads": [1, 3, 5, 8]}, "'num_attention_heads'")
        clip = MODELS["clip-small"]["config"]
        self.refused({**clip, "vision_config": {**clip["vision_config"], "patch_size": 7}}, "'patch_size'")
        falcon = MODELS["falcon-new-small"]["config"]
        self.refused({**falcon, "num_kv_heads": 3}, "'num_kv_heads'")

    def estimate(self, config):
        return subprocess.run([IPW, "estimate", "--model", str(self.write(config)), "--hardware", "h100",
                               "--phase", "decode", "--context", "20", "--json"], capture_output=True,
                              text=True, timeout=TIMEOUT_S)

    def test_unused_keys_are_reported(self):
        llama = MODELS["llama-small"]["config"]
        plain = self.estimate({**llama, "rope_theta": 10000.0, "attention_dropout": 0.1, "use_cache": True})
        self.assertEqual((plain.returncode, plain.stderr), (0, ""))
        done = self.estimate({**llama, "num_memory_layers": 3, "has_dreams": True, "has_none": False})
        self.assertEqual(done.returncode, 0)
        self.assertIn("'num_memory_layers', 'has_dreams'", done.stderr)
        self.assertNotIn("has_none", done.stderr)

    def test_uncounted_parts_are_reported(self):
        done = self.estimate(MODELS["gemma-3-4b"]["config"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("vision", done.stderr)


if __name__ == "__main__":
    unittest.main()
