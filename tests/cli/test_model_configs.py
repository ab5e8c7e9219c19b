#!/usr/bin/env python3
"""Models by config.json: published parameter counts, operations by an independent formula, equality with the same model
by name and in a GGUF file, and rejected configs with the offending key."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from model_graphs import BUILD, ConfigTest, show  # noqa: E402
from program import IPW, TIMEOUT_S  # noqa: E402

SOURCE = Path(os.environ.get("IPW_SOURCE", ".")).resolve()


def llama(layers, hidden, heads, kv, width, vocabulary, tied, **more):
    """A config.json of a Llama-like model, as on the Hugging Face hub."""
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
            "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
            "num_key_value_heads": kv, "intermediate_size": width, "vocab_size": vocabulary,
            "max_position_embeddings": 8192, "tie_word_embeddings": tied, "torch_dtype": "bfloat16",
            **more}


# zoo name: config.json and published parameter count
CONFIGS = {
    "smollm2-135m": (llama(30, 576, 9, 3, 1536, 49152, True), 134_515_008),
    "smollm2-360m": (llama(32, 960, 15, 5, 2560, 49152, True), 361_821_120),
    "smollm2-1.7b": (llama(24, 2048, 32, 32, 8192, 49152, True), 1_711_376_384),
    "llama-3.2-1b": (llama(16, 2048, 32, 8, 8192, 128256, True, head_dim=64), 1_235_814_400),
    "llama-3.2-3b": (llama(28, 3072, 24, 8, 8192, 128256, True, head_dim=128), 3_212_749_824),
    "llama-3.1-8b": (llama(32, 4096, 32, 8, 14336, 128256, False), 8_030_261_248),
    "llama-3.1-70b": (llama(80, 8192, 64, 8, 28672, 128256, False), 70_553_706_496),
    "llama-3.1-405b": (llama(126, 16384, 128, 8, 53248, 128256, False), 405_853_388_800),
    "mistral-7b": (llama(32, 4096, 32, 8, 14336, 32000, False, model_type="mistral",
                         sliding_window=4096), 7_241_732_096),
    "mistral-7b-v0.3": (llama(32, 4096, 32, 8, 14336, 32768, False, model_type="mistral",
                              sliding_window=None), 7_248_023_552),
    "mixtral-8x7b": (llama(32, 4096, 32, 8, 14336, 32000, False, model_type="mixtral",
                           num_local_experts=8, num_experts_per_tok=2), 46_702_792_704),
    "qwen2.5-0.5b": (llama(24, 896, 14, 2, 4864, 151936, True, model_type="qwen2",
                           use_sliding_window=False, sliding_window=32768,
                           max_window_layers=24), 494_032_768),
    "qwen2.5-7b": (llama(28, 3584, 28, 4, 18944, 152064, False, model_type="qwen2"),
                   7_615_616_512),
    "qwen2.5-72b": (llama(80, 8192, 64, 8, 29568, 152064, False, model_type="qwen2"),
                    72_706_203_648),
    "qwen3-0.6b": (llama(28, 1024, 16, 8, 3072, 151936, True, model_type="qwen3", head_dim=128),
                   596_049_920),
    "qwen3-8b": (llama(36, 4096, 32, 8, 12288, 151936, False, model_type="qwen3", head_dim=128),
                 8_190_735_360),
    "qwen3-30b-a3b": (llama(48, 2048, 32, 4, 6144, 151936, False, model_type="qwen3_moe",
                            head_dim=128, num_experts=128, num_experts_per_tok=8,
                            moe_intermediate_size=768, decoder_sparse_step=1,
                            mlp_only_layers=[]), 30_532_122_624),
    "gemma-2b": (llama(18, 2048, 8, 1, 16384, 256000, True, model_type="gemma", head_dim=256,
                       hidden_activation="gelu_pytorch_tanh"), 2_506_172_416),
    "gemma-2-2b": (llama(26, 2304, 8, 4, 9216, 256000, True, model_type="gemma2", head_dim=256,
                         hidden_act="gelu_pytorch_tanh", sliding_window=4096), 2_614_341_888),
    "gemma-3-1b": (llama(26, 1152, 4, 1, 6912, 262144, True, model_type="gemma3_text", head_dim=256,
                         hidden_activation="gelu_pytorch_tanh", hidden_act="gelu_pytorch_tanh",
                         sliding_window=512, sliding_window_pattern=6), 999_885_952),
    "phi-2": (llama(32, 2560, 32, 32, 10240, 51200, False, model_type="phi",
                    hidden_act="gelu_new"), 2_779_683_840),
    "phi-3-mini": (llama(32, 3072, 32, 32, 8192, 32064, False, model_type="phi3"), 3_821_079_552),
    "smollm3-3b": (llama(36, 2048, 16, 4, 11008, 128256, True, model_type="smollm3"),
                   3_075_098_624),
}

GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
        "vocab_size": 50257, "activation_function": "gelu_new", "n_inner": None}
BERT = {"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512,
        "type_vocab_size": 2, "hidden_act": "gelu"}
DISTILBERT = {"model_type": "distilbert", "dim": 768, "n_layers": 6, "n_heads": 12,
              "hidden_dim": 3072, "vocab_size": 30522, "max_position_embeddings": 512,
              "activation": "gelu"}
ROBERTA = {**BERT, "model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514,
           "type_vocab_size": 1}
VIT = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 768,
       "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072,
       "image_size": 224, "patch_size": 16, "num_channels": 3, "hidden_act": "gelu",
       "id2label": {str(i): str(i) for i in range(1000)}}
OTHERS = {
    "gpt2": (GPT2, 124_439_808),
    "bert-base-uncased": (BERT, 109_482_240),
    "distilbert-base-uncased": (DISTILBERT, 66_362_880),
    "roberta-base": (ROBERTA, 124_645_632),
    "vit_b_16": (VIT, 86_567_656),
}


# ---- operations, by hand ----

def pairs(tokens, before, window):
    """Pairs of a token and one that it attends to, including itself, counted one by one."""
    return sum(min(before + i + 1, window or before + i + 1) for i in range(tokens))


def has_window(config, layer):
    """True if this layer has a sliding window."""
    kind = config["model_type"]
    if kind == "gemma2":
        return layer % 2 == 0
    if kind == "gemma3_text":
        return (layer + 1) % 6 != 0
    return kind == "mistral"


def macs(config, tokens, before, batch):
    """MACs of one pass; logits of the last token of each sequence."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    size = config.get("head_dim") or hidden // heads
    query, key = heads * size, config["num_key_value_heads"] * size
    width = config.get("moe_intermediate_size") or config["intermediate_size"]
    experts = config.get("num_local_experts") or config.get("num_experts") or 0
    used = config.get("num_experts_per_tok", 1)
    matrices = 2 if config["model_type"] == "phi" else 3  # without a gate
    linear = hidden * (2 * query + 2 * key) + matrices * hidden * width * used + hidden * experts
    total = config["num_hidden_layers"] * linear * tokens * batch
    for layer in range(config["num_hidden_layers"]):
        window = (config.get("sliding_window") or 0) if has_window(config, layer) else 0
        total += 2 * query * pairs(tokens, before, window) * batch
    return total + hidden * config["vocab_size"] * batch


