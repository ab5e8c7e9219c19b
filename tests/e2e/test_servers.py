#!/usr/bin/env python3
# test: real time
"""llama.cpp's server, as installed by set-up, behaves as the tests that measure it require."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
import make_gguf  # noqa: E402
import servers  # noqa: E402
from server_contract import CONCURRENT, ServerContract  # noqa: E402


class LlamaTest(ServerContract, unittest.TestCase):
    serve = staticmethod(servers.llama_server)

    def test_server_has_requested_slots(self):
        self.assertEqual(len(servers.get(f"{self.url}/slots")), CONCURRENT)

    def test_failed_start_has_reason(self):
        with tempfile.NamedTemporaryFile(suffix=".gguf") as empty:
            # The exception: what the library logs is written by a thread, which may not get to it before the exit.
            with self.assertRaisesRegex(RuntimeError, "Failed to init server"):
                with servers.llama_server(empty.name):
                    pass

    def test_model_files_are_reproducible(self):
        with tempfile.TemporaryDirectory() as folder:
            again, other = Path(folder, "again.gguf"), Path(folder, "other.gguf")
            make_gguf.make(again)
            make_gguf.make(other, seed=2)
            self.assertEqual(again.read_bytes(), self.model_path.read_bytes())
            self.assertNotEqual(other.read_bytes(), self.model_path.read_bytes())

    def test_missing_server_is_a_skip(self):
        with mock.patch.object(servers, "ENVIRONMENT", Path("/nonexistent")):
            for serve in servers.llama_server, servers.ollama_server:
                with self.assertRaisesRegex(servers.Skip, "tools/setup"):
                    with serve(self.model_path):
                        pass


if __name__ == "__main__":
    servers.main()
