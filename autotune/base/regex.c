/* A pattern maps a set of positions in the text, at which a match may start, to the set at which it may end. It is
 * evaluated while it is parsed; repeated parts are parsed again. */
#include "regex.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Limits: DEEPEST of nested groups, MOST_LOOPS of nested repetitions, MOST_TIMES of the count of a repetition. */
enum { DEEPEST = 32, MOST_LOOPS = 3, MOST_TIMES = 255, ENDLESS = -1 };

/* A set of positions. */
struct places { uint64_t bits[(PLIM_REGEX_TEXT + 64) / 64]; };

struct matcher {
    const char *at;   /* in the pattern */
    const char *text;
    size_t length;
    int depth, loops;
    const char *refused; /* the reason; NULL: the pattern is not refused */
};

static void follow_alternatives(struct matcher *m, const struct places *in, struct places *out);

static bool has(const struct places *p, size_t i)
{
    return p->bits[i / 64] >> i % 64 & 1;
}

static void add(struct places *p, size_t i)
{
    p->bits[i / 64] |= UINT64_C(1) << i % 64;
}

static void refuse(struct matcher *m, const char *why)
{
    if (!m->refused) m->refused = why;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_letter(c) || is_digit(c) || c == '_';
}

static bool is_space(char c)
{
    return c && strchr(" \t\n\r\f\v", c);
}

/* Tests `c` against the class of "\d" and the like. Returns false if `letter` names no class. */
static bool in_class(char letter, char c, bool *is_in)
{
    switch (letter) {
    case 'd': case 'D': *is_in = is_digit(c) == (letter == 'd'); return true;
    case 'w': case 'W': *is_in = is_word(c) == (letter == 'w'); return true;
    case 's': case 'S': *is_in = is_space(c) == (letter == 's'); return true;
    default: return false;
    }
}

/* --- characters and sets ---------------------------------------------------------------------- */

/* Reads an item of a set: "\d", "\]" or a character. *low is its code, -1 for a class. True if `c` is in it. */
static bool read_item(struct matcher *m, char c, int *low)
{
    bool is_in = false;
    char first = *m->at ? *m->at++ : '\0';
    *low = (unsigned char)first;
    if (first != '\\') return first == c;
    char escaped = *m->at ? *m->at++ : '\0';
    *low = (unsigned char)escaped;
    if (in_class(escaped, c, &is_in)) {
        *low = -1;
        return is_in;
    }
    if (!escaped || is_letter(escaped) || is_digit(escaped)) refuse(m, "a letter or digit behind a backslash");
    return escaped == c;
}

/* Reads a set, from after its "[" to after its "]". True if `c` is in it. */
static bool read_set(struct matcher *m, char c)
{
    bool is_in = false, negates = *m->at == '^';
    if (negates) m->at++;
    for (bool is_first = true; (*m->at != ']' || is_first) && !m->refused; is_first = false) {
        int low, high;
        if (!*m->at) refuse(m, "a set without an end");
        is_in |= read_item(m, c, &low);
        if (*m->at != '-' || !m->at[1] || m->at[1] == ']') continue;
        m->at++;
        read_item(m, c, &high);
        if (low < 0 || high < low) refuse(m, "a range of a set that is none");
        is_in |= (unsigned char)c >= low && (unsigned char)c <= high;
    }
    if (*m->at) m->at++;
    return is_in != negates;
}

/* Reads a character, class or set of the pattern. True if it matches `c`. */
static bool read_character(struct matcher *m, char c)
{
    int low;
    if (*m->at == '.') return m->at++, c != '\n';
    if (*m->at == '[') return m->at++, read_set(m, c);
    return read_item(m, c, &low);
}

static void follow_character(struct matcher *m, const struct places *in, struct places *out)
{
    const char *begin = m->at;
    for (size_t i = 0; i < m->length; i++) {
        if (!has(in, i)) continue;
        m->at = begin;
        if (read_character(m, m->text[i])) add(out, i + 1);
    }
    m->at = begin;
    read_character(m, '\0');
}

/* --- anchors, lookahead, lookbehind ----------------------------------------------------------- */

static bool is_boundary(const struct matcher *m, size_t i)
{
    bool before = i > 0 && is_word(m->text[i - 1]), behind = i < m->length && is_word(m->text[i]);
    return before != behind;
}

