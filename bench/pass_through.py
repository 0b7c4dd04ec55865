"""The least that a proxy on aiohttp can do: what comes goes on, and nothing is read. `bench.streams` compares with it.

python -m bench.pass_through --config FILE      # JSON with upstream.base_url; tells on stderr where it listens
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

KEPT = ("content-type", "authorization", "accept")
BACKLOG = 4096


async def serve(upstream: str) -> None:
    """Until SIGTERM."""
    async with ClientSession(connector=TCPConnector(limit=0), timeout=ClientTimeout(total=None), auto_decompress=False) as client:

        async def relay(request: web.Request) -> web.StreamResponse:
            headers = {name: value for name, value in request.headers.items() if name.lower() in KEPT}
            url = upstream + request.path.removeprefix("/v1")
            async with client.request(request.method, url, data=await request.read(), headers=headers) as response:
                answer = web.StreamResponse(status=response.status, headers={"Content-Type": response.headers["Content-Type"]})
                await answer.prepare(request)
                async for chunk in response.content.iter_any():
                    await answer.write(chunk)
                await answer.write_eof()
                return answer

        app = web.Application(client_max_size=1 << 28)
        app.router.add_route("*", "/{path:.*}", relay)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=BACKLOG).start()
        print(f"listens on http://127.0.0.1:{runner.addresses[0][1]},", file=sys.stderr, flush=True)
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await stop.wait()
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(json.loads(Path(sys.argv[sys.argv.index("--config") + 1]).read_text(encoding="utf-8"))["upstream"]["base_url"]))