def compressed(bits, kind, activations, **more):
    """A quantization_config in the format of llm-compressor."""
    inputs = activations and {"num_bits": activations, "type": kind, "dynamic": True, "strategy": "token"}
    return {"quant_method": "compressed-tensors", "ignore": ["lm_head"], "quantization_status": "compressed",
            "config_groups": {"group_0": {"targets": ["Linear"], "output_activations": None,
                                          "weights": {"num_bits": bits, "type": kind, "symmetric": True, **more},
                                          "input_activations": inputs}}}


class Published(ConfigTest):
    def test_published_parameter_counts(self):
        for name, (config, parameters) in {**CONFIGS, **OTHERS}.items():
            with self.subTest(name):
                of_file = show(self.write(config, name))
                self.assertEqual(of_file["parameters"], parameters)
                self.assertEqual(of_file["reader"], "hf_config")
                self.assertEqual(of_file["name"], name)
                self.assertFalse(of_file["is_guessed"])
                self.assertEqual(show(name)["parameters"], parameters)

    def test_operations_of_decoders(self):
        for name, (config, _) in CONFIGS.items():
            folder = self.write(config, name)
            words = folder, folder / "config.json", name
            for word in words:
                with self.subTest(str(word)):
                    decode = show(word, phase="decode", context=700, batch=3)
                    self.assertEqual(decode["macs"], macs(config, 1, 699, 3))
                    prefill = show(word, phase="prefill", tokens=700)
                    self.assertEqual(prefill["macs"], macs(config, 700, 0, 1))

    def test_sliding_windows_bound_attention(self):
        for name in ("mistral-7b", "gemma-2-2b", "gemma-3-1b"):
            config = CONFIGS[name][0]
            with self.subTest(name):
                decode = show(self.write(config, name), phase="decode", context=9000)
                self.assertEqual(decode["macs"], macs(config, 1, 8999, 1))
                prefill = show(name, phase="prefill", tokens=6000)
                self.assertEqual(prefill["macs"], macs(config, 6000, 0, 1))

    def test_macs_of_first_token_are_parameters(self):
        """One token that only attends to itself; each further one adds 2 x layers x query size."""
        for name, gmac, layers, query in (("smollm2-135m", 0.1345, 30, 576),
                                          ("llama-3.2-1b", 1.2358, 16, 2048)):
            first = show(name, phase="decode", context=1)["macs"]
            self.assertEqual(round(first / 1e9, 4), gmac)
            for context in (2, 1000):
                more = show(name, phase="decode", context=context)["macs"] - first
                self.assertEqual(more, 2 * layers * (context - 1) * query)

    def test_config_equals_model_by_name(self):
        for name, (config, _) in {**CONFIGS, **OTHERS}.items():
            settings = {"batch": 2} if name == "vit_b_16" else {"batch": 2, "tokens": 60}
            of_file, by_name = show(self.write(config, name), **settings), show(name, **settings)
            for key in ("macs", "elementwise", "weights"):
                with self.subTest(f"{name} {key}"):
                    self.assertEqual(of_file[key], by_name[key])

    def test_decode_reads_kv_cache_of_given_context(self):
        """As many tokens as requested, including the new one."""
        done = subprocess.run([IPW, "estimate", "--model", "llama-3.2-1b", "--hardware", "h100",
                               "--phase", "decode", "--context", "1024", "--precision", "fp16",
                               "--json"], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        report = json.loads(done.stdout)
        self.assertEqual(report["memory_bytes"]["kv_cache"], 16 * 2 * 512 * 1024 * 2)
        self.assertEqual(report["memory_bytes"]["weights"], 2 * 1_235_814_400)
        self.assertEqual(report["macs"], macs(CONFIGS["llama-3.2-1b"][0], 1, 1023, 1))

    def test_hugging_face_names(self):
        for spelled, name in (("meta-llama/Llama-3.2-1B", "llama-3.2-1b"),
                              ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2-135m"),
                              ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
                              ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
                              ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b")):
            self.assertEqual(show(spelled)["name"], name)


class Files(ConfigTest):
    """GGUF files, against the config.json of the same model."""

    def test_smollm2_file(self):
        path = SOURCE / "third_party/models/smollm2.gguf"
        if not path.exists():
            self.skipTest("third_party/models/smollm2.gguf is missing: tools/setup downloads it")
        of_file = show(path, phase="decode", context=300)
        layers = 30
        self.assertEqual(of_file["reader"], "gguf")
        self.assertEqual(of_file["parameters"], 134_515_008)
        self.assertEqual(of_file["macs"], macs(CONFIGS["smollm2-135m"][0], 1, 299, 1))
        # All weights of the file except the embedding table, plus the table for the head and one row of it.
        stored = of_file["weights"]["stored_bytes"]
        self.assertGreater(stored, 0.9 * path.stat().st_size - 10e6)
        self.assertLess(stored, path.stat().st_size)
        self.assertEqual(of_file["out"]["cached"], layers * 2 * 192)

    def test_shipped_models(self):
        found = sorted((BUILD / "models").glob("*.gguf"))
        if not found:
            self.skipTest("build/models has no models: the target `models` makes them")
        for path in found:
            with self.subTest(path.name):
                decode, prefill = (show(path, phase="decode", context=20),
                                   show(path, phase="prefill", tokens=21))
                self.assertTrue(decode["has_phases"])
                self.assertGreater(prefill["macs"], 15 * decode["macs"])
                self.assertEqual(prefill["parameters"], decode["parameters"])
                self.assertLess(decode["weights"]["stored_bytes"], 1.01 * path.stat().st_size)

    def test_precisions_change_bytes_only(self):
        found = {path.name: show(path, tokens=9) for path in (BUILD / "models").glob("ipw-6m-*.gguf")}
        if len(found) < 2:
            self.skipTest("build/models has no two formats of one model")
        wide, narrow = found["ipw-6m-f16.gguf"], found["ipw-6m-q4_0.gguf"]
        self.assertEqual(wide["macs"], narrow["macs"])
        self.assertEqual(wide["elementwise"], narrow["elementwise"])
        self.assertEqual(wide["parameters"], narrow["parameters"])
        self.assertLess(narrow["weights"]["stored_bytes"], 0.6 * wide["weights"]["stored_bytes"])


class Details(ConfigTest):
    def test_biases_and_heads(self):
        plain = llama(2, 64, 4, 2, 96, 100, True)
        base = show(self.write(plain))["parameters"]
        cases = {
            "attention_bias": (True, 2 * (64 + 32 + 32 + 64)),
            "mlp_bias": (True, 2 * (96 + 96 + 64)),
            "tie_word_embeddings": (False, 100 * 64),
            "head_dim": (32, 2 * 64 * (2 * 4 + 2 * 2) * (32 - 16)),
        }
        for key, (value, more) in cases.items():
            with self.subTest(key):
                changed = show(self.write({**plain, key: value}))["parameters"]
                self.assertEqual(changed - base, more)

    def test_layer_types_per_layer(self):
        config = llama(4, 64, 4, 2, 96, 100, True, model_type="qwen3", sliding_window=10, head_dim=16,
                       layer_types=["sliding_attention", "full_attention"] * 2)
        found = show(self.write(config), phase="decode", context=50)
        plain = show(self.write({**config, "layer_types": ["full_attention"] * 4}), phase="decode",
                     context=50)
        self.assertEqual(plain["macs"] - found["macs"], 2 * 2 * 64 * (50 - 10))
        config = llama(4, 64, 4, 2, 96, 100, True, model_type="qwen2", sliding_window=10,
                       use_sliding_window=True, max_window_layers=3)
        found = show(self.write(config), phase="decode", context=50)
        plain = show(self.write({**config, "use_sliding_window": False}), phase="decode", context=50)
        self.assertEqual(plain["macs"] - found["macs"], 2 * 64 * (50 - 10))

    def test_quantized_configs(self):
        config = CONFIGS["llama-3.2-1b"][0]
        matrices = 16 * (2048 * (2 * 2048 + 2 * 512) + 3 * 2048 * 8192)
        for more, bits in (({"quant_method": "awq", "bits": 4, "group_size": 128}, 4 + 20 / 128),
                           ({"quant_method": "gptq", "bits": 8, "group_size": -1}, 8),
                           ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4.5),
                           ({"quant_method": "fp8"}, 8),
                           ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8 + 32 / 128 ** 2),
                           (compressed(8, "int", 8), 8), (compressed(8, "float", 8), 8),
                           (compressed(4, "int", None, group_size=128), 4 + 16 / 128),
                           (compressed(4, "int", None, group_size=64, symmetric=False), 4 + 20 / 64),
                           ({"quant_method": "mxfp4"}, 0),
                           ({"quant_method": "from-the-future", "bits": 3}, 0)):
            with self.subTest(more["quant_method"]):
                found = show(self.write({**config, "quantization_config": more}), phase="decode")
                self.assertAlmostEqual(found["weights"]["stored_bytes"], matrices * bits / 8,
                                       delta=200)
                self.assertEqual(found["parameters"], 1_235_814_400)

    def test_defaults_of_missing_keys_equal_transformers(self):
        """Counted by transformers 5.22 (on the meta device) for the same files."""
        def without(config, *keys):
            return {key: value for key, value in config.items() if key not in keys}
        self.assertEqual(show(self.write(without(BERT, "type_vocab_size")))["parameters"], 109_482_240)
        for name in ("qwen3-0.6b", "qwen3-8b"):
            config, parameters = CONFIGS[name]
            self.assertEqual(show(self.write(without(config, "head_dim")))["parameters"], parameters)
        glm = llama(2, 4096, 32, 2, 13696, 151552, False, model_type="glm4", architectures=["Glm4ForCausalLM"])
        self.assertEqual(show(self.write(glm))["parameters"], 1_649_456_128)
        bart = {"model_type": "bart", "architectures": ["BartForSequenceClassification"], "d_model": 1024,
                "encoder_layers": 12, "decoder_layers": 12, "encoder_attention_heads": 16,
                "decoder_attention_heads": 16, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096, "vocab_size": 50265}
        self.assertEqual(show(self.write(bart))["parameters"], 407_344_131)

    def test_architectures_of_clip(self):
        """Towers of CLIP by architecture class, counted by transformers 5.22."""
        for name, parameters in (("CLIPModel", 151_277_313), ("CLIPVisionModel", 87_456_000),
                                 ("CLIPTextModel", 63_165_952), ("CLIPVisionModelWithProjection", 87_849_216),
                                 ("CLIPTextModelWithProjection", 63_428_096)):
            with self.subTest(name):
                config = {"model_type": "clip", "architectures": [name], "projection_dim": 512,
                          "text_config": {"model_type": "clip_text_model"},
                          "vision_config": {"model_type": "clip_vision_model"}}
                self.assertEqual(show(self.write(config))["parameters"], parameters)

    def test_qkv_bias_key_of_qwen2_moe(self):
        config = llama(2, 64, 4, 4, 96, 100, False, model_type="qwen2_moe", num_experts=6,
                       num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=40)
        plain, without = (show(self.write({**config, "qkv_bias": value}))["parameters"] for value in (True, False))
        self.assertEqual(plain - without, 2 * 3 * 64)

    def test_irrelevant_keys_are_not_reported(self):
        """Keys saved by transformers 5; other keys are reported."""
        small = llama(2, 64, 4, 4, 96, 100, False)
        for config in ({**BERT, "tie_word_embeddings": True}, {**VIT, "pooler_output_size": 768},
                       {**small, "dropout_rate": 0.1, "legacy": True, "original_max_position_embeddings": 4096},
                       {**small, "model_type": "qwen2_moe", "num_experts": 6, "num_experts_per_tok": 2,
                        "moe_intermediate_size": 24, "shared_expert_intermediate_size": 40, "qkv_bias": True},
                       {**small, "model_type": "smollm3", "no_rope_layer_interval": 4},
                       {"model_type": "mamba", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
                        "use_associative_scan": True}):
            folder = self.write(config)
            self.assertEqual(self.warned(folder), "")
            self.assertIn("'extra_experts'", self.warned(self.write({**config, "extra_experts": 3})))

    def warned(self, folder):
        done = subprocess.run([IPW, "estimate", "--model", folder, "--hardware", "h200"], capture_output=True, text=True,
                              timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_shared_experts_and_interleaved_dense_layers(self):
        config = llama(4, 64, 4, 4, 96, 100, False, model_type="qwen2_moe", num_experts=6,
                       num_experts_per_tok=2, moe_intermediate_size=24,
                       shared_expert_intermediate_size=40, decoder_sparse_step=2)
        attention = 4 * 64 * 64 + 3 * 64
        dense = 3 * 64 * 96
        sparse = 64 * 6 + 6 * 3 * 64 * 24 + 64 + 3 * 64 * 40
        self.assertEqual(show(self.write(config))["parameters"],
                         2 * 100 * 64 + 64 + 4 * (attention + 128) + 2 * dense + 2 * sparse)

    def test_experts_by_the_key_of_transformers_5(self):
        """Its key for num_experts of older files."""
        config, parameters = CONFIGS["qwen3-30b-a3b"]
        newer = {key: value for key, value in config.items() if key != "num_experts"}
        found = show(self.write({**newer, "num_local_experts": 128}))
        self.assertEqual(found["parameters"], parameters)

    def test_vit_without_qkv_bias(self):
        self.assertEqual(show(self.write({**VIT, "qkv_bias": False}))["parameters"],
                         86_567_656 - 12 * 3 * 768)

    def test_vit_head_and_pooler(self):
        bare = {**VIT, "architectures": ["ViTModel"]}
        self.assertEqual(show(self.write(bare))["parameters"], 86_389_248)  # with pooler
        small = show(self.write(VIT), image=112)
        self.assertEqual(small["parameters"], 86_567_656)
        self.assertLess(small["macs"], show(self.write(VIT))["macs"] / 3.5)


class Refused(ConfigTest):
    def refused(self, config, *words):
        answer = show(self.write(config))
        self.assertIn("error", answer)
        for word in words:
            self.assertIn(word, answer["error"])
        self.assertNotIn("\n", answer["error"])

    def test_absurd_values_are_rejected_by_key(self):
        good = {"llama": llama(2, 64, 4, 2, 96, 100, True),
                "mixtral": llama(2, 64, 4, 2, 96, 100, True, model_type="mixtral",
                                 num_local_experts=4, num_experts_per_tok=2),
                "gpt2": GPT2, "bert": BERT, "distilbert": DISTILBERT, "vit": VIT}
        optional = {"max_position_embeddings", "type_vocab_size", "n_inner", "num_labels"}
        for kind, config in good.items():
            self.assertNotIn("error", show(self.write(config)))
            for key, value in config.items():
                if isinstance(value, bool) or not isinstance(value, int):
                    continue
                for absurd in (-1, 10**18, 1.5, "8", [], {}, True, 1e300):
                    with self.subTest(f"{kind} {key} {absurd}"):
                        self.refused({**config, key: absurd}, f"'{key}'")
                if key not in optional:
                    self.refused({**config, key: 0}, f"'{key}'")

    def test_inconsistent_values_are_rejected(self):
        good = llama(2, 64, 4, 2, 96, 100, True)
        self.refused({**good, "num_attention_heads": 6, "num_key_value_heads": 6},
                     "'num_attention_heads' is 6: does not divide 'hidden_size'")
        self.refused({**good, "num_key_value_heads": 3}, "'num_key_value_heads' is 3")
        self.refused({**good, "layer_types": ["full_attention"]}, "'layer_types'")
        self.refused({**good, "layer_types": ["linear_attention"] * 2}, "'layer_types'")
        self.refused({**good, "hidden_act": "relu6"}, "'hidden_act'", "relu6")
        self.refused({**good, "tie_word_embeddings": 3}, "'tie_word_embeddings'")
        self.refused({**BERT, "num_attention_heads": 7}, "'num_attention_heads'", "'hidden_size'")
        self.refused({**VIT, "patch_size": 15}, "'patch_size'")
        huge = llama(4096, 1 << 22, 1, 1, 1 << 22, 100, True)
        self.refused(huge, "parameters")

    def test_unsupported_keys_are_rejected(self):
        phi = CONFIGS["phi-2"][0]
        self.assertNotIn("error", show(self.write({**phi, "qk_layernorm": False})))
        self.refused({**phi, "qk_layernorm": True}, "'qk_layernorm'", "not supported")
        self.refused({**phi, "tie_word_embeddings": True}, "'tie_word_embeddings'", "not supported")

    def test_unknown_model_types_are_rejected(self):
        self.refused({"model_type": "rwkv"}, "unknown model_type 'rwkv'")
        self.refused({"model_type": "lama"}, "'lama'", "did you mean 'llama'?")
        self.refused({"hidden_size": 8}, "'model_type' is missing")
        self.refused({"model_type": 3}, "'model_type'")
        self.refused("[]", "not a JSON object")
        self.refused('{"model_type": "llama",', "not JSON")

    def test_invalid_phases_and_lengths_are_rejected(self):
        self.assertIn("no decode", show(self.write(BERT), phase="decode")["error"])
        self.assertIn("positions", show(self.write(BERT), tokens=513)["error"])
        self.assertIn("token count", show(self.write(GPT2), tokens=-3)["error"])


if __name__ == "__main__":
    unittest.main()
