"""Trained networks as ONNX files, with the files that exports of optimum, ultralytics and diffusers have beside them."""
import json
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import digit_tokens
import topics
import whisper_network
from diffusion_network import BETA_FIRST, BETA_LAST, STEPS, ShapesEncoder, UNet
from scene_networks import YOLO_SIZES, ResNet, VisionTransformer, Yolo
from scenes import CLASSES, SIDE
from shape_images import SIDE as SHAPE_SIDE
from topics_network import TopicsLSTM
from training import load

OPSET = 17
DESCRIPTION = "Trained from nothing on data that ipw generates"


def write_json(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def save(model, path, metadata=None):
    helper.set_model_props(model, {"author": "ipw", "license": "Apache-2.0", "description": DESCRIPTION,
                                   **(metadata or {})})
    onnx.checker.check_model(model, full_check=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def store_half(model):
    """Keeps the weights of convolutions as 16 bits, which a runtime converts to 32 when it opens the file."""
    weights = {node.input[1] for node in model.graph.node if node.op_type == "Conv"}
    casts = []
    for tensor in model.graph.initializer:
        if tensor.name in weights:
            half = numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), f"{tensor.name}.half")
            casts.append(helper.make_node("Cast", [half.name], [tensor.name], f"{tensor.name}.cast", to=TensorProto.FLOAT))
            tensor.CopyFrom(half)
    for node in reversed(casts):
        model.graph.node.insert(0, node)


