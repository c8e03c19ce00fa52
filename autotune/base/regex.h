/* Python's regular expressions (re), restricted to re.fullmatch() of a short ASCII text: literals, sets, groups,
 * alternatives, repetition, anchors, lookahead and lookbehind. Positions of matches are not reported, so greediness
 * makes no difference, and matching takes polynomial time. Other syntax is refused: named groups and references to
 * groups, flags, atomic groups, possessive repetition, and escaped letters that are not character classes. */
#ifndef PLIM_BASE_REGEX_H
#define PLIM_BASE_REGEX_H

#include <stdbool.h>

enum { PLIM_REGEX_TEXT = 255 }; /* the longest text that is matched */

/* Returns NULL if `pattern` is supported and means the same as in Python; otherwise the reason in a few words. */
const char *plim_regex_refuses(const char *pattern);

/* As re.fullmatch(). Returns false if the pattern is refused, or the text is longer than PLIM_REGEX_TEXT. */
bool plim_regex_matches(const char *pattern, const char *text);

#endif