/* True if the pattern continues with an anchor, which has *length characters. */
static bool is_anchor(const struct matcher *m, size_t *length)
{
    bool is_escaped = m->at[0] == '\\' && m->at[1] && strchr("bBAZ", m->at[1]);
    *length = is_escaped ? 2 : 1;
    return is_escaped || *m->at == '^' || *m->at == '$';
}

static void follow_anchor(struct matcher *m, size_t length, const struct places *in, struct places *out)
{
    char kind = m->at[length - 1];
    for (size_t i = 0; i <= m->length; i++) {
        bool is_here = kind == '^' || kind == 'A'   ? i == 0
                       : kind == '$' || kind == 'Z' ? i == m->length
                                                    : m->length && is_boundary(m, i) == (kind == 'b');
        if (kind == '$' && i + 1 == m->length && m->text[i] == '\n') is_here = true;
        if (has(in, i) && is_here) add(out, i);
    }
    m->at += length;
}

/* Evaluates "(?=...)", "(?!...)", "(?<=...)" or "(?<!...)", from after its opening. */
static void follow_look(struct matcher *m, bool is_behind, bool is_wanted, const struct places *in, struct places *out)
{
    const char *begin = m->at;
    struct places one = {0}, ends = {0};
    if (is_behind && begin[strcspn(begin, "*+?{|()[")] != ')') refuse(m, "looking behind at more than characters");
    follow_alternatives(m, &one, &ends);
    const char *end = m->at;
    for (size_t i = 0; i <= m->length && !m->refused; i++) {
        bool found = false;
        if (!has(in, i)) continue;
        for (size_t from = is_behind ? 0 : i; from <= i; from++) {
            one = ends = (struct places){0};
            add(&one, from);
            m->at = begin;
            follow_alternatives(m, &one, &ends);
            for (size_t k = from; k <= m->length; k++) found |= has(&ends, k) && (!is_behind || k == i);
        }
        if (found == is_wanted) add(out, i);
    }
    m->at = end;
}

/* --- groups and repetition -------------------------------------------------------------------- */

static bool accept(struct matcher *m, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(m->at, text, length)) return false;
    m->at += length;
    return true;
}

/* Evaluates a group, from after its "(" to after its ")". */
static void follow_group(struct matcher *m, const struct places *in, struct places *out)
{
    if (++m->depth > DEEPEST) refuse(m, "groups that stand too deep");
    if (accept(m, "?=")) follow_look(m, false, true, in, out);
    else if (accept(m, "?!")) follow_look(m, false, false, in, out);
    else if (accept(m, "?<=")) follow_look(m, true, true, in, out);
    else if (accept(m, "?<!")) follow_look(m, true, false, in, out);
    else {
        if (!accept(m, "?:") && *m->at == '?') refuse(m, "a group of a kind that is not supported");
        if (!m->refused) follow_alternatives(m, in, out);
    }
    if (!accept(m, ")")) refuse(m, "a group without an end");
    m->depth--;
}

static void follow_atom(struct matcher *m, const struct places *in, struct places *out)
{
    *out = (struct places){0};
    if (accept(m, "(")) follow_group(m, in, out);
    else follow_character(m, in, out);
}

static int read_number(struct matcher *m, int absent)
{
    int number = 0;
    if (!is_digit(*m->at)) return absent;
    for (; is_digit(*m->at); m->at++)
        if (number <= MOST_TIMES) number = 10 * number + *m->at - '0';
    if (number > MOST_TIMES) refuse(m, "a number of repetitions that is too large");
    return number;
}

/* Reads "{2}", "{2,}", "{,2}" or "{1,2}". Returns false for a literal brace. */
static bool read_braces(struct matcher *m, int *least, int *most)
{
    const char *begin = m->at++;
    bool is_empty = *m->at == '}';
    *least = *most = read_number(m, 0);
    if (accept(m, ",")) *most = read_number(m, ENDLESS);
    if (is_empty || !accept(m, "}")) {
        m->at = begin;
        return false;
    }
    if (*most != ENDLESS && *most < *least) refuse(m, "a repetition with more at least than at most");
    return true;
}

