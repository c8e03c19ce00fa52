"""What a Python program does with a value that it has just read from the GPU.

Runs inside the program (python.c), at the moment of the read: of the instruction that waits, and of those that follow,
it tells whether the program decides by the value, only shows it, or keeps it for something that is not seen here (a
loss that is added up). It runs nothing and changes nothing.

What is kept is followed in variables, in lists and dictionaries of the same function, and in attributes and globals
through all code of the program's own modules (of an installed package, of that module alone), and so is what is given
to functions and methods of these, which are found by their names.

    use_of(frame, size, is_floating) -> (file, line, use, answer)

`frame` is the innermost one, `size` the bytes of what was read, `is_floating` says that it is known to be floating-point
numbers. `file` and `line` are those of the innermost code that is not PyTorch's. `use` is one of those below: of two,
the greater one counts. `answer` is the truth value with which the program goes on where the other one raises an
exception (the use is CHECKED then), 1 where it fails with 0, as it divides by the value, else -1. BELOW: it decides of
a size only if it is more than the program says.
"""
import dis
import gc
import os
import sys
import types

SHOWN, KEPT, FINITE, BELOW, CHECKED, DECIDES = range(6)

# Functions that give back what they were given.
PASSES = {'item', 'tolist', 'float', 'int', 'bool', 'cpu', 'numpy', 'to', 'detach', 'clone', 'copy_', 'round',
          'abs', 'mean', 'sum', 'max', 'min', 'sqrt', 'exp', 'log', 'pow', 'array', 'asarray', 'tensor', 'as_tensor',
          'type', 'log2', 'log10'}
# Those of them that read by themselves: any other is an operator that needs the value.
READS = PASSES - {'mean', 'sum', 'max', 'min', 'sqrt', 'exp', 'pow', 'clone', 'detach'} | {
    'format', 'str', 'repr', 'print', 'isfinite', 'isnan', 'isinf', '_nested_gather', 'get'}
# Attributes and methods that are not about the value.
ASIDE = {'dtype', 'device', 'shape', 'ndim', 'is_cuda', 'requires_grad', 'layout', 'nbytes', 'data_ptr',
         'size', 'numel', 'nelement', 'element_size', 'dim', 'stride', 'is_contiguous'}
SHOWS = {'print', 'format', 'str', 'repr', 'info', 'debug', 'warning', 'write', 'set_postfix',
         'set_postfix_str', 'set_description', 'add_scalar', 'log_metrics', 'dumps'}
# What only makes and shows a text: calls of SHOWS and of these (one number takes no memory to speak of), and the
# instructions that begin so.
SHOWS_WITH = SHOWS | {'item', 'round', 'float', 'int', 'len', 'join', 'min', 'max', 'mean', 'sum', 'norm'}
OF_TEXTS = ('LOAD_', 'PUSH_NULL', 'PRECALL', 'KW_NAMES', 'POP_TOP', 'FORMAT_', 'CONVERT_', 'BUILD_STRING', 'BUILD_TUPLE',
            'BINARY_', 'INPLACE_ADD')
# Methods that keep what they are given in what they are a method of.
KEEPS = {'append', 'appendleft', 'add', 'insert', 'setdefault'}
# Methods of lists, sets and dictionaries: what they are given in a list or dictionary may be kept in one.
OF_CONTAINERS = {*dir(list), *dir(set), *dir(dict)}
SIZES = {'range', 'zeros', 'ones', 'empty', 'full', 'arange', 'view', 'reshape', 'expand', 'split',
         'repeat', 'narrow', 'pad', 'linspace'}
