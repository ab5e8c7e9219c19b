#!/usr/bin/env python3
# test: asan
"""Text classification against ONNX Runtime in Python, with tokenizers written here after their description: words of a
vocabulary, and WordPiece as BERT uses it."""

import json
import re
import sys
import tempfile
import unicodedata
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import oracle

oracle.use()
try:
    import numpy as np
    import workload_models as models
    from onnx import TensorProto
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has it)")
    sys.exit(77)
from workloads import answers

CLASSES = ["sports", "weather", "food", "travel"]
WORDS = ["[PAD]", "[UNK]", "the", "match", "was", "won", "rain", "soup", "train", "it's", "2", "café", "!"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "match", "un", "##want", "##ed", "run", "##ning", ",", "!", "?", "$",
          "a", "##a", "cafe", "über", "uber", "東", "京", "“", "-", "##1", "1", "don", "'", "t"]
TEXTS = ["The match was won!", "  RAIN, rain\tand soup  ", "it's 2 o'clock: the train", "Café café CAFE\u0301", "the" * 60,
         "unwanted running", "unwantedx Über über, $1 1a1 aaaa", "東京 the東京", "don't “run” - a-a", "\u00a0the\u2003match ",
         "zero\u200bwidth the\x00\x07match".replace("\x00", ""), "naïve Ærø Łódź"]


def word_ids(text):
    """Words and punctuation marks."""
    return [WORDS.index(part) if part in WORDS else 1 for part in re.findall(r"\w+|[^\w\s]", text.lower())]


def is_mark(character):
    code = ord(character)
    ascii_mark = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_mark or unicodedata.category(character).startswith("P")


def bert_words(text, lower):
    """Basic tokenization: control characters are dropped, ideographs and marks stand alone, accents are removed."""
    text = "".join(" " if unicodedata.category(c) == "Zs" or c in "\t\n\r" else c for c in text
                   if c in "\t\n\r" or unicodedata.category(c) not in ("Cc", "Cf"))
    if lower:
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if is_mark(c) or "\u4e00" <= c <= "\u9fff" else c for c in text)
    return spaced.split()


def piece_ids(text, lower=True, marks=True):
    ids = []
    for word in bert_words(text, lower):
        pieces, rest = [], word if len(word) <= 100 else ""
        while rest:
            prefix = "##" if pieces else ""
            size = next((n for n in range(len(rest), 0, -1) if prefix + rest[:n] in PIECES), 0)
            if size == 0:
                pieces = []
                break
            pieces.append(PIECES.index(prefix + rest[:size]))
            rest = rest[size:]
        ids += pieces or [1]
    return [2, *ids, 3] if marks else ids


