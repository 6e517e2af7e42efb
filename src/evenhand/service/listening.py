"""Where a server listens, which proxies it believes, and how many connections it takes: the same lines in both servers' files."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field

from evenhand.guarantee import UsageError
from evenhand.service.connections import Limits
from evenhand.service.toml_lines import Section

NAMES = ("host", "port", "proxies", "connections", "connections_by_address")
_LOCAL = ("localhost", "")


@dataclass(frozen=True)
class Listening:
    """Where a server listens.

    Args:
        host: an address of this machine.
        port: 0 for a free one.
        proxies: addresses and networks of proxies: what they say of their clients is believed.
        limits: of connections.
    """

    host: str = "127.0.0.1"
    port: int = 0
    proxies: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


def listening(file: Section, port: int) -> Listening:
    """What a file says of it.

    Args:
        file: the top of the file.
        port: where it says nothing.
    """
    proxies = []
    for one in file.get("proxies", list, "a list of addresses such as ['10.0.0.5', '10.1.0.0/16']", []):
        try:
            proxies.append(str(ipaddress.ip_network(str(one), strict=False)))
        except ValueError:
            raise file.error(
                "proxies", f"proxies has {one!r}: expected addresses or networks, such as '10.0.0.5'."
            ) from None
    usual = Limits()
    limits = Limits(
        file.whole("connections", usual.connections, 10, 100_000),
        file.whole("connections_by_address", usual.by_address, 1, 100_000),
    )
    host = file.get("host", str, "an address to listen on", Listening.host)
    return Listening(host, file.whole("port", port, 0, 65_535), tuple(proxies), limits)


def refuse_plain(host: str, proxies: Sequence[str]) -> None:
    """Refuse to listen where tokens would travel unencrypted."""
    if proxies or host in _LOCAL:
        return
    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local:
        raise UsageError(
            f"host = {host!r}: other machines would send tokens unencrypted. Put a proxy with TLS in front of the server and name its "
            "address in the file, such as proxies = ['10.0.0.5']; or listen on 127.0.0.1 with the proxy on this machine."
        )
