"""A llama.cpp HTTP server with one slot and one thread; run with the Python that has xllamacpp. Arguments: model file, port, window in tokens.

One thread, because llama.cpp's threads wait for each other in busy loops and crawl as soon as anything else runs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

import xllamacpp

MODEL, PORT, WINDOW = sys.argv[1:]
parameters = xllamacpp.CommonParams()
parameters.model.path = MODEL
parameters.model_alias = {"small"}
parameters.n_ctx = int(WINDOW)
parameters.n_parallel = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(PORT)
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(parameters)
stop = threading.Event()
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: stop.set())
stop.wait()
os._exit(0)  # the library's own threads do not end
