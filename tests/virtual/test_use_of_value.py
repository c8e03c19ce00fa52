#!/usr/bin/env python3
"""What a program does with a value is seen from its code: test_use_of_value.py use_of_value.py

Each case reads a value that tells, as PyTorch would while it waits for the GPU, what is found out.
"""
import contextlib
import importlib.util
import io
import math
import sys

sys.dont_write_bytecode = True  # nothing is left in the tree
import more_uses
import kept_by_others

WORDS = ('shown', 'kept', 'finite', 'below', 'checked', 'decides')
found = []


def load(path):
    spec = importlib.util.spec_from_file_location('use_of_value', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Value:
    """As a tensor of one number."""

    def __init__(self, size, truth, is_floating):
        self.size, self.truth, self.is_floating = size, truth, is_floating

    def read(self, answer):
        found.append(finder.use_of(sys._getframe(2), self.size, self.is_floating))
        return answer

    def __bool__(self):
        return self.read(self.truth)

    def __float__(self):
        return self.read(1.5)

    def __index__(self):
        return self.read(1)

    def __format__(self, how):
        return self.read('')

    def item(self):
        return self.read(1)

    def tolist(self):
        return self.read([1, 2])

    def cpu(self):
        return self.read(self)

    def nonzero(self):
        return self.read(self)

    def bincount(self, weights=None, minlength=0):
        self.read(-1)
        return self.read(minlength)

    def normal(self):
        return self.read(self)

    dtype = float

    def all(self):
        return self

    def any(self):
        return self

    def __or__(self, other):
        return self

    def __invert__(self):
        return self

    def __gt__(self, other):
        return self

    def numel(self):
        return 3

    def __iter__(self):
        return iter([1.0, 2.0])

    def split(self, size):
        return [self] * size


class Table:
    def __getitem__(self, index):
        index.read(None)


def give(value):
    return value.item()


def branches(v):
    if v:
        pass


def loops(v):
    while not v.item():
        pass


def is_true(v):
    return bool(v)


def raises_unless_told(v):
    if not is_true(v):
        raise ValueError


class Mode:
    """What a value's truth goes through, as with FlopCounterMode."""

    def __init__(self, value):
        self.value, self.counts = value, []

    def count(self, out):
        self.counts.append(1)
        return out

    def __torch_dispatch__(self):
        out = bool(self.value)
        return self.count(out)

    __bool__ = __torch_dispatch__


def raises_behind_a_mode(v):
    mode = Mode(v)
    if not mode:
        raise ValueError


def tests_behind_a_mode(v):
    mode = Mode(v)
    return 1 if mode else 2


def raises_if_not(v):
    if not v.all():
        raise ValueError(f'not {v.size}')


def raises_if(v):
    if v.all():
        raise ValueError


def asserts(v):
    assert v, 'no'


def is_finite(v):
    loss = v.item()
    if not math.isfinite(loss):
        sys.exit(1)


def isnan(v):
    return v


def isinf(v):
    return v


def isfinite(v):
    return v


def lstm(v):
    return v.read(None)


def skips_if_not_finite(v):
    if not (isinf(v) | isnan(v)).any():
        pass


def skips_unless_finite(v):
    if isfinite(v).all():
        pass


def skips_if_one_is_not(v):
    if (~isfinite(v)).any().item():
        pass


def finite_or_large(v):
    if (isnan(v) | (v > 2)).any():
        pass


def runs_rnn(v):
    return lstm(v)


def compares(v):
    if v.item() > 2:
        pass


def warns(v):
    if v.item() > 2:
        print('large:', round(v.item(), 2), end='\r', file=sys.stderr)
    else:
        print(f'small: {v}', file=sys.stderr)


def warns_in_a_loop(v):
    for _ in range(2):
        if v.item() > 2:
            print('large', file=sys.stderr)


def adds_to_a_text(v):
    text, loss = 'step 1', v.item()
    if loss > 0.:
        text += ' loss {:.3f}'.format(loss)


def counts_if_large(v):
    count = 0
    if v.item() > 2:
        print('large', file=sys.stderr)
        count += 1
    return [0] * count


def stops_if_large(v):
    for _ in range(2):
        if v.item() > 2:
            print('large', file=sys.stderr)
            break


def shows_what_is_made(v):
    if v.item() > 2:
        print(give(v))


def of_a_list(v):
    torch = kept_by_others
    return float(torch.tensor([[v.item(), 1], [2, 3]]))


def compares_what_was_given(v):
    if give(v) > 2:
        pass


def prints(v):
    print('loss', round(v.item() / 3, 4), end='\r', file=sys.stderr)


def formats(v):
    f'{v:.3f}'


def percent(v):
    '%f' % v


def shows_bar(*_):
    pass


def percents_in_a_bar(v):
    right = v.item()
    shows_bar(1, 'Loss: %.3f | Acc: %.3f%% (%d)' % (2 / 3, 100. * right / 3, right))


def remainder(v):
    shows_bar(1, 7 % v.item())


def given_away(v):
    math.fsum(v.cpu())


def names_and_prints(v):
    step, loss = 1, v.item()
    print(f'{step} {loss:.2f}', end='\r', file=sys.stderr)


def drops(v):
    v.item()


def appends(v):
    losses = []
    losses.append(v.item())


def keeps(v):
    logs = {}
    logs['loss'] = v.item()


def mean_of_list(v):
    losses = []
    losses.append(v.item())
    return sum(losses) / len(losses) < 2


def length_of_list(v):
    losses = []
    losses.append(v.item())
    if losses and len(losses) > 2:
        pass


def entry_of_dictionary(v):
    logs = {'step': 1}
    logs['loss'] = v.item()
    if logs['loss'] < 2:
        pass


def other_entry(v):
    logs = {'step': 1}
    logs['loss'] = v.item()
    if 'loss' in logs and logs['step'] < 2:
        pass


def is_given(v):
    loss = v.item()
    if loss is not None:
        pass


class Watch:
    best = worst = total = counted = 3
    seen = []

    def keep(self, v):
        self.best = min(v.item(), 3)

    def is_better(self):
        return self.best < 2

    def keep_all(self, v):
        self.seen.append(v.item())

    @property
    def is_falling(self):
        return self.seen[-1] < self.seen[0]

    def keep_shown(self, v):
        self.worst = v.item()

    def show(self):
        print(self.worst, end='\r', file=sys.stderr)

    def keep_total(self, v):
        self.total += v.item()

    def count(self, v):
        self.counted += v.item()
        return self.counted > 1


def keeps_global(v):
    global last_loss
    last_loss = v.item()


def uses_global():
    if last_loss < 1:
        pass


def attribute(v):
    Watch().keep(v)


def list_of_attribute(v):
    Watch().keep_all(v)


def shown_attribute(v):
    Watch().keep_shown(v)


def counted_attribute(v):
    Watch().count(v)


def total_attribute(v):
    Watch().keep_total(v)


def sizes(v):
    range(v.item())


def indexes(v):
    Table()[v]


def selects(v):
    v.nonzero()


def counts_at_least(v):
    v.bincount(minlength=8)


def counts_at_least_with_weights(v):
    v.bincount(minlength=len('12345678'), weights=None)


def counts(v):
    v.bincount()


def counts_weights(v):
    v.bincount(None)


def draws(v):
    v.normal()


def lengths(v):
    for _ in v.tolist():
        pass


def logged(v):
    logs = {'advantages': []}
    logs['advantages'].extend(v.tolist())


def split(v):
    t = v.cpu()
    if t.dtype == float:
        t.split(2)
    if t.numel() == 3:
        pass


def whole_tensor(v):
    saved = {}
    saved['weight'] = v.cpu()


def is_better(meter):
    return meter.best_so_far < 2


def compared_elsewhere(v):
    kept_by_others.Meter().keep_best(v)


def shown_elsewhere(v):
    kept_by_others.Meter().keep_latest(v)


def told_by_another(v):
    kept_by_others.tell('loss', v.item())


def told_by_name(v):
    kept_by_others.tell('loss', where=v.item(), value=1)


def chosen_by_another(v):
    kept_by_others.choose('best', v.item(), most=2)


def chosen_by_name(v):
    kept_by_others.choose('best', 2, most=v.item())


def gives_back(v):
    if kept_by_others.half(v.item()) > 1:
        pass


def gives_back_and_shows(v):
    print(kept_by_others.half(v.item()))


def summed_by_a_meter(v):
    meter = kept_by_others.Meter()
    meter.total_seen = 0
    meter.update(v.item(), 2)


def kept_in_a_dictionary(v):
    metrics = {}
    metrics.update({'count': v.item()})


def given_to_a_package(v):
    math.gcd(4, v.item())


# What is read, of how many bytes, what it is; how it is used, and what it has to be.
CASES = (
    (branches, 1, True, 'decides', -1), (loops, 8, True, 'decides', -1),
    (raises_unless_told, 1, True, 'checked', 1), (raises_if_not, 1, True, 'checked', 1), (raises_if, 1, False, 'checked', 0),
    (asserts, 1, True, 'checked', 1), (is_finite, 4, True, 'finite', -1),
    (skips_if_not_finite, 1, False, 'finite', 0), (skips_unless_finite, 1, True, 'finite', 1),
    (skips_if_one_is_not, 1, False, 'finite', 0), (finite_or_large, 1, False, 'decides', -1),
    (runs_rnn, 8, True, 'kept', -1), (runs_rnn, 4, True, 'decides', -1),
    (compares, 4, True, 'decides', -1), (compares_what_was_given, 4, True, 'decides', -1),
    (warns, 4, True, 'shown', -1), (warns_in_a_loop, 4, True, 'shown', -1), (adds_to_a_text, 4, True, 'shown', -1),
    (counts_if_large, 4, True, 'decides', -1), (stops_if_large, 4, True, 'decides', -1),
    (shows_what_is_made, 4, True, 'decides', -1), (of_a_list, 4, True, 'shown', -1),
    (prints, 4, True, 'shown', -1), (formats, 4, True, 'shown', -1), (percent, 4, True, 'shown', -1),
    (percents_in_a_bar, 8, True, 'shown', -1), (remainder, 8, True, 'decides', -1),
    (given_away, 8, True, 'decides', -1), (names_and_prints, 4, True, 'shown', -1), (drops, 4, True, 'shown', -1),
    (appends, 4, True, 'kept', -1), (appends, 8, True, 'decides', -1), (keeps, 4, True, 'kept', -1),
    (mean_of_list, 4, True, 'decides', -1), (length_of_list, 4, True, 'kept', -1),
    (entry_of_dictionary, 4, True, 'decides', -1), (other_entry, 4, True, 'kept', -1), (is_given, 4, True, 'shown', -1),
    (attribute, 4, True, 'decides', -1), (attribute, 1 << 20, True, 'kept', -1), (list_of_attribute, 4, True, 'decides', -1),
    (shown_attribute, 4, True, 'kept', -1), (total_attribute, 4, True, 'kept', -1),
    (counted_attribute, 4, True, 'decides', -1),
    (keeps_global, 4, True, 'decides', -1), (compared_elsewhere, 4, True, 'decides', -1),
    (shown_elsewhere, 4, True, 'kept', -1), (told_by_another, 8, True, 'shown', -1), (told_by_name, 8, True, 'shown', -1),
    (chosen_by_another, 4, True, 'decides', -1), (chosen_by_name, 4, True, 'decides', -1),
    (gives_back, 4, True, 'decides', -1), (gives_back_and_shows, 8, True, 'shown', -1),
    (summed_by_a_meter, 8, True, 'kept', -1), (kept_in_a_dictionary, 8, True, 'decides', -1),
    (given_to_a_package, 8, True, 'decides', -1),
    (raises_behind_a_mode, 1, True, 'checked', 1), (tests_behind_a_mode, 1, True, 'decides', -1),
    (sizes, 8, True, 'decides', -1), (sizes, 4, True, 'decides', -1), (indexes, 8, True, 'decides', -1),
    (selects, 8, True, 'decides', -1), (counts_at_least, 8, True, 'below', -1),
    (counts_at_least_with_weights, 8, True, 'below', -1), (counts, 8, True, 'decides', -1),
    (counts_weights, 8, True, 'decides', -1), (draws, 1, True, 'checked', 1), (draws, 4, True, 'decides', -1),
    (lengths, 64, True, 'decides', -1), (logged, 32, True, 'decides', -1),
    (whole_tensor, 4096, True, 'kept', -1), (split, 480, True, 'shown', -1),
)

# Of floating-point numbers: two are no count.
FLOATING = ((given_away, 8, True, 'kept', -1), (appends, 8, True, 'kept', -1), (compares, 8, True, 'decides', -1),
            (logged, 32, True, 'kept', -1))

# What is read stands in another function.
THROUGH_OTHERS = (compares_what_was_given, attribute, list_of_attribute, shown_attribute, total_attribute,
                  counted_attribute, compared_elsewhere, shown_elsewhere, raises_unless_told)


WARM = 40  # Python calls otherwise what it has called some times


def check(is_floating, function, size, truth, use, answer):
    problem = check_once(is_floating, function, size, truth, use, answer)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for _ in range(WARM):
            function(Value(size, truth, is_floating))
    return problem or check_once(is_floating, function, size, truth, use, answer)


def check_once(is_floating, function, size, truth, use, answer):
    found.clear()
    function(Value(size, truth, is_floating))
    file, line, number, told = found[0]
    first = function.__code__.co_firstlineno
    if (WORDS[number], told) != (use, answer):
        return f'{WORDS[number]} {told}, expected {use} {answer}'
    if not file.endswith(('test_use_of_value.py', 'kept_by_others.py', 'more_uses.py')):
        return f'in {file}'
    is_here = first < line <= first + 4 or function in THROUGH_OTHERS
    return '' if is_here else f'in line {line}, the function begins in {first}'


def main():
    failed = 0
    for case in CASES + more_uses.CASES + FLOATING:
        problem = check(case in FLOATING, *case)
        failed += bool(problem)
        if problem:
            print(f'{case[0].__name__}, {case[1]} bytes: {problem}')
    print(f'{len(CASES + more_uses.CASES + FLOATING)} cases, {failed} failed')
    return 1 if failed else 0


finder = load(sys.argv[1])
sys.exit(main())
