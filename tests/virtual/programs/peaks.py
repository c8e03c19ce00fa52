"""The last line that each of these programs prints: its peaks as PyTorch counted them, as JSON."""
import json

import torch


def report(**more):
    seen = torch.cuda.memory_stats()
    print(json.dumps({'peak_allocated': seen['allocated_bytes.all.peak'],
                      'peak_reserved': seen['reserved_bytes.all.peak'],
                      'end_allocated': seen['allocated_bytes.all.current'],
                      'retries': seen['num_alloc_retries'], **more}), flush=True)
