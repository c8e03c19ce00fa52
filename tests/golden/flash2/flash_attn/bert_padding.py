"""Putting tokens of rows of different lengths back to their places; for the other way transformers has its own code."""
import torch


class PutRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx, values, places, count):
        ctx.save_for_backward(places)
        every = torch.zeros(count, *values.shape[1:], device=values.device, dtype=values.dtype)
        every[places] = values
        return every

    @staticmethod
    def backward(ctx, grad):
        places, = ctx.saved_tensors
        return grad[places], None, None


def pad_input(values, places, batch, length):
    return PutRows.apply(values, places, batch * length).view(batch, length, *values.shape[1:])


def unpad_input(*args, **kwargs):
    raise NotImplementedError("the stand-in is for queries as long as the keys")


index_first_axis = unpad_input
