#!/usr/bin/env python3
"""Sums of bags of 32 by PyTorch and by this library, in turns within one run.

    pip install torch numpy
    python benches/pytorch_bag.py [TURNS]

For each scheme and 65,536 and 2,097,152 random ids of 1,000,000 x 128 it prints medians and the best, in milliseconds and in
millions of rows a second. Both sides have as many threads as the machine has cores, tables of random values, ids that move on
from call to call, and outputs that are warm: PyTorch allocates its own, so malloc is told to keep what was freed. The library's
side is `cargo bench --bench bag -- --serve`.
"""

import os
import subprocess
import sys
import time

MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "8589934592",
    "MALLOC_TOP_PAD_": "268435456",
}
ROWS, DIM, BAG = 1_000_000, 128, 32
BATCHES = [1 << 16, 1 << 21]
SCHEMES = ["f32", "f16", "int8:affine", "int4:affine"]


def ours():
    """A server of calls: answers `SCHEME IDS` with milliseconds."""
    command = ["cargo", "bench", "--quiet", "--bench", "bag", "--", "--serve", *SCHEMES]
    environment = {name: value for name, value in os.environ.items() if name not in MALLOC}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    server = subprocess.Popen(command, cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))), env=environment, **pipes)
    line = "starting"
    while line.strip() != "ready":
        line = server.stdout.readline()
        if not line:
            sys.exit("the bench does not start; `cargo bench --bench bag` says why")

    def call(scheme, batch):
        server.stdin.write(f"{scheme} {batch}\n")
        return float(server.stdout.readline())

    return call


def theirs(torch):
    """The same by PyTorch: for each scheme its operator on a table of random values."""
    values = torch.rand(ROWS, DIM) * 2 - 1
    halves = values.half()
    quantized = torch.ops.quantized
    bytes8 = quantized.embedding_bag_byte_prepack(values)
    bytes4 = quantized.embedding_bag_4bit_prepack(values)
    bag = torch.nn.functional.embedding_bag
    by = {
        "f32": lambda ids, offsets: bag(ids, values, offsets, mode="sum"),
        "f16": lambda ids, offsets: bag(ids, halves, offsets, mode="sum"),
        "int8:affine": lambda ids, offsets: quantized.embedding_bag_byte_rowwise_offsets(bytes8, ids, offsets),
        "int4:affine": lambda ids, offsets: quantized.embedding_bag_4bit_rowwise_offsets(bytes4, ids, offsets),
    }
    ids = torch.randint(0, ROWS, (BATCHES[-1],), dtype=torch.int32)
    offsets = torch.arange(0, BATCHES[-1], BAG, dtype=torch.int32)
    at = 0

    def call(scheme, batch):
        nonlocal at
        if at + batch > len(ids):
            at = 0
        mine = ids[at : at + batch]
        at += batch
        start = time.perf_counter()
        with torch.no_grad():
            by[scheme](mine, offsets[: batch // BAG])
        return (time.perf_counter() - start) * 1e3

    return call


def main():
    if any(os.environ.get(name) != value for name, value in MALLOC.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **MALLOC})
    import torch

    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 31
    torch.set_num_threads(os.cpu_count())
    sides = {"gatherum": ours(), f"PyTorch {torch.__version__}": theirs(torch)}
    print(f"{ROWS} x {DIM}, bags of {BAG}, {turns} turns, {os.cpu_count()} threads")
    for batch in BATCHES:
        times = {}
        for turn in range(turns + 1):
            for scheme in SCHEMES:
                for side, call in sides.items():
                    # PyTorch's threads wait for more work by spinning for a while, on the cores that the other side needs.
                    time.sleep(0.02)
                    milliseconds = call(scheme, batch)
                    if turn > 0:
                        times.setdefault((scheme, side), []).append(milliseconds)
        for (scheme, side), some in times.items():
            some.sort()
            median, best = some[len(some) // 2], some[0]
            speed = [batch / milliseconds / 1e3 for milliseconds in (median, best)]
            print(
                f"{scheme:12} {batch:8} ids {side:24} {median:8.3f} ms {speed[0]:6.1f} M rows/s,"
                f" best {best:8.3f} ms {speed[1]:6.1f} M rows/s"
            )


if __name__ == "__main__":
    main()
