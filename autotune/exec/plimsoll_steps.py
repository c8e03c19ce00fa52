"""Tells plimsoll when an optimizer of the program has stepped, and whether that was in a loop over a data loader.

PyTorch (2.5 or later) loads the entry points of the group "torch.backends" when it is imported. The
functions are those of the library that `plimsoll exec` preloads; without it nothing is done.
"""
import contextlib
import ctypes
import functools
import sys
import weakref


class Optimizers:
    """The program's, and which of them have not stepped yet: a generator's may, after some steps of its
    discriminator's."""

    def __init__(self):
        self.waiting, self.updated = weakref.WeakSet(), set()

    def watch(self, optimizers, made):
        """`optimizers`: the class of all. `made`: tells that there is one."""
        make = optimizers.__init__

        @functools.wraps(make)
        def make_and_wait(optimizer, *arguments, **keywords):
            make(optimizer, *arguments, **keywords)
            made()
            with contextlib.suppress(TypeError):  # it may be a kind that is in no set
                self.waiting.add(optimizer)

        optimizers.__init__ = make_and_wait

    def stepped(self, optimizer):
        """How many wait; of kinds whose parameters are not found none does."""
        try:
            return self.left_by(optimizer)
        except (AttributeError, KeyError, TypeError):
            self.waiting.clear()
            return 0

    def left_by(self, optimizer):
        """How many wait beside this one; one around another, with the same parameters, does not."""
        self.waiting.discard(optimizer)
        if self.waiting:
            self.updated.update(map(id, parameters_of(optimizer)))
            for other in list(self.waiting):
                if not self.updated.isdisjoint(map(id, parameters_of(other))):
                    self.waiting.discard(other)
        return sum(any(parameter.is_cuda and parameter.requires_grad for parameter in parameters_of(other))
                   for other in self.waiting)


def parameters_of(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group['params']]


class Epochs:
    """Loops over PyTorch's data loaders: they may be shortened, so that what comes after an epoch (an evaluation,
    saving) comes soon."""

    def __init__(self, longest):
        self.longest = longest  # training steps of a loop that is trained from; 0: all
        self.steps = 0
        self.ended = 0          # loops that were trained from
        self.under_way = {}     # by a reference to the iterator

    def stepped(self):
        """Is it in a loop, and after how many others?"""
        self.steps += 1
        return bool(self.under_way), self.ended

    def begin(self, iterator):
        reference = weakref.ref(iterator, self.end)  # a loop that is left ends, too
        iterator.plimsoll_loop = reference
        self.under_way[reference] = Loop(self.steps)

    def end(self, reference):
        self.ended += self.steps > self.under_way.pop(reference).steps_before

    def watch(self, iterators, state):
        """`iterators`: the class of what gives a loader's batches."""
        give = iterators.__next__

        def give_next(iterator):
            if not hasattr(iterator, 'plimsoll_loop'):
                self.begin(iterator)
            loop = self.under_way[iterator.plimsoll_loop]
            if self.longest and loop.is_long_enough(self.steps, self.longest, *state()):
                iterator._index_sampler.skips = True
            try:
                return give(iterator)
            except StopIteration:
                self.end(iterator.plimsoll_loop)
                del iterator.plimsoll_loop
                raise

        iterators.__next__ = give_next

    def shorten(self, loaders, endless):
        """`loaders`: the class of data loaders, whose samplers say what is in a batch; of `endless` datasets they
        say only that there is one more."""
        sampler_of = loaders._index_sampler.fget

        def short_sampler_of(loader):
            adapt_trainers()
            return ShortSampler(sampler_of(loader), not isinstance(loader.dataset, endless))

        loaders._index_sampler = property(short_sampler_of)


class Loop:
    """One loop over a data loader."""

    ALIKE = 10

    def __init__(self, steps):
        self.steps_before, self.held, self.alike = steps, None, 0

    def is_long_enough(self, steps, longest, has_gradients, held):
        """`longest`: training steps. One without any, when it left memory as it was for some batches: it gathers
        nothing."""
        self.alike = self.alike + 1 if held == self.held and not has_gradients else 0
        self.held = held
        return steps - self.steps_before >= longest or self.alike >= self.ALIKE


class ShortSampler:
    """Skips, when it is told to, to the last batch, which may be a smaller one, where that is not too far."""

    FAR = 1000000

    def __init__(self, sampler, has_last):
        self.sampler, self.has_last, self.skips = sampler, has_last, False

    def __len__(self):
        return len(self.sampler)

    def __iter__(self):
        self.skips = False
        batches, last = iter(self.sampler), None
        for batch in batches:
            yield batch
            if self.skips:
                break
        if self.has_last and hasattr(self.sampler, '__len__') and len(self) < self.FAR:
            for last in batches:
                pass
        if last is not None:
            yield last


