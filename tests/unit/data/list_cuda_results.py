#!/usr/bin/env python3
"""Lists the results of <cuda.h>: list_cuda_results.py CUDA.H OUTPUT.inc

Rows {VALUE, "NAME", whether its comment says that the process must be terminated}, for
test_cuda_results.c.
"""
import re
import sys


def rows(text):
    end = text.index('} CUresult;')
    body = text[text.rindex('typedef enum', 0, end):end]
    for comment, name, value in re.findall(r'/\*\*(.*?)\*/\s*(CUDA_\w+)\s*=\s*(\d+)', body, re.S):
        words = ' '.join(comment.replace('*', ' ').split())
        ends = 'must be terminated and relaunched' in words
        yield f'    {{(CUresult){value}, "{name}", {str(ends).lower()}}},\n'


def main(arguments):
    if len(arguments) != 2:
        sys.exit('usage: list_cuda_results.py CUDA.H OUTPUT.inc')
    with open(arguments[0], encoding='utf-8') as file:
        text = file.read()
    with open(arguments[1], 'w', encoding='ascii') as file:
        file.writelines(rows(text))


if __name__ == '__main__':
    main(sys.argv[1:])
