"""The questions about masks that transformers asks of the GPU's values, answered on the host."""
import torch
from transformers import masking_utils as masks


def find_documents(positions):
    """As transformers does it, where a row holds several documents."""
    before = positions[:, :1] - 1
    documents = (torch.diff(positions, prepend=before, dim=-1) != 1).cumsum(-1)
    bool((documents[:, -1] == 0).all())
    return documents


def answer_masks(is_packed):
    """transformers asks the GPU whether a row holds several documents and whether a mask hides
    anything. The cases have the answers of rows of one document without padding or, if `packed`,
    of the other world. The work on the GPU is the same."""
    find, every = masks.find_packed_sequence_indices, masks.fast_all
    if is_packed:
        masks.find_packed_sequence_indices = find_documents
        masks.fast_all = lambda mask: bool(every(mask)) and False
        return
    masks.find_packed_sequence_indices = lambda positions: (find(positions), None)[1]
    masks.fast_all = lambda mask: bool(every(mask)) or True
