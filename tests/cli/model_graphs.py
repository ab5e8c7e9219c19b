"""Graphs of models as read by ipw (tests/tools/graph_show), and models defined by a config.json that a test writes."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import TIMEOUT_S

BUILD = Path(os.environ.get("IPW_BUILD", "build")).resolve()


def show(word, **settings):
    """The graph of a model argument, as JSON."""
    pairs = [f"{key}={value}" for key, value in settings.items()]
    done = subprocess.run([BUILD / "tests/tools/graph_show", str(word), *pairs],
                          capture_output=True, text=True, timeout=TIMEOUT_S)
    assert not done.stderr, done.stderr
    return json.loads(done.stdout)


class ConfigTest(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.addCleanup(self.kept.cleanup)
        self.folder = Path(self.kept.name)

    def write(self, config, name="model"):
        """Writes the folder of a model; a string is written unmodified."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        return folder

    def show(self, config, **settings):
        found = show(self.write(config), **settings)
        self.assertNotIn("error", found)
        return found
