#!/usr/bin/env python3
"""What PyTorch's EmbeddingBag says, for tests/conformance/bags.rs: writes tests/data/embedding_bag.json.

    python3 -m venv venv && venv/bin/pip install torch numpy
    venv/bin/python scripts/embedding-bag-reference.py

Values are multiples of 1/16 and weights of 1/4, so that sums are exact in any order. All f32 numbers are written as their bits.
"""

import json
import pathlib

import torch

ROWS, DIM = 11, 7


def bits(tensor):
    return tensor.contiguous().view(torch.int32).flatten().tolist()


def main():
    draw = torch.Generator().manual_seed(20)
    table = torch.randint(-200, 200, (ROWS, DIM), generator=draw).float() / 16
    cases = []
    for lengths in [[3], [0, 4, 0, 0, 7, 1, 0], [1] * 5, [40, 2, 33], [0, 0], []]:
        count = sum(lengths)
        ids = torch.randint(0, ROWS, (count,), generator=draw)
        weights = torch.randint(-8, 9, (count,), generator=draw).float() / 4
        ends = torch.tensor(lengths, dtype=torch.int64).cumsum(0)
        every = torch.cat([torch.zeros(1, dtype=torch.int64), ends])
        for mode in ["sum", "mean", "max"]:
            for padding in [None, 0, 4]:
                for weighted in [False, True] if mode == "sum" else [False]:
                    for with_last in [False, True]:
                        if not lengths and not with_last:
                            continue
                        offsets = every if with_last else every[:-1]
                        out = torch.nn.functional.embedding_bag(
                            ids,
                            table,
                            offsets,
                            mode=mode,
                            per_sample_weights=weights if weighted else None,
                            include_last_offset=with_last,
                            padding_idx=padding,
                        )
                        cases.append(
                            {
                                "mode": mode,
                                "ids": ids.tolist(),
                                "offsets": offsets.tolist(),
                                "include_last_offset": with_last,
                                "padding_idx": padding,
                                "per_sample_weights": bits(weights) if weighted else None,
                                "out": bits(out),
                            }
                        )
    # A case a line.
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    head = json.dumps({"torch": torch.__version__, "rows": ROWS, "dim": DIM, "table": bits(table)})
    path = pathlib.Path(__file__).parent.parent / "tests/data/embedding_bag.json"
    path.write_text(head[:-1] + ', "cases": [\n' + lines + "\n]}\n")
    print(f"{path}: {len(cases)} cases of torch {torch.__version__}")


if __name__ == "__main__":
    main()
