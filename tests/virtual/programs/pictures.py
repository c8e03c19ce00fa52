"""Rows of text with images among it, as a Qwen-VL processor and a collator make them of a chat."""
import torch

LEAD, GAP = 4, 2  # tokens in front of the first image, and between two


def row(case, config):
    vision = config.vision_config
    grid = [1, case['image_height'] // vision.patch_size, case['image_width'] // vision.patch_size]
    patches = grid[1] * grid[2]
    tokens = patches // vision.spatial_merge_size ** 2
    ids = torch.zeros(case['seq'], dtype=torch.long)
    for image in range(case['images']):
        start = LEAD + image * (tokens + GAP)
        ids[start:start + tokens] = config.image_token_id
    numbers = vision.in_channels * vision.temporal_patch_size * vision.patch_size ** 2
    return {'input_ids': ids, 'attention_mask': torch.ones_like(ids),
            'mm_token_type_ids': (ids == config.image_token_id).long(),
            'pixel_values': torch.zeros(case['images'] * patches, numbers),
            'image_grid_thw': torch.tensor([grid] * case['images'])}


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count, case, config):
        self.count, self.row = count, row(case, config)

    def __len__(self):
        return self.count

    def __getitem__(self, _):
        return self.row


def collate(rows):
    """Images of all rows stand behind one another."""
    join = {'pixel_values': torch.cat, 'image_grid_thw': torch.cat}
    batch = {name: join.get(name, torch.stack)([one[name] for one in rows]) for name in rows[0]}
    return {**batch, 'labels': batch['input_ids'].clone()}


def collate_padded(rows):
    """The last row is one token short."""
    batch = collate(rows)
    batch['attention_mask'][-1, -1] = 0
    batch['labels'][-1, -1] = -100
    return batch


def rows_with_images(case, config, size):
    return (collate_padded if case.get('padded') else collate)([row(case, config) for _ in range(size)])
