/* Python's regular expressions (re), as far as a fullmatch of a short text in ASCII needs them: literals, sets, groups,
 * alternatives, repetition, anchors, looking ahead and behind. What is matched where is not told, so greed makes no
 * difference, and matching takes no more than polynomial time. What Python would read otherwise is refused: names
 * of groups and references to them, flags, atomic groups and possessive repetition, letters behind a backslash that are
 * none of its classes. */
#ifndef PLIM_BASE_REGEX_H
#define PLIM_BASE_REGEX_H

#include <stdbool.h>

enum { PLIM_REGEX_TEXT = 255 }; /* the longest text that is matched */

/* NULL: `pattern` is read as Python reads it; else why not, in a few words. */
const char *plim_regex_refuses(const char *pattern);

/* re.fullmatch(): false for a pattern that is refused, and for a longer text. */
bool plim_regex_matches(const char *pattern, const char *text);

#endif
