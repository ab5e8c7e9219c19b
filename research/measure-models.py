#!/usr/bin/env python3
"""Measures time and energy of models of torchvision and transformers on an NVIDIA GPU.

    research/measure-models.py [--out DIR] [--seconds S] [--budget S] [--only TEXT ...] [--unseen N] [--kernels]

Writes DIR/shipped.csv for `ipw estimate validate`: models as the libraries build them, with random weights, in
eager mode and as a CUDA graph.  With --kernels also DIR/kernels.jsonl: the kernels that each operator of a row launched,
with its input shapes and GPU time, from PyTorch's profiler.  Changes no clock, limit or mode of the GPU.

Eager mode is mostly limited by the host, so each row records its speed: host_launch_us is the time of one in-place
addition to a tensor of a few elements, host_module_us that of one small module (a convolution, a batch norm or a ReLU),
both launched without waiting for the GPU.  host_s is the host time to launch one step of the row itself.
A row in eager mode is the median of three windows.
"""
import importlib.util
import inspect
import json
import pathlib
import sys
import time

spec = importlib.util.spec_from_file_location("calibrate", pathlib.Path(__file__).with_name("calibrate-gpu.py"))
calibrate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calibrate)
say = calibrate.say

COLUMNS = ["family"] + calibrate.VALIDATE + ["kernels", "kernel_time_s", "host_launch_us", "host_module_us",
                                               "host_s"]

# name, family, image size, [(precision, batch)]
VISION = [
    ("resnet18", "resnet", 224, [("fp16", 1), ("fp32", 16)]),
    ("resnet50", "resnet", 224, [("fp16", 1), ("fp16", 32), ("fp32", 8), ("bf16", 64)]),
    ("resnext50_32x4d", "resnext", 224, [("fp16", 1), ("fp16", 32)]),
    ("wide_resnet50_2", "resnet", 224, [("fp16", 16)]),
    ("vgg16", "vgg", 224, [("fp16", 1), ("fp16", 32), ("fp32", 8)]),
    ("densenet121", "densenet", 224, [("fp16", 1), ("fp16", 32)]),
    ("mobilenet_v2", "mobilenet", 224, [("fp16", 1), ("fp16", 64)]),
    ("mobilenet_v3_large", "mobilenet", 224, [("fp16", 8), ("fp32", 32)]),
    ("efficientnet_b0", "efficientnet", 224, [("fp16", 1), ("fp16", 32)]),
    ("efficientnet_v2_s", "efficientnet", 384, [("fp16", 16)]),
    ("shufflenet_v2_x1_0", "shufflenet", 224, [("fp16", 32)]),
    ("squeezenet1_1", "squeezenet", 224, [("fp16", 32)]),
    ("mnasnet1_0", "mnasnet", 224, [("fp16", 32)]),
    ("regnet_y_8gf", "regnet", 224, [("fp16", 1), ("fp16", 32)]),
    ("regnet_x_3_2gf", "regnet", 224, [("bf16", 16)]),
    ("googlenet", "inception", 224, [("fp16", 16)]),
    ("inception_v3", "inception", 299, [("fp16", 16)]),
    ("convnext_tiny", "convnext", 224, [("fp16", 1), ("fp16", 32), ("fp32", 8)]),
    ("vit_b_16", "vit", 224, [("fp16", 1), ("fp16", 32), ("fp32", 8)]),
    ("swin_t", "swin", 224, [("fp16", 1), ("fp16", 32)]),
    ("maxvit_t", "maxvit", 224, [("fp16", 16)]),
    ("alexnet", "alexnet", 224, [("fp16", 64)]),
]

# name, family, [(precision, batch, tokens)]
ENCODERS = [
    ("bert-base-uncased", "bert", [("fp16", 1, 128), ("fp16", 32, 128), ("fp32", 8, 128), ("bf16", 8, 512)]),
    ("distilbert-base-uncased", "bert", [("fp16", 16, 128)]),
    ("roberta-large", "roberta", [("fp16", 8, 256)]),
]
# name, family, [(phase, batch, length)]
DECODERS = [
    ("gpt2", "gpt2", [("prefill", 1, 512), ("decode", 1, 512)]),
    ("llama-3.2-1b", "llama", [("prefill", 1, 512), ("decode", 1, 512), ("decode", 16, 2048)]),
    ("llama-3.1-8b", "llama", [("prefill", 1, 1024), ("decode", 1, 1024), ("decode", 16, 4096)]),
    ("qwen2.5-1.5b", "qwen2", [("prefill", 4, 512), ("decode", 8, 1024)]),
    ("mistral-7b-v0.3", "mistral", [("prefill", 1, 512), ("decode", 4, 2048)]),
    ("opt-1.3b", "opt", [("prefill", 1, 512), ("decode", 8, 512)]),
    ("phi-2", "phi", [("prefill", 1, 512), ("decode", 1, 512)]),
]

# Held-out models and batches: not used to develop the estimate when they were first measured.
UNSEEN_VISION = [
    ("resnet34", "resnet", 224, [("bf16", 32)]),
    ("resnet101", "resnet", 224, [("fp16", 4)]),
    ("resnext101_32x8d", "resnext", 224, [("fp16", 8)]),
    ("densenet169", "densenet", 224, [("fp16", 8)]),
    ("vgg11_bn", "vgg", 224, [("fp16", 16)]),
    ("efficientnet_b3", "efficientnet", 300, [("fp16", 8)]),
    ("mobilenet_v3_small", "mobilenet", 224, [("fp16", 64)]),
    ("mnasnet0_5", "mnasnet", 224, [("fp16", 16)]),
    ("shufflenet_v2_x2_0", "shufflenet", 224, [("fp16", 8)]),
    ("squeezenet1_0", "squeezenet", 224, [("fp32", 16)]),
    ("regnet_y_3_2gf", "regnet", 224, [("fp16", 16)]),
    ("regnet_x_800mf", "regnet", 224, [("fp32", 8)]),
    ("convnext_small", "convnext", 224, [("fp32", 4)]),
    ("convnext_base", "convnext", 224, [("fp16", 8)]),
    ("vit_b_32", "vit", 224, [("fp16", 64)]),
    ("vit_l_16", "vit", 224, [("bf16", 4)]),
    ("swin_s", "swin", 224, [("fp16", 8)]),
    ("swin_v2_t", "swin_v2", 256, [("fp16", 8)]),
]
UNSEEN_ENCODERS = [
    ("bert-large-uncased", "bert", [("fp16", 4, 256)]),
    ("roberta-base", "roberta", [("fp16", 16, 128), ("fp32", 4, 256)]),
]
UNSEEN_DECODERS = [
    ("gpt2-medium", "gpt2", [("prefill", 2, 256), ("decode", 4, 768)]),
    ("llama-3.2-3b", "llama", [("prefill", 2, 256), ("decode", 4, 1024)]),
    ("qwen2.5-0.5b", "qwen2", [("prefill", 8, 256), ("decode", 32, 512)]),
    ("tinyllama-1.1b", "llama2", [("prefill", 1, 1024), ("decode", 1, 1536)]),
]

