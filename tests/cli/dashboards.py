"""An `ipw serve` for tests, and its responses."""

import http.client
import json
import os
import re
import signal
import subprocess

from program import IPW, TIMEOUT_S


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)


class Dashboard:
    def __init__(self, *options, machine=None, scratch=None, listen="127.0.0.1:0", env=None, program=IPW, **more):
        environment = {**(machine.environment() if machine else os.environ), **(env or {})}
        self.process = subprocess.Popen([program, "serve", "--listen", listen, *map(str, options)], text=True, **more,
                                        env={**environment, **({"TMPDIR": str(scratch)} if scratch else {})},
                                        stderr=subprocess.PIPE)
        self.startup_message = self.process.stderr.readline()
        found = re.search(r"listening on http(s?)://\S+:(\d+)/", self.startup_message)
        if not found:
            self.process.kill()
            raise AssertionError(self.startup_message + self.process.stderr.read())
        self.port, self.is_tls = int(found[2]), bool(found[1])
        self.url = f"http{found[1]}://127.0.0.1:{self.port}"

    def connect(self, source="127.0.0.1"):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S, source_address=(source, 0))

    def ask(self, path, method="GET", body=None, **headers):
        """Sends one request with the path unmodified."""
        connection = self.connect()
        try:
            connection.request(method, path, body, {key.replace("_", "-"): value for key, value in headers.items()})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        """The JSON of a response, which must have status 200."""
        answer = self.ask("/api/v1/" + path, **headers)
        assert answer.status == 200, (path, answer.status, answer.body)
        return answer.json

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
