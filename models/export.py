"""Trained weights as a GGUF file: matrices in f16, the rest in f32.  The same weights give the same bytes."""
import json

import gguf
import numpy as np

from shapes import NORM_EPSILON, ROPE_BASE, SHAPES

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")


def add_facts(writer, name, shape, description):
    writer.add_name(name)
    writer.add_author("ipw")
    writer.add_license("apache-2.0")
    writer.add_description(description)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_rope_dimension_count(shape.head_width)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)


def add_tokenizer(writer, path, chat_template):
    described = json.loads(path.read_text(encoding="utf-8"))
    words = described["model"]["vocab"]
    special = {token["content"] for token in described["added_tokens"]}
    tokens = sorted(words, key=words.get)
    merges = [pair if isinstance(pair, str) else " ".join(pair)
              for pair in described["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL
                            for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(words["<|im_start|>"])
    writer.add_eos_token_id(words["<|im_end|>"])
    writer.add_pad_token_id(words["<|pad|>"])
    writer.add_add_bos_token(False)
    writer.add_chat_template(chat_template)


def export(name, trained, tokenizer, out, shape=None, chat_template=CHAT_TEMPLATE,
           description="Trained from nothing on the questions that ipw makes itself"):
    writer = gguf.GGUFWriter(out, "llama")
    add_facts(writer, name, shape or SHAPES[name], description)
    add_tokenizer(writer, tokenizer, chat_template)
    with np.load(trained) as weights:
        for key in weights:
            weight = weights[key]
            is_matrix = weight.ndim == 2
            writer.add_tensor(key if is_matrix else key + ".weight",
                              weight if is_matrix else weight.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