# A second set, for host time in eager mode.
UNSEEN2_VISION = [
    ("resnet152", "resnet", 224, [("fp16", 2)]),
    ("resnext101_64x4d", "resnext", 224, [("bf16", 16)]),
    ("wide_resnet101_2", "resnet", 224, [("fp32", 2)]),
    ("vgg19_bn", "vgg", 224, [("fp16", 4)]),
    ("densenet201", "densenet", 224, [("fp16", 2)]),
    ("mobilenet_v2", "mobilenet", 224, [("fp32", 4)]),
    ("efficientnet_b2", "efficientnet", 288, [("fp16", 32)]),
    ("regnet_y_1_6gf", "regnet", 224, [("fp16", 4)]),
    ("regnet_x_8gf", "regnet", 224, [("fp16", 8)]),
    ("mnasnet1_3", "mnasnet", 224, [("fp16", 8)]),
    ("shufflenet_v2_x1_5", "shufflenet", 224, [("fp16", 64)]),
    ("googlenet", "inception", 224, [("fp32", 32)]),
    ("convnext_large", "convnext", 224, [("fp16", 2)]),
    ("vit_l_32", "vit", 224, [("fp16", 16)]),
    ("swin_b", "swin", 224, [("fp16", 2)]),
]
UNSEEN2_ENCODERS = [
    ("distilbert-base-uncased", "bert", [("fp16", 1, 384)]),
    ("bert-base-uncased", "bert", [("bf16", 2, 256)]),
]
UNSEEN2_DECODERS = [
    ("distilgpt2", "gpt2", [("prefill", 4, 128), ("decode", 16, 256)]),
    ("smollm2-360m", "llama2", [("prefill", 2, 512), ("decode", 2, 1024)]),
    ("qwen2.5-3b", "qwen2", [("prefill", 1, 1024), ("decode", 8, 2048)]),
]

# A third set, with new families: segmentation, Qwen 3, Gemma and Phi 3.
UNSEEN3_VISION = [
    ("vgg13", "vgg", 224, [("fp32", 4)]),
    ("densenet161", "densenet", 224, [("bf16", 16)]),
    ("efficientnet_b1", "efficientnet", 240, [("fp16", 4)]),
    ("efficientnet_v2_m", "efficientnet", 480, [("bf16", 4)]),
    ("shufflenet_v2_x0_5", "shufflenet", 224, [("fp16", 16)]),
    ("mnasnet0_75", "mnasnet", 224, [("fp32", 16)]),
    ("regnet_x_400mf", "regnet", 224, [("fp16", 32)]),
    ("regnet_y_16gf", "regnet", 224, [("bf16", 8)]),
    ("swin_v2_s", "swin_v2", 256, [("fp16", 4)]),
    ("fcn_resnet50", "segmentation", 520, [("fp16", 4), ("fp32", 1)]),
    ("deeplabv3_mobilenet_v3_large", "segmentation", 520, [("fp16", 8)]),
    ("lraspp_mobilenet_v3_large", "segmentation", 520, [("fp32", 2)]),
]
UNSEEN3_ENCODERS = [
    ("all-MiniLM-L6-v2", "minilm", [("fp16", 64, 128)]),
    ("all-MiniLM-L12-v2", "minilm", [("fp32", 8, 256)]),
    ("roberta-large", "roberta", [("bf16", 2, 512)]),
]
UNSEEN3_DECODERS = [
    ("gpt2-large", "gpt2", [("prefill", 1, 384), ("decode", 8, 256)]),
    ("qwen3-0.6b", "qwen3", [("prefill", 2, 512), ("decode", 4, 768)]),
    ("gemma-2b", "gemma", [("prefill", 1, 256), ("decode", 2, 512)]),
    ("phi-3-mini", "phi3", [("prefill", 1, 768), ("decode", 16, 512)]),
    ("smollm2-135m", "llama2", [("prefill", 8, 128), ("decode", 64, 128)]),
]

# A fourth set, for changes after the third: other models of the same families, and new batch sizes.
UNSEEN4_VISION = [
    ("resnet50", "resnet", 224, [("fp32", 2)]),
    ("resnext50_32x4d", "resnext", 224, [("fp32", 8)]),
    ("vgg16_bn", "vgg", 224, [("fp32", 16)]),
    ("densenet121", "densenet", 224, [("fp32", 4)]),
    ("efficientnet_b4", "efficientnet", 380, [("fp16", 2)]),
    ("regnet_y_32gf", "regnet", 224, [("fp16", 4)]),
    ("regnet_x_16gf", "regnet", 224, [("bf16", 16)]),
    ("regnet_y_400mf", "regnet", 224, [("fp16", 64)]),
    ("convnext_base", "convnext", 224, [("bf16", 32)]),
    ("vit_b_16", "vit", 224, [("bf16", 12)]),
    ("swin_v2_b", "swin_v2", 256, [("bf16", 8)]),
    ("maxvit_t", "maxvit", 224, [("fp16", 2)]),
    ("inception_v3", "inception", 299, [("fp32", 4)]),
    ("alexnet", "alexnet", 224, [("fp32", 8)]),
    ("fcn_resnet101", "segmentation", 520, [("bf16", 2)]),
    ("deeplabv3_resnet50", "segmentation", 520, [("fp16", 2)]),
    ("deeplabv3_resnet101", "segmentation", 520, [("fp32", 1)]),
    ("lraspp_mobilenet_v3_large", "segmentation", 520, [("fp16", 16)]),
]
UNSEEN4_ENCODERS = [
    ("bert-base-uncased", "bert", [("fp16", 128, 64)]),
    ("distilbert-base-uncased", "bert", [("fp32", 16, 128)]),
    ("roberta-base", "roberta", [("bf16", 32, 384)]),
]
UNSEEN4_DECODERS = [
    ("gpt2-xl", "gpt2", [("prefill", 1, 640), ("decode", 2, 384)]),
    ("qwen3-1.7b", "qwen3", [("prefill", 1, 896), ("decode", 16, 1280)]),
    ("gemma-2b", "gemma", [("prefill", 4, 384), ("decode", 8, 256)]),
    ("llama-3.2-1b", "llama", [("prefill", 4, 384), ("decode", 32, 640)]),
]

