"""Circles of C files: headers that include one another, and files that call one another, in a loop.

A header that several files share does not hide that they call one another. What a table or a pointer
calls is no call here: a file may well know by name what answers an interface of its own.
"""
import os
import re

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# A function's head begins at the start of a line, and its body with "{" at the start of one.
DEFINED = re.compile(r'^(static )?[a-z][\w \*\n]*?\b(\w+)\([^;{}]*\)\n\{', re.M)
CALLED = re.compile(r'(?<![\w.>])([a-z]\w*)\(')


def included(path, text, paths):
    for name in INCLUDE.findall(text):
        beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
        if beside in paths or name in paths:
            yield beside if beside in paths else name


def needs(texts):
    """file -> the files it needs: headers the headers they include, sources those whose functions they
    call. `texts`: path -> text of every .c and .h."""
    found = {path: set(included(path, text, texts)) for path, text in texts.items() if path.endswith('.h')}
    code = {path: NOISE.sub(' ', text) for path, text in texts.items() if path.endswith('.c')}
    own, homes = {}, {}
    for path, text in code.items():
        heads = DEFINED.findall(text)
        own[path] = {name for _, name in heads}
        for static, name in heads:
            if not static:
                homes.setdefault(name, set()).add(path)
    for path, text in code.items():
        called = set(CALLED.findall(text)) - own[path]
        found[path] = {home for name in called if len(homes.get(name, ())) == 1 for home in homes[name]}
    return found


def circles(needed):
    """Lists of files that need one another in a loop (strongly connected, by Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(needed[name]):
            if other not in index:
                visit(other)
            if other in stack:
                low[name] = min(low[name], low[other])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(needed):
        if name not in index:
            visit(name)
    return found