/* Reads the count of a repetition. Returns false if there is none. */
static bool read_repetition(struct matcher *m, int *least, int *most)
{
    *least = 0, *most = ENDLESS;
    if (*m->at == '{') {
        if (!read_braces(m, least, most)) return false;
    } else if (*m->at == '?') {
        m->at++, *most = 1;
    } else if (*m->at == '+') {
        m->at++, *least = 1;
    } else if (*m->at == '*') {
        m->at++;
    } else {
        return false;
    }
    if (*m->at == '?') m->at++; /* lazy */
    int none;
    if (*m->at == '+') refuse(m, "a possessive repetition");
    if (*m->at == '*' || *m->at == '?' || (*m->at == '{' && read_braces(m, &none, &none)))
        refuse(m, "a repetition of a repetition");
    return true;
}

/* Adds the positions of *step to *out, and removes those from *step that *out had before. Returns false if none is
 * new. */
static bool add_new(struct places *step, struct places *out)
{
    uint64_t added = 0;
    for (size_t i = 0; i < sizeof(step->bits) / sizeof(*step->bits); i++) {
        step->bits[i] &= ~out->bits[i];
        out->bits[i] |= step->bits[i];
        added |= step->bits[i];
    }
    return added != 0;
}

static void repeat(struct matcher *m, const char *atom, int least, int most, const struct places *in,
                   struct places *out)
{
    const char *end = m->at;
    struct places step = *in, next;
    bool is_loop = most == ENDLESS || most > 1;
    m->loops += is_loop;
    if (m->loops > MOST_LOOPS) refuse(m, "repetitions within each other");
    for (int i = 0; i < least && !m->refused; i++) {
        m->at = atom;
        follow_atom(m, &step, &next);
        step = next;
    }
    *out = step;
    for (int i = least; i != most && !m->refused; i++) {
        m->at = atom;
        follow_atom(m, &step, &next);
        step = next;
        if (!add_new(&step, out)) break;
    }
    m->loops -= is_loop;
    m->at = end;
}

/* Evaluates an atom with its repetition. */
static void follow_piece(struct matcher *m, const struct places *in, struct places *out)
{
    const char *atom = m->at;
    int least, most;
    size_t length;
    if (is_anchor(m, &length)) {
        follow_anchor(m, length, in, out);
        if (*m->at && strchr("*+?", *m->at)) refuse(m, "nothing to repeat");
        else if (*m->at == '{' && read_braces(m, &least, &most)) refuse(m, "nothing to repeat");
        return;
    }
    if (strchr("*+?", *m->at)) refuse(m, "nothing to repeat");
    if ((unsigned char)*m->at >= 0x80) refuse(m, "a character that is not of ASCII");
    const char *brace = m->at;
    if (*brace == '{' && read_braces(m, &least, &most)) refuse(m, "nothing to repeat");
    m->at = brace;
    follow_atom(m, in, out);
    if (m->refused || !read_repetition(m, &least, &most)) return;
    if (!m->refused) repeat(m, atom, least, most, in, out);
}

static void follow_sequence(struct matcher *m, const struct places *in, struct places *out)
{
    struct places here = *in;
    while (*m->at && *m->at != '|' && *m->at != ')' && !m->refused) {
        struct places next = {0};
        follow_piece(m, &here, &next);
        here = next;
    }
    *out = here;
}

static void follow_alternatives(struct matcher *m, const struct places *in, struct places *out)
{
    follow_sequence(m, in, out);
    while (!m->refused && accept(m, "|")) {
        struct places other;
        follow_sequence(m, in, &other);
        add_new(&other, out);
    }
}

/* --- patterns --------------------------------------------------------------------------------- */

static bool follow(struct matcher *m)
{
    struct places begin = {{1}}, end;
    follow_alternatives(m, &begin, &end);
    if (*m->at) refuse(m, "a closing bracket that closes nothing");
    return !m->refused && has(&end, m->length);
}

const char *plim_regex_refuses(const char *pattern)
{
    struct matcher m = {.at = pattern, .text = ""};
    follow(&m);
    return m.refused;
}

bool plim_regex_matches(const char *pattern, const char *text)
{
    struct matcher m = {.at = pattern, .text = text, .length = strlen(text)};
    return m.length <= PLIM_REGEX_TEXT && follow(&m);
}