# A fifth set: larger and smaller models of all families; decode with random values in the KV cache.
UNSEEN5_VISION = [
    ("resnet18", "resnet", 224, [("fp32", 32)]),
    ("resnet152", "resnet", 224, [("bf16", 16)]),
    ("wide_resnet50_2", "resnet", 224, [("fp16", 24)]),
    ("vgg19", "vgg", 224, [("fp32", 2)]),
    ("densenet201", "densenet", 224, [("bf16", 24)]),
    ("efficientnet_b5", "efficientnet", 456, [("fp16", 4)]),
    ("mobilenet_v3_large", "mobilenet", 224, [("fp32", 16)]),
    ("squeezenet1_1", "squeezenet", 224, [("bf16", 128)]),
    ("regnet_y_800mf", "regnet", 224, [("fp16", 48)]),
    ("regnet_x_32gf", "regnet", 224, [("fp16", 4)]),
    ("googlenet", "inception", 224, [("bf16", 4)]),
    ("convnext_large", "convnext", 224, [("bf16", 16)]),
    ("vit_b_32", "vit", 224, [("fp32", 16)]),
    ("swin_t", "swin", 224, [("fp32", 6)]),
    ("swin_v2_t", "swin_v2", 256, [("bf16", 32)]),
    ("fcn_resnet50", "segmentation", 520, [("bf16", 1)]),
    ("deeplabv3_mobilenet_v3_large", "segmentation", 520, [("fp32", 4)]),
]
UNSEEN5_ENCODERS = [
    ("bert-large-uncased", "bert", [("bf16", 16, 128)]),
    ("roberta-base", "roberta", [("fp16", 2, 512)]),
    ("all-MiniLM-L6-v2", "minilm", [("bf16", 8, 64)]),
]
UNSEEN5_DECODERS = [
    ("gpt2", "gpt2", [("prefill", 8, 256), ("decode", 32, 512)]),
    ("tinyllama-1.1b", "llama2", [("prefill", 4, 256), ("decode", 8, 768)]),
    ("qwen3-0.6b", "qwen3", [("prefill", 1, 1024), ("decode", 24, 384)]),
    ("phi-2", "phi", [("prefill", 2, 256), ("decode", 4, 1024)]),
    ("llama-3.2-3b", "llama", [("prefill", 1, 768), ("decode", 16, 1536)]),
]
# A sixth set: the remaining models of torchvision, and new families of transformers, from their config.json in
# tests/fixtures/configs; the file is also written next to the rows, for the estimate.
UNSEEN6_VISION = [
    ("resnet101", "resnet", 224, [("fp32", 16)]),
    ("vgg11", "vgg", 224, [("bf16", 8)]),
    ("vgg13_bn", "vgg", 224, [("fp32", 8)]),
    ("densenet161", "densenet", 224, [("fp16", 1)]),
    ("efficientnet_b6", "efficientnet", 528, [("fp16", 4)]),
    ("efficientnet_b7", "efficientnet", 600, [("bf16", 1)]),
    ("efficientnet_v2_l", "efficientnet", 480, [("fp16", 2)]),
    ("mobilenet_v2", "mobilenet", 224, [("bf16", 32)]),
    ("mnasnet1_0", "mnasnet", 224, [("bf16", 4)]),
    ("shufflenet_v2_x1_0", "shufflenet", 224, [("fp32", 8)]),
    ("regnet_x_1_6gf", "regnet", 224, [("fp16", 24)]),
    ("regnet_y_128gf", "regnet", 224, [("bf16", 2)]),
    ("convnext_tiny", "convnext", 224, [("bf16", 96)]),
    ("vit_h_14", "vit", 224, [("fp16", 2)]),
    ("swin_s", "swin", 224, [("bf16", 16)]),
    ("swin_v2_s", "swin_v2", 256, [("fp32", 2)]),
]
UNSEEN6_ENCODERS = [
    ("bert-large-cased", "bert", [("fp32", 2, 384)]),
    ("deberta-v3-base", "deberta", [("fp16", 8, 128), ("bf16", 1, 512)]),
    ("t5-base", "t5", [("bf16", 16, 128), ("fp16", 2, 256)]),
]
UNSEEN6_DECODERS = [
    ("pythia-1.4b", "gpt_neox", [("prefill", 2, 512), ("decode", 8, 512)]),
    ("opt-350m", "opt", [("prefill", 4, 256), ("decode", 16, 384)]),
    ("bloom-560m", "bloom", [("prefill", 1, 512), ("decode", 4, 256)]),
    ("falcon-7b", "falcon", [("prefill", 1, 256), ("decode", 2, 512)]),
    ("glm-4-9b-0414", "glm4", [("prefill", 1, 384), ("decode", 16, 640)]),
    ("command-r7b", "cohere2", [("prefill", 1, 512), ("decode", 4, 1024)]),
    ("olmoe-1b-7b", "olmoe", [("prefill", 1, 256), ("decode", 8, 256)]),
]
# A seventh set: other models of the families of the sixth, and other batch sizes for the rest.
UNSEEN7_VISION = [
    ("resnet34", "resnet", 224, [("fp16", 96)]),
    ("vgg16_bn", "vgg", 224, [("bf16", 2)]),
    ("densenet169", "densenet", 224, [("fp32", 8)]),
    ("efficientnet_b0", "efficientnet", 224, [("bf16", 8)]),
    ("efficientnet_b4", "efficientnet", 380, [("fp32", 1)]),
    ("mobilenet_v3_small", "mobilenet", 224, [("fp32", 128)]),
    ("regnet_y_8gf", "regnet", 224, [("fp32", 4)]),
    ("convnext_base", "convnext", 224, [("fp32", 2)]),
    ("vit_b_16", "vit", 224, [("fp16", 6)]),
    ("vit_l_32", "vit", 224, [("bf16", 48)]),
    ("swin_b", "swin", 224, [("fp32", 8)]),
    ("inception_v3", "inception", 299, [("bf16", 24)]),
]
UNSEEN7_ENCODERS = [
    ("bert-base-cased", "bert", [("fp16", 24, 192)]),
    ("deberta-v3-large", "deberta", [("bf16", 4, 256)]),
    ("deberta-base", "deberta", [("fp16", 16, 128)]),
    ("flan-t5-xl", "t5", [("bf16", 4, 256), ("bf16", 1, 96)]),
]
UNSEEN7_DECODERS = [
    ("pythia-1.4b", "gpt_neox", [("prefill", 1, 1024), ("decode", 32, 1024)]),
    ("opt-6.7b", "opt", [("prefill", 1, 384)]),
    ("falcon-11b", "falcon", [("prefill", 1, 256), ("decode", 8, 384)]),
    ("glm-4-9b-0414", "glm4", [("decode", 2, 1536)]),
    ("qwen2.5-1.5b", "qwen2", [("prefill", 4, 384), ("decode", 12, 896)]),
    ("mistral-7b-v0.3", "mistral", [("prefill", 1, 640), ("decode", 6, 1280)]),
]
# An eighth set, measured after the host time per operator was fitted to the others: more models and batch sizes, and new
# families.
UNSEEN8_VISION = [
    ("resnet50", "resnet", 224, [("bf16", 12)]),
    ("wide_resnet101_2", "resnet", 224, [("fp16", 48)]),
    ("vgg19", "vgg", 224, [("bf16", 24)]),
    ("densenet201", "densenet", 224, [("fp16", 12)]),
    ("efficientnet_b3", "efficientnet", 300, [("bf16", 24)]),
    ("mobilenet_v3_large", "mobilenet", 224, [("fp16", 2)]),
    ("mnasnet0_75", "mnasnet", 224, [("fp32", 64)]),
    ("regnet_y_1_6gf", "regnet", 224, [("bf16", 32)]),
    ("resnext101_32x8d", "resnext", 224, [("bf16", 24)]),
    ("convnext_small", "convnext", 224, [("fp16", 16)]),
    ("vit_l_16", "vit", 224, [("fp16", 12)]),
    ("swin_t", "swin", 224, [("bf16", 64)]),
    ("swin_v2_b", "swin_v2", 256, [("fp16", 2)]),
    ("googlenet", "inception", 224, [("fp32", 8)]),
    ("deeplabv3_resnet50", "segmentation", 520, [("bf16", 4)]),
    ("segformer-b5", "segformer", 512, [("fp16", 2), ("bf16", 16)]),
]
UNSEEN8_ENCODERS = [
    ("roberta-base", "roberta", [("bf16", 48, 96)]),
    ("distilbert-base-uncased", "bert", [("bf16", 4, 448)]),
    ("deberta-v3-base", "deberta", [("fp16", 24, 320)]),
    ("t5-base", "t5", [("fp16", 12, 384)]),
]
UNSEEN8_DECODERS = [
    ("gpt2-medium", "gpt2", [("prefill", 12, 128), ("decode", 24, 640)]),
    ("smollm2-360m", "llama2", [("prefill", 1, 2048), ("decode", 48, 320)]),
    ("llama-3.1-8b", "llama", [("prefill", 2, 384), ("decode", 8, 2560)]),
    ("qwen3-1.7b", "qwen3", [("prefill", 6, 256), ("decode", 1, 3072)]),
    ("phi-2", "phi", [("prefill", 2, 640), ("decode", 24, 512)]),
    ("gemma-3-4b", "gemma3", [("prefill", 1, 512), ("decode", 6, 768)]),
    ("deepseek-v2-lite", "deepseek_v2", [("prefill", 1, 384), ("decode", 4, 512)]),
    ("gpt-oss-20b", "gpt_oss", [("prefill", 1, 256), ("decode", 2, 512)]),
    ("phi-3.5-moe", "phimoe", [("decode", 2, 256), ("prefill", 1, 128)]),
]
# A ninth set: new batch sizes of common models, predicted with the launch time that `ipw estimate calibrate` measured on
# the same host.
UNSEEN9_VISION = [
    ("resnet18", "resnet", 224, [("bf16", 3)]),
    ("resnet50", "resnet", 224, [("fp32", 64)]),
    ("resnext50_32x4d", "resnext", 224, [("bf16", 4)]),
    ("wide_resnet50_2", "resnet", 224, [("fp32", 4)]),
    ("vgg11_bn", "vgg", 224, [("fp32", 32)]),
    ("densenet121", "densenet", 224, [("bf16", 64)]),
    ("mobilenet_v2", "mobilenet", 224, [("fp16", 16)]),
    ("efficientnet_b0", "efficientnet", 224, [("fp32", 16)]),
    ("efficientnet_v2_s", "efficientnet", 384, [("bf16", 2)]),
    ("shufflenet_v2_x1_0", "shufflenet", 224, [("bf16", 128)]),
    ("squeezenet1_0", "squeezenet", 224, [("fp16", 4)]),
    ("regnet_y_3_2gf", "regnet", 224, [("fp32", 16)]),
    ("regnet_x_8gf", "regnet", 224, [("bf16", 32)]),
    ("convnext_tiny", "convnext", 224, [("fp16", 6)]),
    ("convnext_large", "convnext", 224, [("fp32", 1)]),
    ("vit_b_16", "vit", 224, [("fp32", 24)]),
    ("vit_b_32", "vit", 224, [("bf16", 6)]),
    ("swin_s", "swin", 224, [("fp16", 32)]),
    ("swin_v2_t", "swin_v2", 256, [("fp32", 12)]),
    ("maxvit_t", "maxvit", 224, [("bf16", 6)]),
    ("alexnet", "alexnet", 224, [("bf16", 256)]),
    ("fcn_resnet101", "segmentation", 520, [("fp16", 1)]),
    ("lraspp_mobilenet_v3_large", "segmentation", 520, [("bf16", 4)]),
]
UNSEEN9_ENCODERS = [
    ("bert-base-uncased", "bert", [("fp16", 12, 384)]),
    ("bert-large-uncased", "bert", [("fp16", 1, 128)]),
    ("roberta-large", "roberta", [("fp32", 4, 128)]),
    ("all-MiniLM-L12-v2", "minilm", [("bf16", 32, 256)]),
    ("t5-base", "t5", [("bf16", 8, 512)]),
]
UNSEEN9_DECODERS = [
    ("gpt2-large", "gpt2", [("prefill", 4, 512), ("decode", 16, 512)]),
    ("llama-3.2-1b", "llama", [("prefill", 8, 256), ("decode", 64, 256)]),
    ("qwen2.5-3b", "qwen2", [("prefill", 2, 512), ("decode", 4, 3072)]),
    ("mistral-7b-v0.3", "mistral", [("prefill", 1, 2048), ("decode", 16, 2048)]),
    ("phi-3-mini", "phi3", [("prefill", 4, 256), ("decode", 2, 1024)]),
    ("gemma-2b", "gemma", [("prefill", 2, 768), ("decode", 16, 1024)]),
    ("pythia-1.4b", "gpt_neox", [("prefill", 8, 128), ("decode", 4, 256)]),
    ("qwen3-0.6b", "qwen3", [("prefill", 8, 128), ("decode", 8, 2048)]),
    ("olmoe-1b-7b", "olmoe", [("prefill", 2, 384), ("decode", 4, 512)]),
]
# A tenth set: the most common models, at batch sizes between those of the other sets, mostly in fp16.
UNSEEN10_VISION = [
    ("resnet50", "resnet", 224, [("fp16", 8), ("fp16", 128)]),
    ("resnet101", "resnet", 224, [("bf16", 24)]),
    ("resnext101_64x4d", "resnext", 224, [("fp16", 6)]),
    ("vgg16", "vgg", 224, [("fp16", 10)]),
    ("densenet121", "densenet", 224, [("fp16", 8)]),
    ("mobilenet_v2", "mobilenet", 224, [("fp16", 128)]),
    ("mobilenet_v3_large", "mobilenet", 224, [("bf16", 64)]),
    ("efficientnet_b0", "efficientnet", 224, [("fp16", 96)]),
    ("efficientnet_b2", "efficientnet", 288, [("fp16", 8)]),
    ("regnet_y_8gf", "regnet", 224, [("fp16", 12)]),
    ("convnext_tiny", "convnext", 224, [("fp16", 64)]),
    ("vit_b_16", "vit", 224, [("fp16", 16), ("bf16", 80)]),
    ("vit_l_16", "vit", 224, [("fp32", 4)]),
    ("swin_t", "swin", 224, [("fp16", 12)]),
    ("swin_v2_t", "swin_v2", 256, [("fp16", 24)]),
    ("inception_v3", "inception", 299, [("fp16", 48)]),
    ("deeplabv3_resnet50", "segmentation", 520, [("fp16", 6)]),
]
UNSEEN10_ENCODERS = [
    ("bert-base-uncased", "bert", [("fp16", 8, 128), ("bf16", 24, 192)]),
    ("roberta-base", "roberta", [("fp16", 6, 256)]),
    ("distilbert-base-uncased", "bert", [("fp16", 64, 64)]),
    ("all-MiniLM-L6-v2", "minilm", [("fp16", 24, 128)]),
]
UNSEEN10_DECODERS = [
    ("gpt2", "gpt2", [("prefill", 2, 384), ("decode", 12, 512)]),
    ("llama-3.2-1b", "llama", [("prefill", 2, 1024), ("decode", 4, 1536)]),
    ("qwen2.5-1.5b", "qwen2", [("prefill", 2, 384), ("decode", 24, 768)]),
    ("llama-3.1-8b", "llama", [("prefill", 1, 640), ("decode", 24, 1024)]),
    ("mistral-7b-v0.3", "mistral", [("prefill", 4, 256), ("decode", 2, 3072)]),
    ("qwen3-1.7b", "qwen3", [("prefill", 2, 512), ("decode", 8, 1024)]),
]
# An eleventh set: sizes and batches between those of the others, for eager mode on a host whose launch time is not given.
UNSEEN11_VISION = [
    ("resnet18", "resnet", 224, [("fp16", 24)]),
    ("resnet34", "resnet", 224, [("fp16", 3)]),
    ("resnet152", "resnet", 224, [("fp16", 20)]),
    ("wide_resnet101_2", "resnet", 224, [("bf16", 10)]),
    ("vgg19", "vgg", 224, [("fp16", 20)]),
    ("densenet201", "densenet", 224, [("fp16", 20)]),
    ("mobilenet_v3_small", "mobilenet", 224, [("fp16", 256)]),
    ("efficientnet_b1", "efficientnet", 240, [("fp16", 20)]),
    ("regnet_y_800mf", "regnet", 224, [("fp16", 40)]),
    ("regnet_x_1_6gf", "regnet", 224, [("fp16", 2)]),
    ("convnext_small", "convnext", 224, [("fp16", 20)]),
    ("convnext_base", "convnext", 224, [("bf16", 3)]),
    ("vit_b_32", "vit", 224, [("fp16", 20)]),
    ("vit_l_32", "vit", 224, [("fp16", 12)]),
    ("swin_b", "swin", 224, [("fp16", 20)]),
    ("googlenet", "inception", 224, [("fp16", 40)]),
    ("fcn_resnet50", "segmentation", 520, [("fp16", 3)]),
]
UNSEEN11_ENCODERS = [
    ("bert-base-uncased", "bert", [("fp16", 5, 320)]),
    ("bert-large-uncased", "bert", [("fp16", 12, 96)]),
    ("roberta-base", "roberta", [("bf16", 20, 160)]),
    ("all-MiniLM-L6-v2", "minilm", [("fp16", 80, 96)]),
]
UNSEEN11_DECODERS = [
    ("gpt2-medium", "gpt2", [("prefill", 3, 320), ("decode", 6, 640)]),
    ("llama-3.2-3b", "llama", [("prefill", 1, 800), ("decode", 6, 1200)]),
    ("qwen2.5-0.5b", "qwen2", [("prefill", 3, 640), ("decode", 12, 1200)]),
    ("tinyllama-1.1b", "llama", [("prefill", 3, 320), ("decode", 3, 900)]),
    ("smollm2-360m", "llama", [("prefill", 6, 320), ("decode", 6, 700)]),
]
SETS = [(VISION, ENCODERS, DECODERS), (UNSEEN_VISION, UNSEEN_ENCODERS, UNSEEN_DECODERS),
        (UNSEEN2_VISION, UNSEEN2_ENCODERS, UNSEEN2_DECODERS), (UNSEEN3_VISION, UNSEEN3_ENCODERS, UNSEEN3_DECODERS),
        (UNSEEN4_VISION, UNSEEN4_ENCODERS, UNSEEN4_DECODERS), (UNSEEN5_VISION, UNSEEN5_ENCODERS, UNSEEN5_DECODERS),
        (UNSEEN6_VISION, UNSEEN6_ENCODERS, UNSEEN6_DECODERS), (UNSEEN7_VISION, UNSEEN7_ENCODERS, UNSEEN7_DECODERS),
        (UNSEEN8_VISION, UNSEEN8_ENCODERS, UNSEEN8_DECODERS), (UNSEEN9_VISION, UNSEEN9_ENCODERS, UNSEEN9_DECODERS),
        (UNSEEN10_VISION, UNSEEN10_ENCODERS, UNSEEN10_DECODERS),
        (UNSEEN11_VISION, UNSEEN11_ENCODERS, UNSEEN11_DECODERS)]