class Text(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)

    def vocabulary(self, tokens, name="vocab.txt"):
        (self.folder / name).write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")

    def check(self, file, texts, ids_of, model=None, more=lambda ids: {}, size=None, kind=np.int64, settings=()):
        """Compares scores and token counts; size: a fixed length, to which tokens are padded."""
        _, found = answers("lstm", model or file, texts, *settings)
        for text, line in zip(texts, found, strict=True):
            with self.subTest(text=text):
                ids = ids_of(text)
                self.assertEqual(line.get("input_tokens"), len(ids), line)
                padded = np.array([ids + [0] * ((size or len(ids)) - len(ids))], kind)
                logits = models.run(file, input_ids=padded, **more(ids))[0].astype(np.float64)
                scores = np.exp(logits - logits.max())
                scores /= scores.sum()
                for entry in json.loads(line["content"]):
                    self.assertAlmostEqual(entry["score"], scores[CLASSES.index(entry["label"])], delta=1e-5)
                self.assertGreater(scores.max() - scores.min(), 0.01)

    def test_vocabulary_of_words(self):
        file = models.text_classifier(self.folder / "topics.onnx", len(WORDS), len(CLASSES))
        self.vocabulary(WORDS, "topics.vocab.txt")
        (self.folder / "topics.labels.txt").write_text("\n".join(CLASSES))
        plain = [text for text in TEXTS if text.isascii() and "\x07" not in text]
        self.check(file, [*plain, "the café"], word_ids)

    def test_fixed_length_pads_and_truncates(self):
        file = models.text_classifier(self.folder / "topics.onnx", len(WORDS), len(CLASSES), length=6,
                                      inputs=("input_ids", "attention_mask"), kind=TensorProto.INT32)
        self.vocabulary(WORDS)
        models.write_json(self.folder / "config.json", id2label=dict(enumerate(CLASSES)))

        def mask(ids):
            return {"attention_mask": np.array([[1] * len(ids) + [0] * (6 - len(ids))], np.int32)}
        self.check(file, ["the match", "rain rain rain soup soup soup train train"], lambda text: word_ids(text)[:6],
                   more=mask, size=6, kind=np.int32)
        self.check(file, ["the match was won"], lambda text: word_ids(text)[:3], more=mask, size=6, kind=np.int32,
                   settings=["length=3"])

    def test_lengths(self):
        file = models.text_classifier(self.folder / "topics.onnx", len(WORDS), len(CLASSES), length=9,
                                      inputs=("input_ids", "lengths"))
        self.vocabulary(WORDS)
        (self.folder / "labels.txt").write_text("\n".join(CLASSES))
        self.check(file, ["the match was won", "soup"], word_ids, size=9, more=lambda ids: {"lengths": np.array([len(ids)])})

    def optimum(self, tokenizer=None):
        models.write_json(self.folder / "config.json", id2label=dict(enumerate(CLASSES)), max_position_embeddings=16)
        if tokenizer:
            models.write_json(self.folder / "tokenizer.json", **tokenizer)
        else:
            self.vocabulary(PIECES)
        return models.text_classifier(self.folder / "model.onnx", len(PIECES), len(CLASSES),
                                      inputs=("input_ids", "attention_mask", "token_type_ids"))

    @staticmethod
    def inputs(ids):
        return {"attention_mask": np.ones((1, len(ids)), np.int64), "token_type_ids": np.zeros((1, len(ids)), np.int64)}

    def test_word_pieces(self):
        file = self.optimum()
        self.check(file, TEXTS, piece_ids, self.folder, self.inputs)
        self.check(file, ["the " * 40], lambda text: [2] + [4] * 14 + [3], self.folder, self.inputs)

    def test_tokenizer_json(self):
        vocabulary = {token: number for number, token in enumerate(PIECES)}
        for lower, marks in ((True, True), (False, True), (True, False)):
            file = self.optimum({"model": {"type": "WordPiece", "vocab": vocabulary, "unk_token": "[UNK]"},
                                 "normalizer": {"type": "BertNormalizer", "lowercase": lower, "strip_accents": None},
                                 "pre_tokenizer": {"type": "BertPreTokenizer"},
                                 "post_processor": {"type": "TemplateProcessing"} if marks else None})
            self.check(file, TEXTS, lambda text: piece_ids(text, lower, marks), self.folder, self.inputs)

    def test_bad_input(self):
        def refused(*words):
            found, error = answers("lstm", self.folder, [])
            self.assertIsNone(found)
            for word in words:
                self.assertIn(word, error)
        models.text_classifier(self.folder / "model.onnx", len(WORDS), len(CLASSES))
        refused("vocab.txt or tokenizer.json")
        self.vocabulary(["[PAD]", "the"])
        refused("vocab.txt", "[UNK]")
        bert = {"pre_tokenizer": {"type": "BertPreTokenizer"}}
        for tokenizer, words in (({"model": {"type": "BPE", "vocab": {}}}, ("tokenizer.json", "BPE")),
                                 ({"model": {"type": "WordLevel"}, "pre_tokenizer": {"type": "Whitespace"}}, ("Whitespace",)),
                                 ({**bert, "model": {"type": "WordPiece", "vocab": {"[UNK]": "x"}}}, ("[UNK] has no id",)),
                                 ({**bert, "model": {"type": "WordPiece"}}, ("vocabulary is empty",)),
                                 ({**bert, "model": {"type": "WordPiece"}, "normalizer": {"type": "NFKC"}}, ("NFKC",))):
            models.write_json(self.folder / "tokenizer.json", **tokenizer)
            refused(*words)
        (self.folder / "tokenizer.json").unlink()
        self.vocabulary(WORDS)
        found = answers("lstm", self.folder, ["", " \t ", "the"])[1]
        self.assertIn("a text without words", found[0]["error"])
        self.assertIn("a text without words", found[1]["error"])
        self.assertIn("content", found[2])
        (self.folder / "labels.txt").write_text("one\ntwo\n")
        [entry] = answers("lstm", self.folder, ["the"])[1]
        self.assertIn("4 classes, but 2 labels", entry["error"])
        images = models.classifier(self.folder / "image.onnx", 32, 4)
        found, error = answers("lstm", images, [])
        self.assertIn("unknown input pixel_values", error)

    def test_tokens_that_the_model_does_not_have(self):
        """A vocabulary that is longer than the embedding: the runtime's message, with the file."""
        file = models.text_classifier(self.folder / "model.onnx", 4, len(CLASSES))
        self.vocabulary(WORDS)
        [bad, good] = answers("lstm", file, ["train", "match"])[1]
        self.assertIn("model.onnx", bad["error"])
        self.assertIn("content", good)


if __name__ == "__main__":
    unittest.main()
