/* Python's regular expressions (re), as far as a fullmatch of a short ASCII text needs them: literals, sets, groups,
 * alternatives, repetition, anchors, lookahead and lookbehind. Positions of matches are not reported, so greediness
 * makes no difference, and matching takes at most polynomial time. Syntax that is not supported is refused: named
 * groups and references to groups, flags, atomic groups, possessive repetition, and escaped letters that are not
 * character classes. */
#ifndef PLIM_BASE_REGEX_H
#define PLIM_BASE_REGEX_H

#include <stdbool.h>

enum { PLIM_REGEX_TEXT = 255 }; /* the longest text that is matched */

/* NULL: `pattern` is supported and means the same as in Python; else why not, in a few words. */
const char *plim_regex_refuses(const char *pattern);

/* re.fullmatch(): false for a pattern that is refused, and for a longer text. */
bool plim_regex_matches(const char *pattern, const char *text);

#endif
