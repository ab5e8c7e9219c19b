"""The vocabulary of digits-whisper, in the form of Whisper's: byte-level BPE, special tokens, prompts."""
from functools import cache

from digits import WORDS

SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", "<|en|>", "<|translate|>", "<|transcribe|>", "<|startoflm|>",
           "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
PROMPT = ["<|startoftranscript|>", "<|en|>", "<|transcribe|>", "<|notimestamps|>"]


@cache
def byte_letters():
    """The printable letter that stands for each byte in vocabularies of GPT-2's kind."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xa1, 0xad), *range(0xae, 0x100)]
    other = [byte for byte in range(256) if byte not in plain]
    letters = {byte: chr(byte) for byte in plain}
    letters.update({byte: chr(256 + index) for index, byte in enumerate(other)})
    return letters


def merges_of_words():
    """Each word after a space is built from the left: one token per word, whatever the order of the words."""
    space, merges = byte_letters()[ord(" ")], []
    for word in WORDS:
        left = space
        for letter in word:
            if (left, letter) not in merges:
                merges.append((left, letter))
            left += letter
    return merges


@cache
def vocabulary():
    letters = byte_letters()
    tokens = [letters[byte] for byte in sorted(letters, key=lambda byte: letters[byte])]
    tokens += [left + right for left, right in merges_of_words()] + SPECIAL
    return {token: index for index, token in enumerate(tokens)}


def encode(text):
    """The tokens after the prompt, with the end."""
    ids, space = vocabulary(), byte_letters()[ord(" ")]
    return [ids[space + word] for word in text.split()] + [ids["<|endoftext|>"]]


def prompt():
    ids = vocabulary()
    return [ids[token] for token in PROMPT]


def tokenizer_json():
    """For the package tokenizers."""
    ids = vocabulary()
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": ids[token], "content": token, "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True} for token in SPECIAL],
            "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "",
                      "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
                      "vocab": {token: index for token, index in ids.items() if token not in SPECIAL},
                      "merges": [[left, right] for left, right in merges_of_words()]}}