CHECKS = {'isfinite', 'isnan', 'isinf'}
# Functions that fail with 0, and what says that the value gets to one of these, or is divided by.
NOT_OF_ZERO = {'log', 'log2', 'log10'}
DIVISOR = object()
# Operators of PyTorch that read a truth value and raise an exception: the one that they go on with (no spread is < 0).
OPERATORS_THAT_CHECK = {'normal': 1}
# Those that read 8 bytes of which nothing depends that is seen here: the seed of their dropout.
OPERATORS_THAT_SEED = {'lstm', 'gru', 'rnn_tanh', 'rnn_relu'}
# What PyTorch itself and packages that only show read a value for, by parts of their files' names. (What a learning
# rate is decided by takes no memory.)
BY_FILE = {'/torch/serialization.py': KEPT, '/torch/_tensor_str.py': SHOWN, '/torch/utils/tensorboard/': SHOWN,
           '/torch/optim/lr_scheduler.py': KEPT,
           **{f'-packages/{package}/': SHOWN for package in (
               'tensorboardX', 'wandb', 'mlflow', 'comet_ml', 'neptune', 'aim', 'clearml', 'matplotlib', 'tqdm', 'rich')}}
# PyTorch's own functions around a mode, and between it and an operator: they pass on what they are given.
OF_OPERATORS = ('/torch/_ops.py', '/torch/utils/_stats.py', '/torch/_compile.py', '/torch/_dynamo/eval_frame.py')
# Of so many bytes are counts, flags and indices, if not floating-point numbers; of others a loss, or many numbers.
COUNT_BYTES = (1, 8)
# What is more than this is data, weights that are moved to the host: where it is kept is not followed.
MOST_KEPT_BYTES = 1 << 16


def instructions_of(code):
    return [i for i in dis.get_instructions(code) if i.opname not in ('CACHE', 'NOP', 'EXTENDED_ARG',
                                                                      'NOT_TAKEN', 'RESUME')]


def operator_of(instruction):
    """The name of an instruction; Python 3.8 has comparisons for two that have names of their own later."""
    if instruction.opname != 'COMPARE_OP':
        return instruction.opname
    return {'in': 'CONTAINS_OP', 'not in': 'CONTAINS_OP', 'is': 'IS_OP', 'is not': 'IS_OP'}.get(instruction.argval, 'COMPARE_OP')


def effect_of(instruction):
    has_argument = instruction.opcode >= dis.HAVE_ARGUMENT
    return dis.stack_effect(instruction.opcode, instruction.arg if has_argument else None, jump=False)


def is_call(instruction):
    return instruction.opname.startswith('CALL') and not instruction.opname.startswith('CALL_INTRINSIC')


def is_test(instruction):
    name = instruction.opname
    return 'JUMP' in name and '_IF_' in name and 'NONE' not in name or name in ('TO_BOOL', 'UNARY_NOT')


def sets_variable(instruction):
    name = instruction.opname
    return name.startswith('STORE_') and name not in ('STORE_ATTR', 'STORE_SUBSCR', 'STORE_SLICE')


def loads_attribute(instruction):
    """But no method that is called: Python 3.12 has the same instruction for both."""
    is_method = sys.version_info >= (3, 12) and (instruction.arg or 0) & 1
    return instruction.opname == 'LOAD_ATTR' and not is_method


def loads_variable(instruction):
    return instruction.opname.startswith('LOAD_') and instruction.opname not in ('LOAD_CONST', 'LOAD_METHOD', 'LOAD_ATTR')


def loads_global(instruction):
    """In another module it is an attribute of this one."""
    return instruction.opname in ('LOAD_GLOBAL', 'LOAD_NAME') or loads_attribute(instruction)


def callee_at(listing, at):
    """Where what a call calls was put on the stack; -1 if that is not seen."""
    wanted, name = listing[at].arg or 0, listing[at].opname
    if name == 'CALL_FUNCTION_EX':
        return -1
    wanted += name in ('CALL_FUNCTION_KW', 'CALL_KW')
    at -= 1
    while at > 0 and listing[at].opname in ('PRECALL', 'KW_NAMES'):
        at -= 1
    while at > 0 and wanted > 0:
        wanted -= effect_of(listing[at])
        at -= 1
    while at > 0 and listing[at].opname == 'PUSH_NULL':
        at -= 1
    return at


def callee(listing, at):
    """The name of what a call calls; '' if that is not seen."""
    at = callee_at(listing, at)
    return str(listing[at].argval) if at >= 0 and listing[at].opname.startswith('LOAD_') else ''


