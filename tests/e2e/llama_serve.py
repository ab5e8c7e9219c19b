"""Runs llama.cpp's HTTP server on a free loopback port:  MODEL JSON-OPTIONS

Runs in the environment that tools/setup brings; servers.py starts it.  The package has the server
of llama.cpp as a library, so this takes the place of its llama-server program."""

import json
import os
import signal
import sys

import xllamacpp


def main():
    path, options = sys.argv[1], json.loads(sys.argv[2])
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {options["alias"]}
    params.n_parallel = options["parallel"]
    params.n_ctx = options["parallel"] * options["context"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    if options["pooling"]:
        params.embedding = True
        params.pooling_type = xllamacpp.llama_pooling_type[f"LLAMA_POOLING_TYPE_{options['pooling']}"]
    params.endpoint_metrics = params.endpoint_slots = True
    server = xllamacpp.Server(params)
    # A line of its own, in one write: the server's threads log into the same file.
    os.write(1, f"\naddress {server.listening_address}\n".encode())
    signal.pause()


if __name__ == "__main__":
    main()