def export(network, arguments, path, inputs, outputs, axes, metadata=None, is_half=False):
    """`axes`: the free dimensions of each input and output, by their index."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(network.eval(), arguments, str(path), dynamo=False, opset_version=OPSET,
                          input_names=inputs, output_names=outputs, dynamic_axes=axes)
    model = onnx.load(path)
    for node in model.graph.node:
        node.doc_string = ""
    if is_half:
        store_half(model)
    save(model, path, metadata)


def labels_of(names):
    return {"id2label": {str(index): name for index, name in enumerate(names)},
            "label2id": {name: index for index, name in enumerate(names)}}


# ---- vision ----

def export_classifier(network, folder, architecture):
    export(network, (torch.zeros(2, 3, SIDE, SIDE),), folder / "model.onnx", ["pixel_values"], ["logits"],
           {"pixel_values": {0: "batch"}, "logits": {0: "batch"}},
           {"names": str(dict(enumerate(CLASSES)))})
    write_json(folder / "config.json", {"architectures": [architecture], "image_size": SIDE, "num_channels": 3,
                                        "problem_type": "single_label_classification", **labels_of(CLASSES)})
    write_json(folder / "preprocessor_config.json",
               {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": SIDE, "width": SIDE},
                "resample": 2, "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True,
                "image_mean": [0.5] * 3, "image_std": [0.5] * 3})


def export_vision(trained, out):
    export_classifier(load(VisionTransformer(), trained / "scenes-vit.npz"), out / "scenes-vit",
                      "ViTForImageClassification")
    export_classifier(load(ResNet(), trained / "scenes-resnet.npz"), out / "scenes-resnet",
                      "ResNetForImageClassification")
    for size in YOLO_SIZES:
        name = f"scenes-yolo-{size}"
        export(load(Yolo(size), trained / f"{name}.npz"), (torch.zeros(2, 3, SIDE, SIDE),), out / f"{name}.onnx",
               ["images"], ["output0"],
               {"images": {0: "batch", 2: "height", 3: "width"}, "output0": {0: "batch", 2: "anchors"}},
               {"task": "detect", "stride": "32", "batch": "1", "imgsz": str([SIDE, SIDE]),
                "names": str(dict(enumerate(CLASSES)))}, is_half=size != "n")


# ---- speech ----

class FirstDecoder(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens, states):
        logits, caches = self.decoder.first(tokens, states)
        return logits, *(tensor for cache in caches for tensor in cache)


class NextDecoder(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, tokens, *past):
        caches = [past[index:index + 4] for index in range(0, len(past), 4)]
        logits, grown = self.decoder.next(tokens, caches)
        return logits, *(tensor for cache in grown for tensor in cache)


def cache_names(prefix, layers, parts):
    return [f"{prefix}.{layer}.{part}" for layer in range(layers) for part in parts]


def export_decoders(decoder, shape, out):
    own, cross = ["decoder.key", "decoder.value"], ["encoder.key", "encoder.value"]
    layers, positions, width = shape["decoder_layers"], shape["max_source_positions"], shape["d_model"]
    heads = shape["decoder_attention_heads"]
    first = cache_names("present", layers, own + cross)
    axes = {"input_ids": {0: "batch", 1: "sequence"}, "logits": {0: "batch", 1: "sequence"},
            "encoder_hidden_states": {0: "batch"}}
    axes.update({name: {0: "batch", 2: "sequence"} if ".decoder." in name else {0: "batch"} for name in first})
    export(FirstDecoder(decoder), (torch.zeros(2, 4, dtype=torch.long), torch.zeros(2, positions, width)),
           out / "decoder_model.onnx", ["input_ids", "encoder_hidden_states"], ["logits", *first], axes)
    past, present = cache_names("past_key_values", layers, own + cross), cache_names("present", layers, own)
    axes = {"input_ids": {0: "batch"}, "logits": {0: "batch"}}
    axes.update({name: {0: "batch", 2: "past_sequence"} if ".decoder." in name else {0: "batch"} for name in past})
    axes.update({name: {0: "batch", 2: "sequence"} for name in present})
    caches = [torch.zeros(2, heads, 5 if ".decoder." in name else positions, width // heads) for name in past]
    export(NextDecoder(decoder), (torch.zeros(2, 1, dtype=torch.long), *caches), out / "decoder_with_past_model.onnx",
           ["input_ids", *past], ["logits", *present], axes)


def whisper_config(shape):
    ids = digit_tokens.vocabulary()
    end = ids["<|endoftext|>"]
    special = {"decoder_start_token_id": ids["<|startoftranscript|>"], "bos_token_id": end, "eos_token_id": end,
               "pad_token_id": end}
    forced = [[index, token] for index, token in enumerate(digit_tokens.prompt()) if index]
    config = {"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], **shape, **special,
              "activation_function": "gelu", "scale_embedding": False, "is_encoder_decoder": True,
              "tie_word_embeddings": True, "suppress_tokens": [], "begin_suppress_tokens": [end],
              "forced_decoder_ids": forced}
    generation = {**special, "is_multilingual": True, "lang_to_id": {"<|en|>": ids["<|en|>"]},
                  "task_to_id": {"transcribe": ids["<|transcribe|>"], "translate": ids["<|translate|>"]},
                  "no_timestamps_token_id": ids["<|notimestamps|>"], "suppress_tokens": [],
                  "begin_suppress_tokens": [end], "forced_decoder_ids": forced,
                  "max_length": shape["max_target_positions"]}
    return config, generation


def export_speech(trained, out):
    network, shape = load(whisper_network.Whisper(), trained / "digits-whisper.npz"), whisper_network.SHAPE
    frames = whisper_network.CHUNK_S * whisper_network.RATE // whisper_network.HOP
    export(network.model.encoder, (torch.zeros(2, whisper_network.BINS, frames),), out / "encoder_model.onnx",
           ["input_features"], ["last_hidden_state"],
           {"input_features": {0: "batch"}, "last_hidden_state": {0: "batch"}})
    export_decoders(network.model.decoder, shape, out)
    config, generation = whisper_config(shape)
    write_json(out / "config.json", config)
    write_json(out / "generation_config.json", generation)
    write_json(out / "preprocessor_config.json",
               {"feature_extractor_type": "WhisperFeatureExtractor", "feature_size": whisper_network.BINS,
                "sampling_rate": whisper_network.RATE, "chunk_length": whisper_network.CHUNK_S,
                "hop_length": whisper_network.HOP, "n_fft": whisper_network.FFT, "nb_max_frames": frames,
                "n_samples": whisper_network.CHUNK_S * whisper_network.RATE, "padding_side": "right",
                "padding_value": 0.0, "return_attention_mask": False})
    described = digit_tokens.tokenizer_json()
    write_json(out / "tokenizer.json", described)
    write_json(out / "vocab.json", described["model"]["vocab"])
    write_json(out / "added_tokens.json", {token["content"]: token["id"] for token in described["added_tokens"]})
    merges = "".join(f"{left} {right}\n" for left, right in digit_tokens.merges_of_words())
    (out / "merges.txt").write_text("#version: 0.2\n" + merges, encoding="utf-8")
    write_json(out / "tokenizer_config.json", {"tokenizer_class": "WhisperTokenizer", "errors": "replace",
                                               **{key: "<|endoftext|>" for key in
                                                  ("bos_token", "eos_token", "unk_token", "pad_token")}})


# ---- text ----

def as_onnx_gates(weight):
    """PyTorch's order of gates is input, forget, cell, output; that of ONNX input, output, forget, cell."""
    i, f, c, o = np.split(weight, 4)
    return np.concatenate([i, o, f, c])


