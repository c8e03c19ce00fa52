"""Cases of generators that run whole jobs, each asked for by its name."""
import sys


def merged(*parts):
    """One case of several dictionaries, in which later ones win"""
    return {key: value for part in parts for key, value in part.items()}


def by_name(made):
    """Cases by their names; made: (words of the name, of which those that are false are left out, case)"""
    known = {}
    for words, case in made:
        name = '/'.join(filter(None, words))
        if name in known:
            sys.exit(f'two cases are called {name}')
        known[name] = {'id': name, **case}
    return known
