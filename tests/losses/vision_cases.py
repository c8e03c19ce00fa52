"""Small models of images and text, and the images among their rows."""
import torch
from small_models import ROTARY, default_rope
from streams import LIMIT, TOKEN_SEED, tokens, weights

BY_IDS = ("mistral3", "llava", "internvl")  # which have no types of tokens: their last token stands for images alone


def with_images(case, config, ids):
    """Images' tokens stand where plimsoll has them (workloads/spec/spec_vision.h); labels are the tokens of before."""
    vision, images, width = config.vision_config, case["batch"] * case["images"], 4
    if config.model_type == "gemma3":
        shape = images, vision.num_channels, vision.image_size, vision.image_size
        count, types, grids = config.mm_tokens_per_image, "token_type_ids", {}
    elif config.model_type in ("llava", "internvl"):
        side, patch = (n[0] if isinstance(n, (list, tuple)) else n for n in (vision.image_size, vision.patch_size))
        tiles, merge = 1, 1
        if config.model_type == "internvl":
            tiles, merge = case["image_height"] // side * (case["image_width"] // side), 2
            tiles += tiles > 1
        shape = images * tiles, vision.num_channels, side, side
        count, types, grids = tiles * (side // patch // merge) ** 2, None, {}
    elif config.model_type != "mistral3":
        grid = [1, case["image_height"] // vision.patch_size, case["image_width"] // vision.patch_size]
        patches = grid[1] * grid[2]
        shape = images * patches, vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
        count, types = patches // vision.spatial_merge_size**2, "mm_token_type_ids"
        grids = dict(image_grid_thw=torch.tensor([grid] * images))
    given, ends = ids.clone(), 0
    if config.model_type == "mistral3":  # whose rows of an image end with a token of text each
        size = [case["image_height"], case["image_width"]]
        shape, types, grids = (images, vision.num_channels, *size), None, dict(image_sizes=torch.tensor([size] * images))
        ends, count = (side // vision.patch_size // config.spatial_merge_size for side in size)
    for image in range(case["images"]):
        for _ in range(ends or 1):
            given[:, width:width + count] = config.image_token_id
            width += count + (ends > 0)
        width += 2
    return {"input_ids": given, "labels": ids, "attention_mask": torch.ones_like(ids),
            **({types: (given == config.image_token_id).long()} if types else {}),
            "pixel_values": weights(TOKEN_SEED + 1, shape) / LIMIT, **grids}


def unused(vocabulary, batch, seq):
    """A token that the data does not have, of images"""
    return next(i for i in range(vocabulary) if not (tokens(vocabulary, batch, seq) == i).any())


def vision():
    """An image, and two, by all that reads patches: learned positions between others, deepstack behind two blocks."""
    plain = dict(precision="fp32", optimizer="adamw", checkpointing="none", attention="sdpa",
                 accumulation=1, clip=False, batch=3, seq=37, images=1, image_height=8, image_width=12)
    text = dict(ROTARY, num_key_value_heads=2, head_dim=8,
                rope_parameters=default_rope(mrope_section=[2, 2, 2], mrope_interleaved=True))
    tower = dict(depth=3, hidden_size=32, intermediate_size=56, num_heads=4, out_hidden_size=32, patch_size=2,
                 num_position_embeddings=25, deepstack_visual_indexes=[0, 2])
    hf = dict(model_type="qwen3_vl", text_config=text, vision_config=tower, tie_word_embeddings=True,
              image_token_id=unused(101, 3, 37), video_token_id=102)
    for change in (dict(), dict(images=2), dict(checkpointing="full"), dict(attention="eager"), dict(precision="bf16-mixed"),
                   dict(lora=dict(r=4, target_modules=["q_proj", "qkv"])), dict(images=0)):
        made = {**plain, **change}
        yield dict(made, hf=hf)
    sections = dict(text, rope_parameters=default_rope(mrope_section=[3, 1, 0], mrope_interleaved=True))
    yield dict({**plain, "images": 2, "attention": "eager"}, hf=dict(hf, text_config=sections))
    yield from whole_qwen3_5(plain, hf, tower)
    experts = dict(num_experts=5, num_experts_per_tok=2, moe_intermediate_size=24)
    moe = dict(hf, model_type="qwen3_vl_moe", tie_word_embeddings=False, text_config=dict(text, decoder_sparse_step=2, **experts))
    for change in (dict(), dict(images=2, checkpointing="full", attention="eager"), dict(images=0),
                   dict(lora=dict(r=4, target_modules=["q_proj", "gate_proj", "linear_fc1"]))):
        yield dict({**plain, **change}, hf=moe)
    yield from whole_qwen3_5(plain, hf, tower, "qwen3_5_moe", shared_expert_intermediate_size=40, **experts)
    for hf in older_vision(hf):
        for change in (dict(), dict(images=2), dict(images=2, checkpointing="full", attention="eager"),
                       dict(precision="bf16-mixed"), dict(lora=dict(r=4, target_modules=["q_proj", "qkv", "mlp.0"])),
                       dict(images=0)):
            yield dict({**plain, **change}, hf=hf)
    yield from vision_in_one_row(plain)
    whole = {name: value for name, value in plain.items() if not name.startswith("image_")}
    yield from vision_of_one_size(whole)
    yield from vision_by_ids(whole)
    yield from vision_of_tiles(whole)


def vision_of_one_size(plain):
    """gemma3: an image's tokens see each other, which a window cuts."""
    text = dict(ROTARY, num_hidden_layers=3, num_key_value_heads=2, head_dim=8, query_pre_attn_scalar=8, sliding_window=6,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                rope_parameters=dict(sliding_attention=default_rope(), full_attention=default_rope()))
    tower = dict(model_type="siglip_vision_model", num_hidden_layers=2, hidden_size=24, intermediate_size=40,
                 num_attention_heads=3, image_size=12, patch_size=2, vision_use_head=False)
    hf = dict(model_type="gemma3", text_config=text, vision_config=tower, mm_tokens_per_image=9,
              image_token_index=unused(101, 3, 37))
    # of bf16-mixed the host's losses and the CUDA kernels' differ by as much as either and PyTorch's
    for change in (dict(), dict(images=2), dict(checkpointing="full"), dict(attention="eager", images=2),
                   dict(precision="bf16-mixed", bound=5e-4),
                   dict(lora=dict(r=4, target_modules=["q_proj", "fc1"])), dict(images=0)):
        yield dict({**plain, **change}, hf=hf)


def vision_by_ids(plain):
    """llava, whose tower's last block but one is read; its text may tie embeddings where the model does not say so."""
    text = dict(ROTARY, model_type="llama", num_key_value_heads=2)
    tower = dict(model_type="clip_vision_model", num_hidden_layers=3, hidden_size=24, intermediate_size=40,
                 num_attention_heads=3, image_size=6, patch_size=2)
    hf = dict(model_type="llava", text_config=text, vision_config=tower, image_token_index=100)
    for change in (dict(), dict(images=2), dict(checkpointing="full"), dict(attention="eager", images=2),
                   dict(precision="bf16-mixed", bound=5e-4),
                   dict(lora=dict(r=4, target_modules=["q_proj", "fc1", "linear_2"])), dict(images=0)):
        yield dict({**plain, **change}, hf=hf)
    wide = dict(tower, hidden_size=384, num_attention_heads=2, hidden_act="gelu")  # so that losses tell how patches see one another
    yield dict(plain, hf=dict(hf, text_config=dict(text, tie_word_embeddings=True), vision_config=wide))


def vision_of_tiles(plain):
    """internvl, whose images are a tile or several and one of the whole, and whose text is qwen2's or qwen3's"""
    text = dict(ROTARY, model_type="qwen2", num_key_value_heads=2)
    newer = dict(text, model_type="qwen3", head_dim=8)
    tower = dict(num_hidden_layers=2, hidden_size=24, intermediate_size=40, num_attention_heads=3, image_size=[4, 4],
                 patch_size=[1, 1], attention_bias=True)
    hf = dict(model_type="internvl", text_config=text, vision_config=tower, image_token_id=100, tie_word_embeddings=False)
    one = {**plain, "image_height": 4, "image_width": 4}
    for change in (dict(), dict(images=2), dict(checkpointing="full", image_width=12), dict(attention="eager", image_height=8),
                   dict(precision="bf16-mixed", bound=5e-4), dict(images=0),
                   dict(lora=dict(r=4, target_modules=["q_proj", "projection_layer", "linear_2"]))):
        yield dict({**one, **change}, hf=hf)
    wide = dict(tower, hidden_size=384, num_attention_heads=2)  # so that losses tell how patches see one another
    yield dict(one, hf=dict(hf, text_config=newer, tie_word_embeddings=True, vision_config=wide))


def vision_in_one_row(plain):
    """mistral3, whose text is mistral's or ministral3's"""
    tower = dict(model_type="pixtral", num_hidden_layers=2, hidden_size=32, intermediate_size=56, num_attention_heads=4, patch_size=2)
    text = dict(ROTARY, model_type="mistral", num_key_value_heads=2, sliding_window=None)
    newer = dict(ROTARY, model_type="ministral3", num_key_value_heads=2, head_dim=8, rms_norm_eps=1e-6,
                 rope_parameters=default_rope(llama_4_scaling_beta=0.1, original_max_position_embeddings=3))
    hf = dict(model_type="mistral3", text_config=text, vision_config=tower, image_token_index=100, tie_word_embeddings=False)
    for change in (dict(), dict(images=2), dict(checkpointing="full"), dict(attention="eager", images=2),
                   dict(precision="bf16-mixed"), dict(lora=dict(r=4, target_modules=["q_proj", "gate_proj", "linear_1"])),
                   dict(images=0)):
        yield dict({**plain, **change}, hf=hf)
    wide = dict(tower, hidden_size=384, num_attention_heads=2, hidden_act="silu")  # so that losses tell how patches see one another
    yield dict(plain, hf=dict(hf, text_config=newer, tie_word_embeddings=True, vision_config=wide))


def whole_qwen3_5(plain, hf, tower, family="qwen3_5", **more):
    """Its text model beside a tower, whose config.json stands for the text where no family is said"""
    text = dict(ROTARY, num_key_value_heads=2, head_dim=16, linear_key_head_dim=6, linear_value_head_dim=10,
                linear_num_key_heads=2, linear_num_value_heads=4, layer_types=["linear_attention", "full_attention"],
                rope_parameters=default_rope(mrope_section=[2, 1, 1], mrope_interleaved=True, partial_rotary_factor=0.5), **more)
    tower = {name: value for name, value in tower.items() if name != "deepstack_visual_indexes"}
    for change in (dict(), dict(images=2), dict(images=2, checkpointing="full", attention="eager"), dict(images=0)):
        yield dict({**plain, **change}, family=family, hf=dict(hf, model_type=family, text_config=text, vision_config=tower))


def older_vision(hf):
    """qwen2_5_vl, whose windows are of four tokens and of two, and qwen2_vl"""
    text = dict(ROTARY, num_key_value_heads=2, rms_norm_eps=1e-6,
                rope_parameters=default_rope(mrope_section=[1, 2, 1]))
    tower = dict(depth=3, num_heads=4, patch_size=2)
    windows = dict(tower, hidden_size=32, intermediate_size=56, out_hidden_size=32, window_size=8, fullatt_block_indexes=[1])
    yield dict(hf, model_type="qwen2_5_vl", text_config=text, vision_config=windows)
    yield dict(hf, model_type="qwen2_vl", text_config=text, vision_config=dict(tower, embed_dim=32, hidden_size=32, mlp_ratio=2))
