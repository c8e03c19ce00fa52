#!/usr/bin/env python3
"""Asks Python's re what random patterns match and writes regex.tsv beside this file: a pattern, a text, and 1 or 0 for
re.fullmatch(), or E where re has no such pattern, tab-separated.

    python make_regex.py
"""
import os
import random
import re
import signal
import warnings

warnings.simplefilter('ignore')
TEXTS = ['model.layers.3.self_attn.q_proj', 'model.layers.12.mlp.down_proj', 'model.layers.0.mlp', 'lm_head',
         'transformer.h.0.attn.c_attn', 'a', 'ab', 'aab', 'abb', 'ba', 'a.b', '0', 'aa', '.', '{', 'a{2', 'b-a', ']']
ESCAPED = ['.', 'd', 'w', 'W', 'D', 's', 'S', 'b', 'B', 'A', 'Z', '-', '_', 'n', '1', 'p', '{', ']']
PARTS = ['model', 'layers', 'proj', 'self_attn', '.*', r'\.\d+\.', '.+', 'q_proj', 'lm_head', 'mlp', '(q|v)_proj']
ITEMS = ['a', 'b', '0-9', 'a-z', r'\d', r'\w', '.', '-', ']', '[', '^', r'\]', 'z-a', r'\b', '_']
REPEATED = [''] * 9 + ['*', '+', '?', '*?', '+?', '??', '{2}', '{,2}', '{1,}', '{1,2}', '{2,1}', '{,}', '{}', '{a}', '*+', '**',
                       '{2}?', '{0}', '{3}{2}', '{2']


def atom(depth):
    chance = random.random()
    if chance < .35:
        return random.choice('ab.0_{}]-^$')
    if chance < .5:
        return '\\' + random.choice(ESCAPED)
    if chance < .62:
        items = ''.join(random.choice(ITEMS) for _ in range(random.randint(0, 3)))
        return '[' + random.choice(['', '^']) + items + random.choice([']', ']', ']', ''])
    if chance < .8 or depth > 3:
        return random.choice(PARTS)
    opened = random.choice(['(', '(', '(?:', '(?=', '(?!', '(?<=', '(?<!', '(?P<n>', '(?i:', '(?>', '(?#'])
    return opened + alternatives(depth + 1) + random.choice([')'] * 7 + [''])


def alternatives(depth):
    return '|'.join(''.join(atom(depth) + random.choice(REPEATED) for _ in range(random.randint(0, 4)))
                    for _ in range(random.choice([1, 1, 1, 2, 3])))


def stop(*_):
    raise TimeoutError


def asked(pattern, text):
    signal.setitimer(signal.ITIMER_REAL, .5)
    try:
        return '1' if re.fullmatch(pattern, text) else '0'
    except (re.error, OverflowError):
        return 'E'
    except TimeoutError:
        return ''
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    random.seed(1)
    signal.signal(signal.SIGALRM, stop)
    kept = {'1': 700, '0': 900, 'E': 400}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'regex.tsv'), 'w') as file:
        while any(kept.values()):
            pattern, text = alternatives(0), random.choice(TEXTS)
            answer = asked(pattern, text)
            if kept.get(answer):
                kept[answer] -= 1
                file.write(f'{pattern}\t{text}\t{answer}\n')


if __name__ == '__main__':
    main()
