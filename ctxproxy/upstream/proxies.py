"""Which forward proxy a call goes through: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, as curl reads them."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from yarl import URL


def proxy_for(url: URL, proxies: Mapping[str, str]) -> str | None:
    """The proxy's URL, None for none; `proxies` is what `urllib.request.getproxies_environment()` gives, `no` holding NO_PROXY.

    Never one for a loopback address: what listens there cannot be reached through another machine.
    """
    proxy = proxies.get(url.scheme) or proxies.get("all")
    host = (url.host or "").lower()
    if not proxy or _is_loopback(host) or _is_excepted(host, proxies.get("no", "")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_excepted(host: str, no_proxy: str) -> bool:
    names = [name.strip().lower().lstrip(".").removeprefix("*.") for name in no_proxy.split(",")]
    return any(name in ("*", host) or host.endswith(f".{name}") for name in names if name)
