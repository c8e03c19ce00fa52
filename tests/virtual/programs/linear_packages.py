"""The packages that transformers takes for layers of linear attention where it finds them: those of a case and no other."""
import importlib
import sys

PACKAGES = {'linear_attention': 'fla', 'causal_conv1d': 'causal_conv1d'}


def take(case):
    """Before transformers imports the model."""
    for field, package in PACKAGES.items():
        if case.get(field) in (None, False, 'torch'):
            sys.modules[package] = None
        else:
            importlib.import_module(package)
    if case.get('linear_attention') == 'fla':
        tune_nothing()


def tune_nothing():
    """Each of Triton's kernels has the first configuration that the GPU has room for, as if the best were known from a run
    before: without a GPU none is faster than another."""
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.errors import OutOfResources
    run = Autotuner.run

    def with_first(self, *arguments, **named):
        every = self.configs
        for at, config in enumerate(every):
            self.configs = [config]
            try:
                return run(self, *arguments, **named)
            except OutOfResources:
                if at == len(every) - 1:
                    raise
    Autotuner.run = with_first