def lstm_weights(state):
    """W, R and B of both directions."""
    both = [[as_onnx_gates(state[f"lstm.{kind}_l0{suffix}"]) for suffix in ("", "_reverse")]
            for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    return np.stack(both[0]), np.stack(both[1]), np.concatenate([np.stack(both[2]), np.stack(both[3])], 1)


def export_text(trained, out):
    """The graph is made by hand: the lengths of the sentences go to the LSTM, which no exporter of PyTorch does plainly."""
    with np.load(trained / "topics-lstm.npz") as arrays:
        state = dict(arrays)
    w, r, b = lstm_weights(state)
    hidden = r.shape[2]
    constants = {"embedding": state["embedding.weight"], "w": w, "r": r, "b": b, "head": state["head.weight"],
                 "bias": state["head.bias"], "words": np.array([1]), "directions": np.array([0, 0, 2 * hidden]),
                 "last": np.array([2])}
    nodes = [("Gather", ["embedding", "input_ids"], ["embedded"], {}),
             ("Transpose", ["embedded"], ["steps"], {"perm": [1, 0, 2]}),
             ("ReduceSum", ["attention_mask", "words"], ["count"], {"keepdims": 0}),
             ("Cast", ["count"], ["lengths"], {"to": TensorProto.INT32}),
             ("LSTM", ["steps", "w", "r", "b", "lengths"], ["states"],
              {"hidden_size": hidden, "direction": "bidirectional"}),
             ("Transpose", ["states"], ["by_sentence"], {"perm": [2, 0, 1, 3]}),
             ("Reshape", ["by_sentence", "directions"], ["outputs"], {}),
             ("Cast", ["attention_mask"], ["is_word"], {"to": TensorProto.FLOAT}),
             ("Unsqueeze", ["is_word", "last"], ["weights"], {}),
             ("Mul", ["outputs", "weights"], ["kept"], {}),
             ("ReduceSum", ["kept", "words"], ["sum"], {"keepdims": 0}),
             ("ReduceSum", ["is_word", "words"], ["divisor"], {"keepdims": 1}),
             ("Div", ["sum", "divisor"], ["mean"], {}),
             ("Gemm", ["mean", "head", "bias"], ["logits"], {"transB": 1})]
    ids = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
           for name in ("input_ids", "attention_mask")]
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(topics.LABELS)])
    graph = helper.make_graph([helper.make_node(kind, inputs, outputs, name=outputs[0], **attributes)
                               for kind, inputs, outputs, attributes in nodes], "topics-lstm", ids, [logits],
                              [numpy_helper.from_array(np.ascontiguousarray(value), name)
                               for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="ipw")
    model.ir_version = 8
    save(model, out / "model.onnx")
    words = (trained / "vocab.txt").read_text(encoding="utf-8")
    (out / "vocab.txt").write_text(words, encoding="utf-8")
    write_json(out / "config.json", {"architectures": ["LSTMForSequenceClassification"], "model_type": "lstm",
                                     "vocab_size": len(words.splitlines()), **labels_of(topics.LABELS)})
    write_json(out / "tokenizer_config.json", {"do_lower_case": True, "unk_token": "[UNK]", "pad_token": "[PAD]"})


def torch_text(trained):
    """The trained network, to compare with."""
    words = (trained / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return load(TopicsLSTM(len(words), len(topics.LABELS)), trained / "topics-lstm.npz"), words


# ---- diffusion ----

class Features(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, images):
        return self.encoder.features(images)


def export_diffusion(trained, out):
    folder = out / "shapes-diffusion"
    images = torch.zeros(2, 3, SHAPE_SIDE, SHAPE_SIDE)
    export(load(UNet(), trained / "shapes-diffusion.npz"), (images, torch.tensor([1, 2]), torch.tensor([3, 4])),
           folder / "unet" / "model.onnx", ["sample", "timestep", "class_labels"], ["out_sample"],
           {name: {0: "batch"} for name in ("sample", "timestep", "class_labels", "out_sample")})
    write_json(folder / "unet" / "config.json", {"_class_name": "UNet2DModel", "sample_size": SHAPE_SIDE,
                                                 "in_channels": 3, "out_channels": 3})
    write_json(folder / "scheduler" / "scheduler_config.json",
               {"_class_name": "DDIMScheduler", "num_train_timesteps": STEPS, "beta_start": BETA_FIRST,
                "beta_end": BETA_LAST, "beta_schedule": "linear", "prediction_type": "epsilon", "clip_sample": True,
                "clip_sample_range": 1.0, "set_alpha_to_one": False, "steps_offset": 0, "timestep_spacing": "leading"})
    write_json(folder / "model_index.json",
               {"_class_name": "DDIMPipeline", "scheduler": ["diffusers", "DDIMScheduler"],
                "unet": ["diffusers", "OnnxRuntimeModel"], "ipw_classes": CLASSES, "ipw_steps": 20, "ipw_guidance": 2.0})
    encoder = Features(load(ShapesEncoder(), trained / "shapes-encoder.npz"))
    export(encoder, (images,), out / "shapes-encoder.onnx", ["images"], ["features"],
           {"images": {0: "batch"}, "features": {0: "batch"}})
    return encoder.eval()
