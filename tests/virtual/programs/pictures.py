"""Rows of text with images among it, as a model's processor and a collator make them of a chat."""
import torch

LEAD, GAP = 4, 2  # tokens in front of the first image, and between two


def tokens_with_images(case, config, tokens):
    """Of which each image has `tokens`"""
    ids = torch.zeros(case['seq'], dtype=torch.long)
    for image in range(case['images']):
        start = LEAD + image * (tokens + GAP)
        ids[start:start + tokens] = config.image_token_id
    return ids, (ids == config.image_token_id).long()


def qwen_row(case, config):
    vision = config.vision_config
    grid = [1, case['image_height'] // vision.patch_size, case['image_width'] // vision.patch_size]
    patches = grid[1] * grid[2]
    ids, types = tokens_with_images(case, config, patches // vision.spatial_merge_size ** 2)
    numbers = vision.in_channels * vision.temporal_patch_size * vision.patch_size ** 2
    return {'input_ids': ids, 'attention_mask': torch.ones_like(ids), 'mm_token_type_ids': types,
            'pixel_values': torch.zeros(case['images'] * patches, numbers),
            'image_grid_thw': torch.tensor([grid] * case['images'])}


def gemma3_row(case, config):
    ids, types = tokens_with_images(case, config, config.mm_tokens_per_image)
    side = config.vision_config.image_size
    return {'input_ids': ids, 'attention_mask': torch.ones_like(ids), 'token_type_ids': types,
            'pixel_values': torch.zeros(case['images'], config.vision_config.num_channels, side, side)}


def mistral3_row(case, config):
    """A token of text behind each row of an image's, as PixtralProcessor has it, which tells no types."""
    size = [case['image_height'], case['image_width']]
    unit = config.vision_config.patch_size * config.spatial_merge_size
    rows, columns = size[0] // unit, size[1] // unit
    ids, _ = tokens_with_images(case, config, rows * (columns + 1))
    for image in range(case['images']):
        first = LEAD + image * (rows * (columns + 1) + GAP)
        ids[first + columns:first + rows * (columns + 1):columns + 1] = 0
    return {'input_ids': ids, 'attention_mask': torch.ones_like(ids),
            'pixel_values': torch.zeros(case['images'], config.vision_config.num_channels, *size),
            'image_sizes': torch.tensor([size] * case['images'])}


def llava_row(case, config):
    """LlavaProcessor tells no types."""
    vision = config.vision_config
    ids, _ = tokens_with_images(case, config, (vision.image_size // vision.patch_size) ** 2)
    return {'input_ids': ids, 'attention_mask': torch.ones_like(ids),
            'pixel_values': torch.zeros(case['images'], vision.num_channels, vision.image_size, vision.image_size)}


def internvl_row(case, config):
    """An image is one tile, or a canvas of several and one of the whole, as InternVLProcessor makes them."""
    vision = config.vision_config
    side = vision.image_size[0]
    tiles = case.get('image_height', side) // side * (case.get('image_width', side) // side)
    tiles += tiles > 1
    ids, _ = tokens_with_images(case, config, tiles * (side // vision.patch_size[0] // 2) ** 2)
    return {'input_ids': ids, 'attention_mask': torch.ones_like(ids),
            'pixel_values': torch.zeros(case['images'] * tiles, vision.num_channels, side, side)}


ROWS = {'gemma3': gemma3_row, 'mistral3': mistral3_row, 'llava': llava_row, 'internvl': internvl_row}


def row(case, config):
    return ROWS.get(config.model_type, qwen_row)(case, config)


class Pictures(torch.utils.data.Dataset):
    def __init__(self, count, case, config):
        self.count, self.row = count, row(case, config)

    def __len__(self):
        return self.count

    def __getitem__(self, _):
        return self.row


def collate(rows):
    """Images of all rows stand behind one another."""
    join = {'pixel_values': torch.cat, 'image_grid_thw': torch.cat, 'image_sizes': torch.cat}
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