def pops(instruction):
    """How many values an instruction takes that leaves one."""
    besides = {'CALL': 2, 'CALL_METHOD': 2, 'CALL_FUNCTION_KW': 2, 'CALL_KW': 3}.get(instruction.opname)
    return (instruction.arg or 0) + besides if besides else 1 - effect_of(instruction)


def codes_within(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_within(constant)


def codes_of(space):
    """All code of the module that has these globals."""
    found = list(space.values())
    for thing in list(found):
        if isinstance(thing, type) and thing.__module__ == space.get('__name__'):
            found += vars(thing).values()
    for thing in found:
        thing = getattr(thing, 'fget', None) or getattr(thing, '__func__', thing)
        if isinstance(thing, types.FunctionType) and thing.__globals__ is space:
            yield from codes_within(thing.__code__)


def own_file(space):
    """Of the module with these globals; '' if it is installed, or has none."""
    file = os.path.abspath(space.get('__file__') or '.')
    is_installed = '-packages/' in file or file.startswith(os.path.dirname(os.__file__) + os.sep)
    return file if space.get('__file__') and not is_installed else ''


def own_modules(space):
    """The globals of the program's own modules: this one, and those in its folder and in the program's or below.
    Of an installed package it is this one alone: names mean other things elsewhere."""
    spaces = [vars(module) for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)]
    files = [own_file(space), own_file(vars(sys.modules['__main__']))]
    folders = tuple(os.path.dirname(file) + os.sep for file in files if file)
    yield space
    if own_file(space):
        yield from (other for other in spaces if other is not space and own_file(other).startswith(folders))


