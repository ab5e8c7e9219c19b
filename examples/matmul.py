"""A steady GPU load: bf16 matrix products for a number of seconds, with the attained rate.

    ipw run -- python3 examples/matmul.py --seconds 5
"""
import argparse
import json
import time

import torch

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--size", type=int, default=8192)
options = parser.parse_args()

left = torch.randn(options.size, options.size, device="cuda", dtype=torch.bfloat16)
right = torch.randn(options.size, options.size, device="cuda", dtype=torch.bfloat16)
for _ in range(3):
    left @ right
torch.cuda.synchronize()

products, begun = 0, time.monotonic()
while time.monotonic() - begun < options.seconds:
    for _ in range(20):
        left @ right
    torch.cuda.synchronize()
    products += 20
elapsed = time.monotonic() - begun
print(json.dumps({"products": products, "seconds": elapsed, "products_per_s": products / elapsed,
                  "tflops": 2 * options.size**3 * products / elapsed / 1e12}))