CONFIGS = pathlib.Path(__file__).parent.parent / "tests/fixtures/configs/models.json"
EAGER_WINDOWS, EAGER_S = 3, 0.6  # windows of a row in eager mode, and their length


def configs(transformers):
    t = transformers
    llama = dict(vocab_size=128256, hidden_act="silu", rms_norm_eps=1e-5, rope_theta=500000.0,
                 max_position_embeddings=16384, attention_bias=False)
    return {
        "bert-base-uncased": lambda: (t.BertModel, t.BertConfig()),
        "distilbert-base-uncased": lambda: (t.DistilBertModel, t.DistilBertConfig()),
        "roberta-large": lambda: (t.RobertaModel, t.RobertaConfig(
            vocab_size=50265, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
            max_position_embeddings=514, type_vocab_size=1)),
        "bert-large-uncased": lambda: (t.BertModel, t.BertConfig(
            hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)),
        "roberta-base": lambda: (t.RobertaModel, t.RobertaConfig(
            vocab_size=50265, max_position_embeddings=514, type_vocab_size=1)),
        "bert-base-cased": lambda: (t.BertModel, t.BertConfig(vocab_size=28996)),
        "bert-large-cased": lambda: (t.BertModel, t.BertConfig(
            vocab_size=28996, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)),
        "gpt2-medium": lambda: (t.GPT2LMHeadModel, t.GPT2Config(n_embd=1024, n_layer=24, n_head=16)),
        "llama-3.2-3b": lambda: (t.LlamaForCausalLM, t.LlamaConfig(
            **llama, hidden_size=3072, intermediate_size=8192, num_hidden_layers=28, num_attention_heads=24,
            num_key_value_heads=8, tie_word_embeddings=True)),
        "qwen2.5-0.5b": lambda: (t.Qwen2ForCausalLM, t.Qwen2Config(
            vocab_size=151936, hidden_size=896, intermediate_size=4864, num_hidden_layers=24, num_attention_heads=14,
            num_key_value_heads=2, tie_word_embeddings=True, max_position_embeddings=16384)),
        "tinyllama-1.1b": lambda: (t.LlamaForCausalLM, t.LlamaConfig(
            vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
            num_key_value_heads=4, max_position_embeddings=2048)),
        "all-MiniLM-L6-v2": lambda: (t.BertModel, t.BertConfig(
            hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)),
        "all-MiniLM-L12-v2": lambda: (t.BertModel, t.BertConfig(
            hidden_size=384, num_hidden_layers=12, num_attention_heads=12, intermediate_size=1536)),
        "gpt2-large": lambda: (t.GPT2LMHeadModel, t.GPT2Config(n_embd=1280, n_layer=36, n_head=20)),
        "gpt2-xl": lambda: (t.GPT2LMHeadModel, t.GPT2Config(n_embd=1600, n_layer=48, n_head=25)),
        "qwen3-1.7b": lambda: (t.Qwen3ForCausalLM, t.Qwen3Config(
            vocab_size=151936, hidden_size=2048, intermediate_size=6144, num_hidden_layers=28, num_attention_heads=16,
            num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, max_position_embeddings=16384)),
        "qwen3-0.6b": lambda: (t.Qwen3ForCausalLM, t.Qwen3Config(
            vocab_size=151936, hidden_size=1024, intermediate_size=3072, num_hidden_layers=28, num_attention_heads=16,
            num_key_value_heads=8, head_dim=128, tie_word_embeddings=True, max_position_embeddings=16384)),
        "gemma-2b": lambda: (t.GemmaForCausalLM, t.GemmaConfig(
            vocab_size=256000, hidden_size=2048, intermediate_size=16384, num_hidden_layers=18, num_attention_heads=8,
            num_key_value_heads=1, head_dim=256, max_position_embeddings=8192)),
        "phi-3-mini": lambda: (t.Phi3ForCausalLM, t.Phi3Config(
            vocab_size=32064, hidden_size=3072, intermediate_size=8192, num_hidden_layers=32, num_attention_heads=32,
            num_key_value_heads=32, sliding_window=None, max_position_embeddings=4096, pad_token_id=0)),
        "smollm2-135m": lambda: (t.LlamaForCausalLM, t.LlamaConfig(
            vocab_size=49152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30, num_attention_heads=9,
            num_key_value_heads=3, tie_word_embeddings=True, max_position_embeddings=8192)),
        "distilgpt2": lambda: (t.GPT2LMHeadModel, t.GPT2Config(n_layer=6)),
        "smollm2-360m": lambda: (t.LlamaForCausalLM, t.LlamaConfig(
            vocab_size=49152, hidden_size=960, intermediate_size=2560, num_hidden_layers=32, num_attention_heads=15,
            num_key_value_heads=5, tie_word_embeddings=True, max_position_embeddings=8192)),
        "qwen2.5-3b": lambda: (t.Qwen2ForCausalLM, t.Qwen2Config(
            vocab_size=151936, hidden_size=2048, intermediate_size=11008, num_hidden_layers=36, num_attention_heads=16,
            num_key_value_heads=2, tie_word_embeddings=True, max_position_embeddings=16384)),
        "gpt2": lambda: (t.GPT2LMHeadModel, t.GPT2Config()),
        "llama-3.2-1b": lambda: (t.LlamaForCausalLM, t.LlamaConfig(
            **llama, hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
            num_key_value_heads=8, tie_word_embeddings=True)),
        "llama-3.1-8b": lambda: (t.LlamaForCausalLM, t.LlamaConfig(
            **llama, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
            num_key_value_heads=8)),
        "qwen2.5-1.5b": lambda: (t.Qwen2ForCausalLM, t.Qwen2Config(
            vocab_size=151936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28, num_attention_heads=12,
            num_key_value_heads=2, tie_word_embeddings=True, max_position_embeddings=16384)),
        "mistral-7b-v0.3": lambda: (t.MistralForCausalLM, t.MistralConfig(
            vocab_size=32768, hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32,
            num_key_value_heads=8, sliding_window=None, max_position_embeddings=16384)),
        "opt-1.3b": lambda: (t.OPTForCausalLM, t.OPTConfig(
            vocab_size=50272, hidden_size=2048, ffn_dim=8192, num_hidden_layers=24, num_attention_heads=32,
            max_position_embeddings=2048, word_embed_proj_dim=2048)),
        "phi-2": lambda: (t.PhiForCausalLM, t.PhiConfig(
            vocab_size=51200, hidden_size=2560, intermediate_size=10240, num_hidden_layers=32, num_attention_heads=32,
            partial_rotary_factor=0.4, max_position_embeddings=2048)),
    }


