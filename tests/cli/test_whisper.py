#!/usr/bin/env python3
# test: asan
"""Speech recognition (workload whisper) on a small model with random weights in all layouts that optimum exports:
tokens and transcripts equal those that transformers gave when the model was made (tests/fixtures/make-whisper), and
those of a loop written here over ONNX Runtime's Python package."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import oracle

oracle.use()
try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print(f"skipped: {error} (set IPW_PYTHON to an interpreter that has onnxruntime)")
    sys.exit(77)
import speech
from program import SANITIZED, TIMEOUT_S, ipw

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()
TOOL = BUILD / "tests/tools/workload"
MODEL = Path(__file__).resolve().parent.parent / "fixtures/whisper"
EXPECTED = json.loads((MODEL / "expected.json").read_text())
RULES = json.loads((MODEL / "generation_config.json").read_text())
SOUNDS = speech.sounds()
ENCODER, FIRST, NEXT, MERGED = (f"{name}.onnx" for name in (
    "encoder_model", "decoder_model", "decoder_with_past_model", "decoder_model_merged"))
LAYOUTS = {"split": [ENCODER, FIRST, NEXT], "merged": [ENCODER, MERGED], "first only": [ENCODER, FIRST]}
onnxruntime.set_default_logger_severity(4)


def ask(model, *paths, code=0, **settings):
    """The description and one answer for each path; with another exit code, the message."""
    words = ["client:threads=1"]
    for key, value in settings.items():
        words.append(f"client:{key}={value}" if key in ("kv_cache", "variant") else f"{key}={value}")
    done = subprocess.run([TOOL, "whisper", model, *words], input="".join(f"{path}\n" for path in paths),
                          capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == code, done.stderr
    if code:
        return done.stderr.strip()
    first, *rest = map(json.loads, done.stdout.splitlines())
    assert len(rest) == len(paths)
    return first, rest


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def wav(self, name, samples, **more):
        path = self.folder / f"{name}.wav"
        speech.write_wav(path, samples, **more)
        return path

    def model(self, layout="split", shows_ids=False):
        """A copy of the model; shows_ids: each token is written as its number, so that a transcript has all of them."""
        target = Path(tempfile.mkdtemp(dir=self.folder))
        for path in MODEL.glob("*.json"):
            shutil.copy(path, target)
        for name in LAYOUTS[layout]:
            shutil.copy(MODEL / name, target)
        if shows_ids:
            size = json.loads((MODEL / "config.json").read_text())["vocab_size"]
            vocabulary = {"model": {"vocab": {f"Ġ{i}": i for i in range(size)}}}
            (target / "tokenizer.json").write_text(json.dumps(vocabulary))
        return target

    def edit(self, model, file, /, **changes):
        """Members of a JSON file; those that are None are removed."""
        members = json.loads((model / file).read_text())
        members.update(changes)
        (model / file).write_text(json.dumps({key: value for key, value in members.items() if value is not None}))


def cases():
    """Those of the record that one process can answer, by parameters."""
    found = {}
    for case in EXPECTED:
        found.setdefault((("language", case["language"]), ("task", case["task"])), []).append(case)
    return found


def without_end(tokens):
    return [token for token in tokens if token != RULES["eos_token_id"]]


def reference(model, samples, prompt, uses_cache):
    """The tokens after the prompt."""
    def session(name):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(str(model / name), options, providers=["CPUExecutionProvider"])

    def outputs(of, inputs):
        return dict(zip([value.name for value in of.get_outputs()], of.run(None, inputs)))

    states = session(ENCODER).run(None, {"input_features": speech.log_mel(samples, 16, 2)[None]})[0]
    first, following = session(FIRST), session(NEXT)
    tokens, caches = list(prompt), None
    while len(tokens) < RULES["max_length"]:
        if caches is None or not uses_cache:
            out = outputs(first, {"input_ids": np.array([tokens]), "encoder_hidden_states": states})
            caches = out
        else:
            inputs = {"past_key_values." + name.removeprefix("present."): value for name, value in caches.items()
                      if name != "logits"}
            out = outputs(following, {"input_ids": np.array([tokens[-1:]]), **inputs})
            caches = {**caches, **out}
        logits = out["logits"][0, -1].copy()
        logits[RULES["suppress_tokens"]] = -np.inf
        if len(tokens) == len(prompt):
            logits[RULES["begin_suppress_tokens"]] = -np.inf
        tokens.append(int(np.argmax(logits)))
        if tokens[-1] == RULES["eos_token_id"]:
            break
    return tokens[len(prompt):]


class Transcripts(Case):
    def check(self, model, **settings):
        paths = {name: self.wav(name, samples) for name, samples in SOUNDS.items()}
        for words, expected in cases().items():
            _, answers = ask(model, *(paths[case["sound"]] for case in expected), **dict(words), **settings)
            for case, answer in zip(expected, answers):
                self.assertEqual(answer["content"], case["text"], case)
                self.assertEqual(answer["output_tokens"], len(case["tokens"]))
                self.assertAlmostEqual(answer["audio_s"], len(SOUNDS[case["sound"]]) / speech.RATE, places=6)

    def test_equal_those_of_transformers_with_a_cache_in_two_files(self):
        self.check(self.model("split"))

    def test_equal_those_of_transformers_with_a_merged_decoder(self):
        self.check(self.model("merged"))

    def test_are_the_same_without_a_cache(self):
        for layout in LAYOUTS:
            self.check(self.model(layout), kv_cache="no")

    def test_are_read_with_vocab_json_and_added_tokens_json(self):
        model = self.model()
        (model / "tokenizer.json").unlink()
        self.check(model)

    def test_are_found_in_the_subfolder_and_with_the_suffix_of_a_variant(self):
        model = self.model()
        (model / "onnx").mkdir()
        for path in model.glob("*.onnx"):
            path.rename(model / "onnx" / f"{path.stem}_quantized.onnx")
        self.check(model, variant="quantized")
        self.assertIn("encoder_model.onnx", ask(model, code=1))

    def test_repair_bytes_that_are_no_text(self):
        model, path = self.model(), self.wav("low", SOUNDS["low"])
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        pieces = tokenizer["model"]["vocab"]
        for piece, bytes_of_it in (("x", "Ġ\u00c3"), ("ĠgrÃ¼n", "Ġdone")):  # a character without its second byte
            pieces[bytes_of_it] = pieces.pop(piece)
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        _, (answer,) = ask(model, path)
        self.assertEqual(answer["content"], "\ufffd done done done")


class Profiles(Case):
    def test_have_the_error_rate_and_the_real_time_factor(self):
        """The whole way: a folder of sound, transcripts beside the files, and a file that is damaged."""
        sounds = self.folder / "sounds"
        sounds.mkdir()
        expected = [case for case in EXPECTED if case["language"] == "en"]
        for case in expected:
            speech.write_wav(sounds / f"{case['sound']}.wav", SOUNDS[case["sound"]])
            (sounds / f"{case['sound']}.txt").write_text(case["text"] + "\n")
        (sounds / "damaged.wav").write_bytes(b"RIFF")
        done = ipw(None, "profile", "--workload", "whisper", "--model", MODEL, "--dataset", "audio", "--dataset-param",
                   f"path={sounds}", "--client-param", "threads=1", "--param", "max_tokens=10", "--max-failed", 1,
                   "--idle", 0, "--warmup-queries", 0, "--output-dir", self.folder, "--name", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads((self.folder / "run/summary.json").read_text())["ipw"]
        self.assertIn("damaged.wav: not a WAV file", summary["failure_reason"])
        self.assertEqual([summary[key] for key in ("completed", "failed")], [4, 1])
        # Two transcripts are longer than the limit, and one of these has no text after it.
        lengths = [len(case["tokens"]) for case in expected]
        self.assertEqual(summary["cut"], sum(length > 10 for length in lengths))
        self.assertEqual(summary["output_tokens"], sum(min(length, 10) for length in lengths))
        self.assertEqual(summary["correct"], 3)
        audio_s = sum(len(samples) for samples in SOUNDS.values()) / speech.RATE
        self.assertAlmostEqual(summary["audio_s"], audio_s, places=6)
        latency = summary["statistics"]["latency_s"]
        self.assertAlmostEqual(summary["real_time_factor"], latency["avg"] * latency["count"] / audio_s, places=6)
        self.assertGreater(summary["joules_per_audio_s"], 0)


class Tokens(Case):
    """Each token, including those that have no text."""

    def all_tokens(self, model, *paths, **settings):
        _, answers = ask(model, *paths, **settings)
        return [[int(word) for word in answer["content"].split()] for answer in answers]

    def tokens(self, model, path, **settings):
        return self.all_tokens(model, path, **settings)[0]

    def test_equal_those_of_transformers(self):
        model = self.model(shows_ids=True)
        for words, expected in cases().items():
            paths = [self.wav(case["sound"], SOUNDS[case["sound"]]) for case in expected]
            self.assertEqual(self.all_tokens(model, *paths, **dict(words)),
                             [without_end(case["tokens"]) for case in expected])

    def test_equal_those_of_onnx_runtime_with_and_without_a_cache(self):
        random = np.random.default_rng(7)
        languages, tasks = RULES["lang_to_id"], RULES["task_to_id"]
        prompt = [RULES["decoder_start_token_id"], languages["<|fr|>"], tasks["transcribe"],
                  RULES["no_timestamps_token_id"]]
        paths, expected = [], []
        for i in range(2 if SANITIZED else 6):
            samples = speech.tones(random.uniform(100, 4000, 5), random.uniform(0.5, 2))
            samples = speech.as_16_bit(samples) / 32768
            paths.append(self.wav(str(i), samples))
            tokens = reference(MODEL, samples, prompt, True)
            self.assertEqual(reference(MODEL, samples, prompt, False), tokens)
            expected.append(without_end(tokens))
        self.assertGreater(len(set(map(tuple, expected))), 1)
        for layout in ("split", "merged"):
            model = self.model(layout, shows_ids=True)
            for uses_cache in ("yes", "no"):
                self.assertEqual(self.all_tokens(model, *paths, language="fr", kv_cache=uses_cache), expected)

    def test_start_with_what_the_files_force_else_with_english(self):
        path = self.wav("sound", SOUNDS["low"])
        german, english = (self.tokens(self.model(shows_ids=True), path, language=word) for word in ("de", "en"))
        self.assertNotEqual(german, english)
        model = self.model(shows_ids=True)
        self.assertEqual(self.tokens(model, path), english)
        languages, tasks = RULES["lang_to_id"], RULES["task_to_id"]
        self.edit(model, "generation_config.json",
                  forced_decoder_ids=[[1, languages["<|de|>"]], [2, tasks["transcribe"]]])
        self.assertEqual(self.tokens(model, path), german)
        self.edit(model, "generation_config.json", forced_decoder_ids=None)
        self.edit(model, "config.json", forced_decoder_ids=None)
        self.assertEqual(self.tokens(model, path), english)

    def test_end_at_any_of_several_ends_and_at_a_limit(self):
        model, path = self.model(shows_ids=True), self.wav("sound", SOUNDS["low"])
        whole = self.tokens(model, path)
        self.assertEqual(self.tokens(model, path, max_tokens=2), whole[:2])
        self.edit(model, "generation_config.json", eos_token_id=[RULES["eos_token_id"], whole[1]])
        self.assertEqual(self.tokens(model, path), whole[:whole.index(whole[1])])
        self.edit(model, "generation_config.json", max_length=7)
        self.assertEqual(len(self.tokens(model, path, kv_cache="no")), min(3, whole.index(whole[1])))

    def test_are_the_same_with_an_encoder_that_takes_float16(self):
        model, paths = self.model(), [self.wav(name, samples) for name, samples in SOUNDS.items()]
        _, expected = ask(model, *paths)
        encoder = onnx.load(model / ENCODER)
        graph = encoder.graph
        for node in graph.node:
            node.input[:] = ["as_float" if name == "input_features" else name for name in node.input]
        graph.node.insert(0, helper.make_node("Cast", ["input_features"], ["as_float"], to=TensorProto.FLOAT))
        graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
        onnx.save(encoder, model / ENCODER)
        description, answers = ask(model, *paths)
        self.assertEqual(description["encoder"]["inputs"][0]["type"], "float16")
        self.assertEqual(answers, expected)

    def test_need_the_positions_that_newer_exports_ask_for(self):
        """A decoder whose logits are infinite unless cache_position continues the cache."""
        model, path = self.model(shows_ids=True), self.wav("sound", SOUNDS["calls"])
        expected = self.tokens(model, path)
        decoder = onnx.load(model / NEXT)
        graph = decoder.graph
        graph.input.append(helper.make_tensor_value_info("cache_position", TensorProto.INT64, ["length"]))
        for node in graph.node:
            node.output[:] = ["plain_logits" if name == "logits" else name for name in node.output]
        graph.initializer.append(numpy_helper.from_array(np.array(2, np.int64), "axis"))
        one = numpy_helper.from_array(np.array(1, np.float32), "one")
        graph.initializer.append(one)
        graph.node.extend([
            helper.make_node("Shape", ["past_key_values.0.decoder.key"], ["past_shape"]),
            helper.make_node("Gather", ["past_shape", "axis"], ["past_length"]),
            helper.make_node("Sub", ["cache_position", "past_length"], ["difference"]),
            helper.make_node("Abs", ["difference"], ["distance"]),
            helper.make_node("Cast", ["distance"], ["distance_float"], to=TensorProto.FLOAT),
            helper.make_node("Sub", ["one", "distance_float"], ["divisor"]),
            helper.make_node("Div", ["plain_logits", "divisor"], ["logits"])])
        onnx.save(decoder, model / NEXT)
        self.assertEqual(self.tokens(model, path), expected)


class Sound(Case):
    def test_longer_than_a_chunk_is_transcribed_chunk_by_chunk(self):
        model = self.model()
        chunk = 2 * speech.RATE
        parts = [np.pad(SOUNDS[name], (0, chunk - len(SOUNDS[name]))) for name in ("low", "calls", "rise")]
        parts.append(SOUNDS["low"])
        paths = [self.wav(str(i), part) for i, part in enumerate(parts)]
        _, single = ask(model, *paths)
        _, (joined,) = ask(model, self.wav("joined", np.concatenate(parts)))
        self.assertEqual(joined["content"], " ".join(answer["content"] for answer in single))
        self.assertEqual(joined["output_tokens"], sum(answer["output_tokens"] for answer in single))
        self.assertAlmostEqual(joined["audio_s"], 6 + len(parts[3]) / speech.RATE, places=6)

    def test_slightly_longer_than_a_chunk_is_one(self):
        model = self.model()
        whole = np.pad(SOUNDS["rise"], (0, 2 * speech.RATE - len(SOUNDS["rise"])))
        _, (one, more) = ask(model, self.wav("one", whole), self.wav("more", np.pad(whole, (0, 100))))
        self.assertEqual(one["output_tokens"], more["output_tokens"])

    def test_of_another_rate_and_with_two_channels_is_converted(self):
        low = speech.tones([220, 180], 1.3)
        clear = next(case for case in EXPECTED if case["sound"] == "low" and case["language"] == "en")
        self.assertGreater(clear["margin"], 0.1)
        spectrum = np.fft.rfft(SOUNDS["low"])
        longer = np.fft.irfft(np.pad(spectrum, (0, len(low) + 1 - len(spectrum) + len(low) % 2)), 2 * len(low)) * 2
        _, (answer,) = ask(self.model(), self.wav("stereo", longer, rate=2 * speech.RATE, channels=2))
        self.assertEqual(answer["content"], clear["text"])
        self.assertAlmostEqual(answer["audio_s"], 1.3, places=3)

    def test_that_is_damaged_or_empty_is_named_and_the_rest_is_transcribed(self):
        good = self.wav("good", SOUNDS["low"])
        cut, empty, text = self.folder / "cut.wav", self.wav("empty", np.zeros(0)), self.folder / "text.wav"
        cut.write_bytes(good.read_bytes()[:1000])
        text.write_text("no sound at all, but a text\n")
        missing = self.folder / "missing.wav"
        _, answers = ask(self.model(), cut, good, empty, text, missing, good)
        for path, answer in zip((cut, empty, text, missing), (answers[0], *answers[2:5])):
            self.assertIn(str(path), answer["error"])
            self.assertNotIn("\n", answer["error"])
        self.assertEqual(answers[1], answers[5])
        self.assertTrue(answers[1]["content"])


class Errors(Case):
    def test_name_the_missing_files(self):
        for file, words in ((ENCODER, "encoder_model.onnx"), (FIRST, "decoder_model_merged.onnx"),
                            (NEXT, "decoder_with_past_model"), ("config.json", "config.json"),
                            ("preprocessor_config.json", "preprocessor_config.json")):
            model = self.model()
            (model / file).unlink()
            message = ask(model, code=1)
            self.assertIn(words, message)
            self.assertIn(str(model), message)
        model = self.model()
        for file in ("tokenizer.json", "vocab.json"):
            (model / file).unlink()
        self.assertIn("tokenizer.json, or vocab.json", ask(model, code=1))
        model = self.model()
        (model / "generation_config.json").unlink()
        ask(model)  # config.json has what is needed

    def test_say_that_a_file_is_no_export(self):
        self.assertIn("directory of an export", ask(MODEL / ENCODER, code=1))

    def test_name_what_a_configuration_lacks(self):
        for file, change, words in (
                ("config.json", {"model_type": "vit"}, "'vit', not whisper"),
                ("generation_config.json", {"eos_token_id": None}, None),
                ("preprocessor_config.json", {"feature_size": 80}, "feature_size is 80, but config.json has num_mel_bins 16"),
                ("preprocessor_config.json", {"hop_length": 0}, "hop_length must be"),
                ("preprocessor_config.json", {"chunk_length": -1}, "chunk_length must be"),
                ("tokenizer.json", {"model": {"vocab": {"a": -1}}}, "token 'a' has no valid id"),
                ("tokenizer.json", {"model": {}}, "model.vocab")):
            model = self.model()
            self.edit(model, file, **change)
            if words:
                self.assertIn(words, ask(model, code=1))
            else:
                ask(model)
                self.edit(model, "config.json", **change)
                self.assertIn("eos_token_id", ask(model, code=1))

    def test_name_the_known_languages_and_tasks(self):
        path = self.wav("sound", SOUNDS["low"])
        _, (answer,) = ask(self.model(), path, language="klingon")
        self.assertIn("unknown language 'klingon': this model knows de, en, fr", answer["error"])
        _, (answer,) = ask(self.model(), path, task="sing")
        self.assertIn("unknown task 'sing': this model knows transcribe, translate", answer["error"])
        model = self.model()
        self.edit(model, "generation_config.json", lang_to_id=None)
        _, (answer,) = ask(model, path, language="en")
        self.assertIn("no lang_to_id", answer["error"])

    def test_say_where_a_model_gave_no_number(self):
        path = self.wav("sound", SOUNDS["low"])
        for file, words in ((ENCODER, ENCODER), (FIRST, FIRST), (NEXT, NEXT)):
            model = self.model()
            graph = onnx.load(model / file)
            weight = max(graph.graph.initializer, key=lambda tensor: np.prod(tensor.dims))
            values = numpy_helper.to_array(weight).copy()
            values[...] = np.nan
            weight.CopyFrom(numpy_helper.from_array(values, weight.name))
            onnx.save(graph, model / file)
            _, (answer,) = ask(model, path)
            self.assertIn(str(model / words), answer["error"])
            self.assertIn("NaN", answer["error"])

    def test_name_an_input_that_is_not_known(self):
        model = self.model()
        graph = onnx.load(model / FIRST)
        graph.graph.input.append(helper.make_tensor_value_info("speaker", TensorProto.FLOAT, [1, 4]))
        onnx.save(graph, model / FIRST)
        self.assertIn("input speaker (float)", ask(model, code=1))


class Description(Case):
    def test_has_the_models_and_the_cache(self):
        described, _ = ask(self.model())
        self.assertEqual([described["kv_cache"], described["chunk_s"]], [True, 2])
        self.assertIn("decoder_with_past", described)
        described, _ = ask(self.model("merged"), kv_cache="no")
        self.assertFalse(described["kv_cache"])
        self.assertNotIn("decoder_with_past", described)


if __name__ == "__main__":
    unittest.main()
