"""One-token faults in C: find(text) lists those of a file's source, in its order.

Comparisons, arithmetic, && and ||, true and false are swapped, numbers made one more and one less,
conditions negated, statements removed. What stands in comments, texts and preprocessor lines is left
alone. The layout of .clang-format is relied on: a binary operator has a blank on both sides.
"""
import re
from collections import namedtuple

# text[start:end] becomes `new`; `function` is where it stands.
Mutant = namedtuple('Mutant', 'start end new line function')

TOKEN = re.compile(r'''
    (?P<comment> /\*.*?\*/ | //[^\n]* ) |
    (?P<directive> ^[ \t]*\#(?:[^\n\\]|\\.)* ) |
    (?P<text> "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' ) |
    (?P<number> (?:0[xX][0-9a-fA-F]+ | \d+\.?\d*(?:[eE][+-]?\d+)?)\w* ) |
    (?P<name> [A-Za-z_]\w* ) |
    (?P<sign> <<= | >>= | -> | \+\+ | -- | << | >> | <= | >= | == | != | && | \|\| | [-+*/%&|^]= | [^\s\w] )
''', re.X | re.M | re.S)
Token = namedtuple('Token', 'kind text start end')

SWAPS = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&',
         '+': '-', '-': '+', '*': '/', '/': '*', '%': '/', '+=': '-=', '-=': '+=', '*=': '/=',
         '/=': '*=', '<<': '>>', '>>': '<<', '&': '|', '|': '&'}
WORDS = {'true': 'false', 'false': 'true'}
HEADS = ('if', 'while', 'for', 'switch')
# What begins a statement that is kept: a declaration, control flow, the end of a function.
KEPT = set('''if else for while do switch case default return goto break struct union enum const static
    int char double float bool void long short signed unsigned size_t extern typedef'''.split())


def tokens(text):
    found = (Token(m.lastgroup, m.group(), m.start(), m.end()) for m in TOKEN.finditer(text))
    return [t for t in found if t.kind not in ('comment', 'directive')]


def matching(all_tokens):
    """The partner of each bracket, by index; both ways."""
    partner, open_ones = {}, []
    for i, token in enumerate(all_tokens):
        if token.text in ('(', '[', '{'):
            open_ones.append(i)
        elif token.text in (')', ']', '}') and open_ones:
            partner[i] = open_ones.pop()
            partner[partner[i]] = i
    return partner


def number_mutants(text):
    found = re.fullmatch(r'(\d+)(\.\d*)?([uUlLfF]*)', text)
    if not found:
        return []
    whole, rest = int(found.group(1)), (found.group(2) or '') + found.group(3)
    return [f'{n}{rest}' for n in (whole + 1, whole - 1) if n >= 0]


def is_block(all_tokens, partner, i):
    """Does the `{` at i hold statements, and no initializer, struct or enum?"""
    before = all_tokens[i - 1].text if i else ''
    if before in ('else', 'do', ';', '{', '}', ':'):
        return True
    if before != ')' or i - 1 not in partner:
        return False
    head = all_tokens[partner[i - 1] - 1]
    return head.text in HEADS or (head.kind == 'name' and head.text not in ('return', 'sizeof'))


def is_declaration(all_tokens, i):
    first, second, third = (all_tokens[k].text if k < len(all_tokens) else '' for k in (i, i + 1, i + 2))
    if first in KEPT or all_tokens[i].kind != 'name':
        return True
    return all_tokens[i + 1].kind == 'name' or (second == '*' and re.match(r'\w', third) is not None)


def removed_statements(all_tokens, partner):
    """(first, last) token of each statement that can be left out."""
    blocks = []  # of each `{` and `(`: does it hold statements?
    for i, token in enumerate(all_tokens):
        if token.text in ('{', '('):
            blocks.append(token.text == '{' and is_block(all_tokens, partner, i))
        elif token.text in ('}', ')') and blocks:
            blocks.pop()
        if not blocks or not all(blocks) or i + 1 >= len(all_tokens):
            continue
        head = all_tokens[partner[i] - 1].text if token.text == ')' and i in partner else ''
        if token.text not in ('{', '}', ';', 'else', 'do') and head not in HEADS:
            continue
        last = end_of_statement(all_tokens, partner, i + 1)
        if last is not None and not is_declaration(all_tokens, i + 1):
            yield i + 1, last


def end_of_statement(all_tokens, partner, i):
    while i < len(all_tokens):
        text = all_tokens[i].text
        if text in ('(', '[', '{'):
            i = partner.get(i, len(all_tokens))
        elif text in (')', '}', ':'):
            return None
        elif text == ';':
            return i
        i += 1
    return None


def in_for_head(all_tokens, partner, i):
    return any(t.text == 'for' and partner.get(k + 1, 0) > i > k + 1 for k, t in enumerate(all_tokens[:i])
               if k + 1 < i)


def is_array_size(all_tokens, i):
    """In `char room[64]`, not in `room[64] = 0`."""
    if all_tokens[i - 1].text != '[' or all_tokens[i + 1].text != ']' or i < 3:
        return False
    return all_tokens[i - 3].kind == 'name' or all_tokens[i - 3].text in ('*', ',')


def token_changes(text, all_tokens, partner):
    for i, token in enumerate(all_tokens):
        spaced = text[token.start - 1:token.start].isspace() and text[token.end:token.end + 1].isspace()
        if token.kind == 'number' and not is_array_size(all_tokens, i):
            for new in number_mutants(token.text):
                yield token.start, token.end, new
        elif token.kind == 'name' and token.text in WORDS:
            yield token.start, token.end, WORDS[token.text]
        elif token.text in SWAPS and spaced:
            yield token.start, token.end, SWAPS[token.text]
        elif token.text in ('++', '--') and not in_for_head(all_tokens, partner, i):
            yield token.start, token.end, {'++': '--', '--': '++'}[token.text]
        elif token.text == '!':
            yield token.start, token.end, ''
        elif token.text in ('if', 'while') and i + 1 in partner:
            begin, end = all_tokens[i + 1].end, all_tokens[partner[i + 1]].start
            yield begin, end, f'!({text[begin:end]})'


def functions(text):
    """(position, name) of each function definition, in order."""
    return [(m.start(), m.group(1)) for m in re.finditer(r'^[A-Za-z_][^\n;=#]*?\b(\w+)\(', text, re.M)]


def find(text):
    all_tokens = tokens(text)
    partner = matching(all_tokens)
    changes = list(token_changes(text, all_tokens, partner))
    changes += [(all_tokens[first].start, all_tokens[last].end, ';')
                for first, last in removed_statements(all_tokens, partner)]
    places, found = functions(text), []
    for start, end, new in sorted(changes):
        function = next((name for position, name in reversed(places) if position <= start), '-')
        found.append(Mutant(start, end, new, text.count('\n', 0, start) + 1, function))
    return found


def apply(text, mutant):
    """The mutated source. Lines keep their numbers."""
    lost = text.count('\n', mutant.start, mutant.end) - mutant.new.count('\n')
    return text[:mutant.start] + mutant.new + '\n' * lost + text[mutant.end:]


def shown(text, mutant):
    """The lines that it touches, before and after, each on one line."""
    first = text.rfind('\n', 0, mutant.start) + 1
    last = text.find('\n', mutant.end)
    last = len(text) if last < 0 else last
    after = text[first:mutant.start] + mutant.new + text[mutant.end:last]
    return ' '.join(text[first:last].split()), ' '.join(after.split())