def read_configs(transformers, to):
    """Factories of the models of CONFIGS by name; each writes the config.json for the estimate."""
    def maker(name, config):
        def make():
            words = dict(config)
            if words["model_type"] == "t5":  # encoder only, which is one pass
                words["architectures"] = ["T5EncoderModel"]
            (to / f"{name}.json").write_text(json.dumps(words) + "\n", encoding="utf-8")
            return getattr(transformers, words["architectures"][0]), transformers.AutoConfig.for_model(**words)
        return make
    return {entry["name"]: maker(entry["name"], entry["config"])
            for entry in json.loads(CONFIGS.read_text(encoding="utf-8"))["models"]}


class Models:
    """Measures models as the libraries build them, one at a time."""

    def __init__(self, bench, table, args):
        self.bench, self.torch, self.table, self.args = bench, bench.torch, table, args
        torch = bench.torch
        self.kinds = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32}
        self.out = (args.out / "kernels.jsonl").open("w", encoding="utf-8") if args.kernels else None

    def host(self):
        """Host time in µs of one addition and of one small module: the minimum of a few rounds."""
        torch, nn = self.torch, self.torch.nn
        if not hasattr(self, "probes"):
            layers = [part for _ in range(32) for part in
                      (nn.Conv2d(8, 8, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True))]
            stack = nn.Sequential(*layers).eval().to(device="cuda", dtype=torch.float16,
                                                     memory_format=torch.channels_last)
            image = torch.randn(1, 8, 4, 4, device="cuda", dtype=torch.float16).to(memory_format=torch.channels_last)
            self.probes = (lambda: stack(image), len(layers))
        module = calibrate.host_s(torch, *self.probes)
        return {"host_launch_us": f"{1e6 * calibrate.host_launch_s(torch):.4g}", "host_module_us": f"{1e6 * module:.4g}"}

    def issue(self, step):
        """Host time of one step, starting with an empty queue."""
        took = []
        for _ in range(7):
            self.torch.cuda.synchronize()
            begun = time.perf_counter()
            step()
            took.append(time.perf_counter() - begun)
        self.torch.cuda.synchronize()
        return f"{sorted(took)[2]:.6g}"

    def eager(self, step, seconds):
        """The median window by time, with host times measured before each, since background load varies."""
        found = [{**self.host(), **self.bench.measure(step, min(EAGER_S, seconds))} for _ in range(EAGER_WINDOWS)]
        return sorted(found, key=lambda row: float(row["latency_s"]))[EAGER_WINDOWS // 2]

    def word(self, name):
        """The --model argument of the estimate: a name, or the written config.json."""
        return f"{name}.json" if (self.args.out / f"{name}.json").exists() else name

    def wanted(self, name):
        return not self.args.only or any(text in name for text in self.args.only)

    def profile(self, step, what):
        """Kernels launched by one step: (number, GPU seconds)."""
        torch = self.torch
        from torch.profiler import ProfilerActivity, profile
        for _ in range(3):
            step()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as run:
            step()
            torch.cuda.synchronize()
        rows, count, total = [], 0, 0.0
        for event in run.events():
            kernels = [(k.name, k.duration) for k in event.kernels]
            if not kernels:
                continue
            count += len(kernels)
            total += sum(us for _, us in kernels) * 1e-6
            rows.append({"op": event.name, "shapes": event.input_shapes, "kernels": kernels})
        if self.out:
            self.out.write(json.dumps({**what, "operators": rows}) + "\n")
            self.out.flush()
        return count, total

    def rows(self, what, label, step, seconds):
        """Adds the rows of both runtimes of one step."""
        if self.bench.left() < 8:
            self.bench.skipped.append(label)
            return
        count, total = None, None
        try:
            if self.args.kernels:
                count, total = self.profile(step, what)
        except Exception as problem:
            say(f"{label}: profile: {type(problem).__name__}: {str(problem).splitlines()[0][:100]}")
        self.bench.args.seconds = seconds
        host = self.host()
        host["host_s"] = self.issue(step)
        for runtime in ("graph", "eager"):
            row = {**what, "runtime": runtime, "kernels": count,
                   "kernel_time_s": None if total is None else f"{total:.9g}", "notes": "random weights", **host}
            self.bench.row(self.table, row, f"{label} {runtime}",
                           lambda: calibrate.capture(self.torch, step) if runtime == "graph" else step, 4,
                           self.eager if runtime == "eager" else None)

    def image_model(self, name, family, make):
        """Measures a model of torchvision, or of transformers from its config.json."""
        import torchvision
        if make:
            kind, config = make()
            return kind(config).eval()
        options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
        library = torchvision.models
        if family == "segmentation":
            library, options = library.segmentation, {"weights_backbone": None}
            if not name.startswith("lraspp"):  # their pretrained weights have a second head
                options["aux_loss"] = True
        return getattr(library, name)(weights=None, **options).eval()

    def vision(self, name, family, size, cases, make):
        torch = self.torch
        model = self.image_model(name, family, make)
        for precision, batch in cases:
            kind = self.kinds[precision]
            model = model.to(device="cuda", dtype=kind, memory_format=torch.channels_last)
            image = torch.randn(batch, 3, size, size, dtype=kind, device="cuda").to(
                memory_format=torch.channels_last)
            self.rows({"family": family, "model": self.word(name), "precision": precision, "batch": batch},
                      f"{name} {precision} batch {batch}", lambda: model(image), self.args.seconds)

    def build(self, make, precision):
        torch = self.torch
        kind, config = make()
        config._attn_implementation = "sdpa" if kind._supports_sdpa else "eager"
        before = torch.get_default_dtype()
        torch.set_default_dtype(self.kinds[precision])
        try:
            with torch.device("cuda"):
                return kind(config).eval()
        finally:
            torch.set_default_dtype(before)

    def encoder(self, make, name, family, cases):
        torch = self.torch
        for precision, batch, tokens in cases:
            model = self.build(make, precision)
            ids = torch.randint(5, min(30000, model.config.get_text_config().vocab_size), (batch, tokens), device="cuda")
            mask = torch.ones_like(ids)
            self.rows({"family": family, "model": self.word(name), "precision": precision, "batch": batch,
                       "prompt_tokens": tokens}, f"{name} {precision} batch {batch} x {tokens}",
                      lambda: model(input_ids=ids, attention_mask=mask), self.args.seconds)

    def decoder(self, transformers, make, name, family, cases):
        torch = self.torch
        model = self.build(make, "fp16")
        for phase, batch, length in cases:
            prompt, context = (length, 0) if phase == "prefill" else (0, length)
            new = prompt or 1
            ids = torch.randint(5, min(30000, model.config.get_text_config().vocab_size), (batch, new), device="cuda")
            positions = torch.arange(context, context + new, device="cuda")
            cache = transformers.StaticCache(config=model.config, max_batch_size=batch, max_cache_len=context + new,
                                             device="cuda", dtype=torch.float16)
            options = {"past_key_values": cache, "use_cache": True}
            if "position_ids" in inspect.signature(model.forward).parameters and family != "opt":
                options["position_ids"] = positions[None].expand(batch, new)
            model(input_ids=ids, **options)
            # The cache keeps its own length: reset it, so that each step starts at the same position.
            lengths = torch.full((len(cache.layers),), context, device="cuda")
            for index, layer in enumerate(cache.layers):
                layer.cumulative_length = lengths[index]
                if context:  # a new cache contains zeros, and moving zeros takes less energy
                    layer.keys.normal_()
                    layer.values.normal_()

            def step():
                lengths.fill_(context)
                return model(input_ids=ids, **options)
            self.rows({"family": family, "model": self.word(name), "precision": "fp16", "batch": batch, "phase": phase,
                       "prompt_tokens": prompt or None, "context": context or None},
                      f"{name} {phase} {length} batch {batch}", step, self.args.seconds)
            cache = options = step = None

    def all(self):
        import transformers
        transformers.logging.set_verbosity_error()
        makers = {**read_configs(transformers, self.args.out), **configs(transformers)}
        vision, encoders, decoders = SETS[self.args.unseen]
        parts = [(name, lambda n=name, f=family, s=size, c=cases: self.vision(n, f, s, c, makers.get(n)))
                 for name, family, size, cases in vision]
        parts += [(name, lambda n=name, f=family, c=cases: self.encoder(makers[n], n, f, c))
                  for name, family, cases in encoders]
        parts += [(name, lambda n=name, f=family, c=cases: self.decoder(transformers, makers[n], n, f, c))
                  for name, family, cases in decoders]
        for name, part in parts:
            if not self.wanted(name):
                continue
            try:
                part()
            except Exception as problem:
                say(f"{name}: {type(problem).__name__}: {str(problem).splitlines()[0][:160]}")
                self.bench.skipped.append(name)
            self.torch.cuda.empty_cache()


def main():
    parser = calibrate.arguments("measure-models", __doc__, budget=540)
    parser.add_argument("--only", nargs="*", default=[], help="models whose name contains one of these")
    parser.add_argument("--unseen", type=int, choices=range(len(SETS)), default=0,
                        help="1 to 10: sets of models that were held out when they were measured")
    parser.add_argument("--kernels", action="store_true", help="count and time kernels, and write kernels.jsonl: launches are slower "
                        "once the profiler has run")
    args, torch, bench = calibrate.start(parser)
    table = calibrate.Table(args.out / "shipped.csv", COLUMNS)
    with torch.inference_mode():
        Models(bench, table, args).all()
    say(f"{table.count} rows in {args.out / 'shipped.csv'}")
    if bench.skipped:
        say("skipped: " + "; ".join(bench.skipped))


if __name__ == "__main__":
    main()