class Flow:
    """One value on its way through a function, and through what it is kept in."""

    def __init__(self, code, size, is_floating, space, followed=None):
        self.code, self.size, self.is_floating, self.space = code, size, is_floating, space
        self.listing = instructions_of(code)
        self.followed = set() if followed is None else followed
        self.unclear = DECIDES if size in COUNT_BYTES and not is_floating else KEPT
        self.returned = self.is_wrapped = False

    def index_of(self, offset):
        """Of the instruction there; what follows it may be its cache. Python 3.11 calls some functions as early as
        in PRECALL, once it has done so some times."""
        at = max(sum(found.offset <= offset for found in self.listing) - 1, 0)
        return at + (self.listing[at].opname == 'PRECALL')

    def target_of(self, jump):
        offset = jump.argval
        return next((i for i, found in enumerate(self.listing) if found.offset >= offset), 0)

    def makes_text(self, at):
        """Does the instruction there leave a text, as far as that is seen?"""
        instruction = self.listing[at]
        if is_call(instruction):
            return callee(self.listing, at) in SHOWS
        is_constant = instruction.opname == 'LOAD_CONST' and isinstance(instruction.argval, str)
        return is_constant or instruction.opname.startswith(('FORMAT_', 'BUILD_STRING')) or self.formats(at)

    def adds_text(self, at):
        """Is a text added there to a variable, which is one then?"""
        added = self.listing[at - 1]
        return (sets_variable(self.listing[at]) and self.makes_text(at - 2) and
                (added.opname == 'INPLACE_ADD' or added.argrepr == '+='))

    def way(self, at):
        """What goes on from there as long as texts are made and shown, and the instruction behind that: of each how deep
        the stack is before it, and whether something has been shown."""
        seen, depth, has_shown = {}, 0, False
        while at < len(self.listing) and at not in seen:
            seen[at] = depth, has_shown
            instruction = self.listing[at]
            if instruction.opname.startswith('JUMP_') and '_IF_' not in instruction.opname:
                at = self.target_of(instruction)
                continue
            if is_call(instruction):
                called = callee(self.listing, at)
                has_shown |= called in SHOWS
                if called not in SHOWS_WITH:
                    break
            elif self.adds_text(at):
                has_shown = True
            elif not instruction.opname.startswith(OF_TEXTS):
                break
            depth += effect_of(instruction)
            at += 1
        return seen

    def returns_nothing(self, at):
        instruction, before = self.listing[at], self.listing[at - 1]
        constant = before if instruction.opname == 'RETURN_VALUE' else instruction
        return constant.opname in ('LOAD_CONST', 'RETURN_CONST') and constant.argval is None

    def decides_of_texts(self, at):
        """Does the test there decide of nothing but what is shown: do both ways come to the same place, or return?"""
        at += self.listing[at].opname == 'TO_BOOL'
        jump = self.listing[at]
        if not jump.opname.startswith('POP_JUMP_'):
            return False
        passed, jumped = self.way(at + 1), self.way(self.target_of(jump))
        meet = next((place for place in passed if place in jumped), None)
        if meet is not None:
            return passed[meet][0] == jumped[meet][0] == 0 and (passed[meet][1] or jumped[meet][1])
        ends = list(passed)[-1], list(jumped)[-1]
        return all(map(self.returns_nothing, ends)) and (passed[ends[0]][1] or jumped[ends[1]][1])

    def test(self, at):
        """The use at a test of the value's truth."""
        if self.decides_of_texts(at):
            return SHOWN, -1
        if_finite = self.truth_if_finite(at)
        if if_finite >= 0:
            return FINITE, if_finite
        answer = self.answer(at)
        return CHECKED if answer >= 0 else DECIDES, answer

    def truth_if_finite(self, at):
        """Of the expression that is tested there, where it asks of numbers only whether they are finite; else -1."""
        called, turned, wanted = set(), 0, 1
        while at > 0 and wanted > 0:
            at -= 1
            instruction = self.listing[at]
            name = instruction.opname
            wanted -= effect_of(instruction)
            if is_call(instruction):
                called.add(callee(self.listing, at))
            elif name == 'UNARY_INVERT':
                turned = 1
            elif not (name.startswith(('LOAD_', 'PUSH_', 'PRECALL', 'KW_NAMES')) or name == 'BINARY_OR' or
                      name == 'BINARY_OP' and instruction.argrepr == '|'):
                return -1
        called -= {'any', 'all', 'item', 'bool'}
        if called == {'isfinite'}:
            return 1 - turned
        return 0 if called and called <= CHECKS - {'isfinite'} and not turned else -1

    def answer(self, at):
        """The truth value at a test whose other side raises, or -1."""
        if self.listing[at].opname == 'TO_BOOL':
            at += 1
        negated = self.listing[at].opname == 'UNARY_NOT'
        at += negated
        if at >= len(self.listing) or not is_test(self.listing[at]):
            return -1
        jump = self.listing[at]
        if_true = 'IF_TRUE' in jump.opname
        target = self.target_of(jump)
        raises = self.raises(at + 1), self.raises(target)
        return -1 if raises[0] == raises[1] else int((raises[0] == if_true) != negated)  # to go on is to jump, or not

    def raises(self, at):
        """Does code end in an exception, without any other way?"""
        for instruction in self.listing[at:at + 400]:
            name = instruction.opname
            if name == 'RAISE_VARARGS':
                return True
            if name.startswith('RETURN') or 'JUMP' in name or name in ('FOR_ITER', 'RERAISE'):
                return False
        return False

    def is_about_another(self, at, key):
        """Is what follows the load of a container not about the value in it: about whether it is empty, what it
        has, or another entry than `key`?"""
        after = [(operator_of(i), i.argval) for i in self.listing[at + 1:at + 3]] + [('', None)] * 2
        if is_test(self.listing[at + 1]) or after[0][0] == 'CONTAINS_OP':
            return True
        return (isinstance(key, str) and after[0][0] == 'LOAD_CONST' and 'BINARY' in after[1][0] and
                after[0][1] != key)

    def is_of_module(self, at):
        """Is the attribute loaded there a module's, as in torch.sum?"""
        return isinstance(self.space.get(str(self.listing[at - 1].argval)), types.ModuleType)

    def uses(self, name, is_container, key, loads):
        """All uses of a variable, an attribute or a global in this function: of what `loads` the name."""
        found = [(SHOWN, -1)]
        for at, instruction in enumerate(self.listing):
            names = instruction.argval
            if not loads(instruction) or loads is loads_attribute and self.is_of_module(at):
                continue
            if names != name and not (isinstance(names, tuple) and name in names):
                continue
            if is_container and self.is_about_another(at, key):
                continue
            above = len(names) - 1 - names.index(name) if isinstance(names, tuple) else 0
            found.append(self.after(at + 1, above))
        return max(found)

    def of_name(self, name, is_container=False, key=None):
        """All uses of a variable in this function."""
        if (self.code, name, key) in self.followed:
            return SHOWN, -1
        self.followed.add((self.code, name, key))
        return self.uses(name, is_container, key, loads_variable)

    def of_kept(self, name, loads, is_container=False, key=None):
        """All uses of an attribute or a global in the program's modules."""
        found = [(KEPT, -1)]
        if (name, key) in self.followed or self.size > MOST_KEPT_BYTES:
            return found[0]
        self.followed.add((name, key))
        for space in own_modules(self.space):
            for code in {code for code in codes_of(space) if name in code.co_names}:
                flow = Flow(code, self.size, self.is_floating, space, self.followed)
                found.append(flow.uses(name, is_container, key, loads))
        return max(found)

    def of_container(self, at, key=None):
        """All uses of the list or dictionary loaded there, which keeps the value."""
        if at < 0 or not self.listing[at].opname.startswith('LOAD_') or not isinstance(self.listing[at].argval, str):
            return KEPT, -1
        if self.listing[at].opname in ('LOAD_ATTR', 'LOAD_GLOBAL', 'LOAD_NAME'):
            loads = loads_attribute if self.listing[at].opname == 'LOAD_ATTR' else loads_global
            return self.of_kept(self.listing[at].argval, loads, True, key)
        return max((KEPT, -1), self.of_name(self.listing[at].argval, True, key))

    def loaded(self, at, depth):
        """Where it was put on the stack what lies `depth` values below the top before instruction `at`, if
        that is one instruction; else -1."""
        while at > 0:
            at -= 1
            name = self.listing[at].opname
            if name in ('PRECALL', 'KW_NAMES', 'PUSH_NULL'):
                continue
            if depth == 0:
                return at
            depth -= effect_of(self.listing[at])
        return -1

    def formats(self, at):
        """Is it the operator % of a text that stands there?"""
        is_modulo = self.listing[at].opname == 'BINARY_MODULO' or self.listing[at].argrepr.startswith('%')
        text = self.listing[self.loaded(at, 1)]
        return is_modulo and text.opname == 'LOAD_CONST' and isinstance(text.argval, str)

    def names_given(self, at):
        """The names of the last arguments of the call there, which have any."""
        before = self.listing[at - 1]
        if self.listing[at].opname in ('CALL_KW', 'CALL_FUNCTION_KW'):  # they lie on the stack
            return before.argval
        if before.opname == 'PRECALL':
            before = self.listing[at - 2]
        return self.code.co_consts[before.arg] if before.opname == 'KW_NAMES' else ()

    def place_given(self, at, above):
        """Which argument of the call there it is: its place, or its name."""
        given, names = self.listing[at].arg or 0, self.names_given(at)
        above -= self.listing[at].opname in ('CALL_KW', 'CALL_FUNCTION_KW')
        place = given - 1 - above
        return place if place < given - len(names) else names[place - given + len(names)]

    def says_least(self, at):
        """Does the call of torch.bincount there say how many bins there are at least?"""
        names = self.names_given(at)
        return 'minlength' in names or (self.listing[at].arg or 0) - len(names) > 2

    def given_to(self, called, place):
        """The uses in the program's own functions of that name, and whether one of them gives it back; None: there
        is none that takes it."""
        found, returned = [], False
        for space in own_modules(self.space):
            for code in {code for code in codes_of(space) if code.co_name == called}:
                is_method = code.co_varnames[:1] in (('self',), ('cls',))
                names = code.co_varnames[is_method:code.co_argcount + code.co_kwonlyargcount]
                if isinstance(place, int):
                    name = names[place] if place < code.co_argcount - is_method else None
                else:
                    name = place if place in names else None
                if name is None:
                    continue
                flow = Flow(code, self.size, self.is_floating, space, self.followed)
                flow.unclear = self.unclear
                found.append(flow.of_name(name))
                returned |= flow.returned
        return (max(found), returned) if found else None

    def after_call(self, at, above, called):
        """Of what a call is given that is none of those known by name."""
        is_known = self.listing[at].opname != 'CALL_FUNCTION_EX' and called
        if not is_known or self.is_wrapped and called in OF_CONTAINERS:
            return self.unclear, -1
        given = self.given_to(called, self.place_given(at, above))
        if given is None:
            return self.unclear, -1
        return max(given[0], self.after(at + 1)) if given[1] else given[0]

    def note_divisor(self, at, above):
        instruction = self.listing[at]
        divides = 'DIVIDE' in instruction.opname or instruction.argrepr in ('/', '//', '/=', '//=')
        is_given = is_call(instruction) and above < (instruction.arg or 0)
        if above == 0 and divides or is_given and callee(self.listing, at) in NOT_OF_ZERO:
            self.followed.add(DIVISOR)

    def consumed(self, at, above):
        """By an instruction that leaves one value: the use, or None if that one goes on."""
        instruction = self.listing[at]
        name = operator_of(instruction)
        self.note_divisor(at, above)
        if name in ('COMPARE_OP', 'CONTAINS_OP') or 'SLICE' in name:
            return SHOWN if is_test(self.listing[at + 1]) and self.decides_of_texts(at + 1) else DECIDES, -1
        if name in ('IS_OP', 'BUILD_STRING') or name.startswith(('FORMAT_', 'CONVERT_')) or above == 0 and self.formats(at):
            return SHOWN, -1
        if name == 'BINARY_SUBSCR' and above == 0:
            return DECIDES, -1
        if not is_call(instruction):
            self.is_wrapped |= name.startswith('BUILD_')
            return None
        called = callee(self.listing, at)
        if called in SHOWS:
            return SHOWN, -1
        if called in CHECKS:
            return FINITE, -1
        if above >= (instruction.arg or 0):
            return (SHOWN, -1) if called in ASIDE else None  # a method of it
        if called in SIZES:
            return DECIDES, -1
        if called in KEEPS and self.unclear == KEPT:
            return self.of_container(callee_at(self.listing, at) - 1)
        return None if called in PASSES else self.after_call(at, above, called)

    def after(self, at, above=0):
        """The value lies below `above` others on the stack before instruction `at`."""
        while at < len(self.listing):
            instruction = self.listing[at]
            name = instruction.opname
            if above == 0 and is_test(instruction):
                return self.test(at)
            if above == 0 and 'NONE' in name:
                return SHOWN, -1
            if above == 0 and name.startswith('RETURN'):
                self.returned = True
                return SHOWN, -1
            if above == 0 and (name == 'POP_TOP' or name == 'LOAD_ATTR' and instruction.argval in ASIDE):
                return SHOWN, -1
            if (name, above) in (('STORE_GLOBAL', 0), ('STORE_ATTR', 1)):
                return self.of_kept(instruction.argval, loads_global if above == 0 else loads_attribute)
            if (name, above) == ('STORE_SUBSCR', 2):
                key = self.listing[self.loaded(at, 0)]
                return self.of_container(self.loaded(at, 1), key.argval if key.opname == 'LOAD_CONST' else None)
            if above == 0 and sets_variable(instruction):
                names = instruction.argval
                return self.of_name(names[0] if isinstance(names, tuple) else names)
            if name.startswith('STORE_') and above <= 2 and name in ('STORE_ATTR', 'STORE_SUBSCR'):
                return (KEPT, -1)
            if name == 'JUMP_FORWARD':
                at = self.target_of(instruction)
                continue
            if name in ('ROT_TWO', 'SWAP'):
                lower = 1 if name == 'ROT_TWO' else instruction.arg - 1
                above = {0: lower, lower: 0}.get(above, above)
                at += 1
                continue
            if name.startswith(('ROT', 'JUMP', 'UNPACK', 'YIELD', 'GET_ITER', 'FOR_ITER')):
                return self.unclear, -1
            if name in ('PRECALL', 'KW_NAMES'):
                at += 1
                continue
            leaves_more = effect_of(instruction) > 0 or name.startswith(('LOAD_', 'PUSH'))
            taken = 0 if leaves_more else pops(instruction)
            if not leaves_more and taken > above:
                use = self.consumed(at, above)
                if use is not None:
                    return use
                above = 0
            else:
                above += effect_of(instruction) if leaves_more else 1 - taken
            at += 1
        return self.unclear, -1

    def waiting(self, offset):
        """The use at the instruction that waits for the value."""
        at = self.index_of(offset)
        instruction = self.listing[at]
        name = instruction.opname
        if is_test(instruction):
            return self.test(at)
        if name.startswith(('FORMAT_', 'CONVERT_')):
            return SHOWN, -1
        if name == 'BINARY_OP' and instruction.argrepr.startswith('%') or name == 'BINARY_MODULO':
            return SHOWN, -1
        if is_call(instruction):
            called = callee(self.listing, at)
            self.note_divisor(at, 0)
            if called in SHOWS:
                return SHOWN, -1
            if self.size == 1 and called in OPERATORS_THAT_CHECK:
                return CHECKED, OPERATORS_THAT_CHECK[called]
            if self.size == 8 and called in OPERATORS_THAT_SEED:
                return KEPT, -1
            if called == 'bincount' and self.says_least(at):
                return BELOW, -1
            if called == 'tolist' and not self.is_floating:
                self.unclear = DECIDES  # lengths, or what belongs to which
            if called in READS or not called:
                return self.after(at + 1)
        return DECIDES if self.size <= max(COUNT_BYTES) else KEPT, -1


