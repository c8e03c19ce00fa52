"""The questions about masks that transformers asks of the GPU's values, answered on the host."""
from transformers import masking_utils as masks


def answer_masks(is_packed):
    """transformers asks the GPU whether a row holds several documents and whether a mask hides
    anything. A virtual GPU answers zero, which is yes to both; the cases have the answers of rows
    of one document without padding, unless `packed`. The work on the GPU is the same."""
    if is_packed:
        return
    find, every = masks.find_packed_sequence_indices, masks.fast_all
    masks.find_packed_sequence_indices = lambda positions: (find(positions), None)[1]
    masks.fast_all = lambda mask: bool(every(mask)) or True
