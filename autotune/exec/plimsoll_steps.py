"""Tells plimsoll when an optimizer of the program has stepped.

PyTorch (2.5 or later) loads the entry points of the group "torch.backends" when it is imported. The
function is that of the library that `plimsoll exec` preloads; without it nothing is done.
"""
import ctypes


def register():
    told = getattr(ctypes.CDLL(None), 'plimsoll_optimizer_stepped', None)
    if told is None:
        return
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    def stepped(optimizer, arguments, keywords):
        if not torch.compiler.is_compiling():  # a compiled step is told from its kernels
            told()

    register_optimizer_step_post_hook(stepped)
