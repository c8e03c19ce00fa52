"""Padding of rows of different lengths, which the stand-in refuses."""


def pad_input(*args, **kwargs):
    raise NotImplementedError("the stand-in has no rows of different lengths")


unpad_input = index_first_axis = pad_input
