"""Dump two training steps, forward and backward: `python examples/training_step.py [DUMP]`."""

import sys

import torch
from torch import nn

import fxtap

config = fxtap.CompilerConfig()
config.debug.data_dump.type = "npy"
config.debug.data_dump.path = sys.argv[1] if len(sys.argv) > 1 else "training-dump"

torch.manual_seed(0)
model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 6 * 6, 3))
compiled = torch.compile(model, backend=fxtap.get_npu_backend(compiler_config=config))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images, labels = torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,))
for step in range(2):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(compiled(images), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.6f}")
print(f"graph_1 is the forward pass, graph_2 the backward pass; the dump is in {config.debug.data_dump.path}")