def adapt_trainers():
    """Trainers that evaluate by a number of steps or batches do it after a short epoch, too. Those that are imported,
    each once."""
    for package in ('lightning.pytorch', 'pytorch_lightning'):
        adapt_lightning(part_of(f'{package}.loops.training_epoch_loop', '_TrainingEpochLoop'),
                        part_of(f'{package}.loops.fetchers', '_DataFetcher'))
    adapt_transformers(part_of('transformers.trainer_callback', 'DefaultFlowCallback'))


def part_of(module, name):
    return getattr(sys.modules.get(module), name, None)


def replace(owner, name, make):
    """Puts make(owner.name) in its place, where there is one that was not replaced."""
    old = getattr(owner, name, None)
    if old is not None and not hasattr(old, 'plimsoll'):
        new = make(old)
        new.plimsoll = True
        setattr(owner, name, new)


def adapt_lightning(loop, fetcher):
    """It knows the last batch, and the one after which it evaluates, by the loader's length."""
    replace(loop, '_should_check_val_fx', lambda decide: lambda self, batches: (
        decide(self, batches) or self.batch_progress.is_last_batch and self._should_check_val_epoch()))

    def without_length(reset):
        def reset_without_length(self):
            reset(self)
            self.length = None  # it looks one batch ahead then

        return reset_without_length

    replace(fetcher, 'reset', without_length)


def adapt_transformers(flow):
    def evaluate_too(end):
        def on_epoch_end(self, arguments, state, control, **keywords):
            control = end(self, arguments, state, control, **keywords)
            if getattr(arguments, 'eval_strategy', 'no') != 'no':
                control.should_evaluate = True
            return control

        return on_epoch_end

    replace(flow, 'on_epoch_end', evaluate_too)


def watch_loaders(epochs):
    import torch
    try:
        from torch.utils.data import DataLoader, IterableDataset
        from torch.utils.data.dataloader import _BaseDataLoaderIter

        epochs.watch(_BaseDataLoaderIter, lambda: (torch.is_grad_enabled(), torch.cuda.memory_allocated()))
        if epochs.longest:
            epochs.shorten(DataLoader, IterableDataset)
    except (ImportError, AttributeError):
        pass  # loaders of another kind than those of 2.5 to 2.15: epochs are not seen


def watch_cache(torch, told):
    """PyTorch's allocator gives back what it keeps; without a cache (autotune/record) nothing else tells."""
    for name in '_cuda_emptyCache', '_accelerator_emptyCache':
        empty = getattr(torch._C, name, None)
        if empty:
            setattr(torch._C, name, functools.partial(call_and_tell, empty, told))


def call_and_tell(function, told, *arguments):
    function(*arguments)
    told()


class Refusals:
    """Requests for memory that PyTorch's allocator gives up. Those that the GPU refuses are known; others break a
    limit that the program has set, of which the GPU hears nothing. The allocator's observers are told of both."""

    def __init__(self, torch, told):
        self.torch, self.told, self.observes = torch, told, False
        watch_limit = getattr(torch._C, '_cuda_setMemoryFraction', None)
        if watch_limit:
            torch._C._cuda_setMemoryFraction = functools.partial(call_and_tell, watch_limit, self.observe)

    def observe(self):
        """Once, and not before the program uses a GPU: it would, by that."""
        attach = getattr(self.torch._C, '_cuda_attach_out_of_memory_observer', None)
        if attach and not self.observes and self.torch.cuda.is_initialized():
            self.observes = True
            attach(self.tell)

    def tell(self, device, asked, total, free):
        self.told(device, ctypes.c_int64(asked), ctypes.c_int64(free))


def register():
    library = ctypes.CDLL(None)
    told = getattr(library, 'plimsoll_optimizer_stepped', None)
    if told is None:
        return
    import plimsoll_triton
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    plimsoll_triton.register(library)
    epochs, optimizers = Epochs(library.plimsoll_epoch_steps()), Optimizers()
    watch_loaders(epochs)
    watch_cache(torch, library.plimsoll_cache_emptied)
    refusals = Refusals(torch, library.plimsoll_out_of_memory)

    def made():
        library.plimsoll_optimizer_made()
        refusals.observe()  # the limit may be the allocator's option

    optimizers.watch(torch.optim.Optimizer, made)

    def stepped(optimizer, arguments, keywords):
        if not torch.compiler.is_compiling():  # a compiled step is told from its kernels
            told(*epochs.stepped(), optimizers.stepped(optimizer), ctypes.c_uint64(id(optimizer)))

    register_optimizer_step_post_hook(stepped)