def is_torch(frame):
    name = frame.f_code.co_filename
    return '/torch/' in name and '-packages/' in name or name.startswith('<')


def use_by_file(frame):
    return next((BY_FILE[part] for part in BY_FILE if part in frame.f_code.co_filename), None)


told = {}  # of code, an instruction in it, and what was read: use, answer, and whether the value is returned


def waiting_frame(frame):
    """The frame whose instruction waits. What operators go through (a mode such as FlopCounterMode) stands between: it
    passes the value on."""
    while frame.f_back and (frame.f_code.co_name == '__torch_dispatch__' or
                            frame.f_code.co_filename.endswith(OF_OPERATORS)):
        frame = frame.f_back
    return frame


def use_in(frame, size, is_floating, waits):
    key = frame.f_code, frame.f_lasti, size, is_floating, waits
    if key not in told:
        flow = Flow(frame.f_code, size, is_floating, frame.f_globals)
        use, answer = flow.waiting(frame.f_lasti) if waits else flow.after(flow.index_of(frame.f_lasti) + 1)
        told[key] = use, 1 if DIVISOR in flow.followed and answer < 0 else answer, flow.returned
    return told[key]


def use_of(frame, size, is_floating):
    gc_was_on = gc.isenabled()
    gc.disable()  # what the program holds must not change
    try:
        inner = place = waiting_frame(frame)
        use = use_by_file(place)
        while place.f_back and is_torch(place):
            place = place.f_back
            use = use_by_file(place) if use is None else use
        use, answer, returned = use_in(inner, size, is_floating, True) if use is None else (use, -1, False)
        while returned and use == SHOWN and inner.f_back:
            inner, inside = inner.f_back, answer
            use, answer, returned = use_in(inner, size, is_floating, False)
            answer = inside if answer < 0 else answer
        name = place.f_code.co_filename.split('-packages/')[-1]
        return name, place.f_lineno or 0, use, answer
    finally:
        if gc_was_on:
            gc.enable()
