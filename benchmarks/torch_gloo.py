# SPDX-License-Identifier: Apache-2.0
"""torch's own Gloo broadcast of the benchmark's tensors: one rank of a group of two, driven by lines on stdin.

Usage: torch_gloo.py RANK PORT SIZES.json    each line on stdin runs every variant once; rank 0 prints seconds
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist


def main() -> None:
    rank, port, sizes = int(sys.argv[1]), sys.argv[2], json.load(open(sys.argv[3]))
    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", port
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", rank=rank, world_size=2)
    tensors = [torch.full((size,), rank, dtype=torch.uint8) for size in sizes]
    flat = torch.zeros(sum(sizes), dtype=torch.uint8)

    def one_by_one() -> None:
        for tensor in tensors:
            dist.broadcast(tensor, 0)

    def flattened() -> None:
        # What the glue does for a bucket: concatenate, one broadcast, copy out.
        at = 0
        if rank == 0:
            torch.cat(tensors, out=flat)
        dist.broadcast(flat, 0)
        if rank != 0:
            for tensor in tensors:
                tensor.copy_(flat[at : at + tensor.numel()])
                at += tensor.numel()

    print("ready", flush=True)
    for _ in sys.stdin:
        result = {}
        for name, run in (("torch gloo, a tensor at a time", one_by_one), ("torch gloo, flattened", flattened)):
            dist.barrier()
            begin = time.perf_counter()
            run()
            dist.barrier()
            result[name] = time.perf_counter() - begin
        print(json.dumps(result), flush=True)
    assert rank == 0 or all(bool((tensor == 0).all()) for tensor in tensors)


if __name__ == "__main__":
    main()
