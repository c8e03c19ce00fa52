"""Tells plimsoll, while it records a program, how many bytes the kernels move that torch.compile makes.

An address tells which tensor a kernel was given, not how much of it it touches: a gather takes one number of each row, a
softmax of long rows reads them twice. TorchInductor writes its kernels in Python, which says it: each tl.load() and
tl.store() has an index, made of coordinates of the iteration space (`x0 = xindex % 768`), whose ranges follow from the
space's size. What is not understood is left to the addresses.
"""
import ast
import ctypes
import importlib.util
import re
import sys
import weakref

# A row that is read again comes from memory where it has more bytes than this: the multiprocessors of a GPU hold some
# rows each, and together more than its cache (PyTorch's softmax has the same limit: SoftMax.cu).
ROW_BYTES = 48 << 10
ROOT = re.compile(r'^(x|y|z|r\d*_?)index$')
POINTER = re.compile(r'^(in_out|in|out|ws)_ptr\d*$')
PROGRAMS = 1 << 40  # of a launch, how many is not known: what each has a part of counts as a whole


class Unknown(Exception):
    """A kernel that does otherwise."""


class Atom:
    """(root // divisor) % modulus of one axis of the iteration space, which has `numel` elements; modulus 0: none."""

    def __init__(self, root, numel, divisor=1, modulus=0):
        self.root, self.numel, self.divisor, self.modulus = root, numel, divisor, modulus
        self.key = root, numel, divisor, modulus

    def range(self):
        elements = -(-self.numel // self.divisor)
        return max(1, min(elements, self.modulus) if self.modulus else elements)

    def over(self, number):
        return Atom(self.root, self.numel, self.divisor * number, -(-self.modulus // number) if self.modulus else 0)

    def modulo(self, number):
        return Atom(self.root, self.numel, self.divisor, min(self.modulus, number) if self.modulus else number)


def count(atoms, roots=''):
    """How many elements an index has that is made of these, over the axes that begin with `roots`."""
    product = {}
    for root, numel, divisor, modulus in {atom.key for atom in atoms if atom.root.startswith(roots)}:
        so_far = product.get(root, (1, numel))[0]
        product[root] = min(numel, so_far * Atom(root, numel, divisor, modulus).range()), numel
    elements = 1
    for of_root, _ in product.values():
        elements *= of_root
    return elements


class Kernel:
    """What one kernel loads and stores, walked through in its order. `numbers`: its arguments that are numbers."""

    def __init__(self, function, numbers):
        self.values = dict(numbers)  # names: numbers, or lists of atoms
        self.loop = 0
        self.accesses = {}  # (pointer, is it stored, index): atoms, the loops that it is in, how often at once
        self.walk(function.body)

    # --- statements -------------------------------------------------------------------------------

    def walk(self, body):
        for statement in body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                self.assign(statement)
            elif isinstance(statement, ast.AugAssign):
                self.values[statement.target.id] = self.atoms(statement.value) + self.atoms(statement.target)
            elif isinstance(statement, ast.For):
                self.loop += 1
                self.walk(statement.body)
                self.loop += 1
            elif isinstance(statement, ast.If):
                self.atoms(statement.test)
                self.walk(statement.body)
                self.walk(statement.orelse)
            elif isinstance(statement, ast.Expr):
                self.value(statement.value)
            elif not isinstance(statement, (ast.Pass, ast.Assert)):
                raise Unknown(type(statement).__name__)

    def assign(self, statement):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        value = self.value(statement.value)
        for target in targets:
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                if not isinstance(name, ast.Name):
                    raise Unknown('a target')
                self.values[name.id] = self.axis(name.id) or value

    def axis(self, name):
        """The first coordinate of an axis; None: it is another value. `rindex` may be another name of it."""
        root = ROOT.match(name)
        numel = self.values.get(f'{root.group(1)}numel') if root else None
        if not root or name == 'rindex' and 'r0_index' in self.values:
            return None
        if not isinstance(numel, int):
            raise Unknown(f'the size of {name}')
        return [Atom(root.group(1), numel)]

    # --- expressions ------------------------------------------------------------------------------

    def atoms(self, node):
        value = self.value(node)
        return value if isinstance(value, list) else []

    def value(self, node):
        """A number, or the atoms that it is made of."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, (int, float)) else []
        if isinstance(node, ast.Name):
            return self.values.get(node.id, [])
        if isinstance(node, ast.BinOp):
            return self.operation(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            value = self.value(node.operand)
            return -value if isinstance(node.op, ast.USub) and not isinstance(value, list) else value
        if isinstance(node, ast.Call):
            return self.call(node)
        return [atom for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
                for atom in self.atoms(child)]

    @staticmethod
    def operation(operator, left, right):
        if not isinstance(left, list) and not isinstance(right, list):
            operations = {ast.Add: lambda: left + right, ast.Sub: lambda: left - right, ast.Mult: lambda: left * right,
                          ast.FloorDiv: lambda: left // right, ast.Mod: lambda: left % right,
                          ast.Div: lambda: left / right}
            return operations[type(operator)]() if type(operator) in operations and right else []
        if isinstance(right, int) and isinstance(left, list) and len(left) == 1 and right > 0:
            if isinstance(operator, ast.FloorDiv):
                return [left[0].over(right)]
            if isinstance(operator, ast.Mod):
                return [left[0].modulo(right)]
        return (left if isinstance(left, list) else []) + (right if isinstance(right, list) else [])

    def call(self, node):
        name = ast.unparse(node.func)
        if name == 'tl.program_id':
            return [Atom('program', PROGRAMS)]
        if name in ('tl.load', 'tl.store') or name.startswith('tl.atomic_'):
            atoms = self.access(node, name)
            for argument in node.args[1:]:
                self.atoms(argument)
            return atoms
        atoms = self.atoms(node.func.value) if isinstance(node.func, ast.Attribute) else []
        for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
            atoms = atoms + self.atoms(argument)
        return atoms

    def access(self, node, name):
        pointers = {part.id for part in ast.walk(node.args[0])
                    if isinstance(part, ast.Name) and POINTER.match(part.id)}
        if len(pointers) != 1:
            raise Unknown('a pointer')
        atoms = self.atoms(node.args[0])
        for is_store in {'tl.load': [False], 'tl.store': [True]}.get(name, [False, True]):
            key = pointers.copy().pop(), is_store, ast.unparse(node.args[0])
            self.accesses.setdefault(key, (atoms, set()))[1].add(self.loop)
        return atoms

    # --- bytes ------------------------------------------------------------------------------------

    def moved_bytes(self, tensors):
        """`tensors`: of each pointer, the bytes of an element and of all that lies behind it."""
        moved = {}
        for (pointer, is_store, _), (atoms, loops) in self.accesses.items():
            element_bytes, _ = tensors[pointer]
            passes = len(loops) if count(atoms, 'r') * element_bytes > ROW_BYTES else 1
            number, most = moved.get((pointer, is_store), (0, 1))
            moved[pointer, is_store] = number + passes * count(atoms) * element_bytes, max(most, passes)
        return sum(min(number, passes * tensors[pointer][1]) for (pointer, _), (number, passes) in moved.items())


def function_of(source):
    """The kernel in a file of TorchInductor's, behind functions that help it."""
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.FunctionDef) and any('jit' in ast.unparse(d) for d in node.decorator_list):
            return node
    raise Unknown('no kernel')


# --- telling --------------------------------------------------------------------------------------

class Told:
    """What is told of one kernel, by the numbers and tensors that it is given."""

    def __init__(self, kernel):
        self.name, self.function, self.bytes = None, None, {}
        try:
            self.name = kernel.fn.__name__.encode()
            with open(kernel.filename, encoding='utf-8') as file:
                function = function_of(file.read())
            self.names = [argument.arg for argument in function.args.args]
            self.function = function
        except Exception:  # of whatever another version lacks: the program goes on, and its tensors count as wholes
            pass

    def bytes_of(self, arguments):
        """0: not known."""
        numbers = {name: value for name, value in zip(self.names, arguments) if isinstance(value, int)}
        tensors = {name: value for name, value in zip(self.names, arguments) if hasattr(value, 'untyped_storage')}
        key = tuple(numbers.values()), tuple(tensor.untyped_storage().nbytes() for tensor in tensors.values())
        if key not in self.bytes:
            try:
                self.bytes[key] = Kernel(self.function, numbers).moved_bytes(
                    {name: (tensor.element_size(), tensor.untyped_storage().nbytes())
                     for name, tensor in tensors.items()})
            except Exception:  # as above
                self.bytes[key] = 0
        return self.bytes[key]


def watch_kernels(library, heuristics):
    """`heuristics`: TorchInductor's module that launches kernels."""
    launch = heuristics.CachingAutotuner.run
    tell, all_told = library.plimsoll_kernel_moves, weakref.WeakKeyDictionary()

    def launch_and_tell(kernel, *arguments, **keywords):
        told = all_told.get(kernel)
        if told is None:
            told = all_told[kernel] = Told(kernel)
        if told.function is None:
            return launch(kernel, *arguments, **keywords)
        tell(told.name, ctypes.c_int64(told.bytes_of(arguments)))
        try:
            return launch(kernel, *arguments, **keywords)
        finally:
            tell(None, ctypes.c_int64(0))

    heuristics.CachingAutotuner.run = launch_and_tell


class AfterImport:
    """Hands a module over as soon as the program has imported it."""

    def __init__(self, name, then):
        self.name, self.then = name, then
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec and spec.loader:
            execute = spec.loader.exec_module

            def execute_and_hand_over(module):
                execute(module)
                self.then(module)

            spec.loader.exec_module = execute_and_hand_over
        return spec


def register(library):
    is_recording = getattr(library, 'plimsoll_is_recording', None)
    if is_recording and is_recording():
        AfterImport('torch._inductor.runtime.triton_heuristics', lambda module: watch_kernels(library, module))
