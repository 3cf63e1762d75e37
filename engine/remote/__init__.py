"""The engine in a process of its own, with several gateways before it.

Sockets, sessions and the engine in one interpreter share its lock: on a fast device that lock, not
the device, limits the rate (docs/benchmarks.md). Here the engine keeps an interpreter to itself and
every gateway process has another. They speak over a Unix socket on one machine, whose monotonic
clock they share, so times pass as they are.
"""
