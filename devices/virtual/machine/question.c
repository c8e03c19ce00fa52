#include "question.h"
#include "machine.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parses "VALUE" or "VALUE*TIMES" up to a comma. Returns the end of it, or NULL if it is not valid. */
static const char *parse_value(const char *text, struct plim_given_value *out)
{
    enum { LETTERS = 5 };
    size_t length = strcspn(text, "*,");
    bool is_true = length == LETTERS - 1 && !strncmp(text, "true", length);
    bool is_false = length == LETTERS && !strncmp(text, "false", length);
    char *end = (char *)text + length;
    *out = (struct plim_given_value){.times = 1, .is_whole = is_true || is_false, .number = is_true};
    if (!out->is_whole) {
        out->number = strtod(text, &end);
        out->is_whole = strcspn(text, ".eE") >= length;
        if (!length || end != text + length || !isfinite(out->number)) return NULL;
    }
    if (*end != '*') return end;
    if (end[1] < '0' || end[1] > '9') return NULL;
    out->times = strtoll(end + 1, &end, 10);
    return out->times > 0 && out->times <= INT32_MAX ? end : NULL;
}

bool plim_machine_given_parse(const char *text, struct plim_machine_given *out)
{
    const char *value = strrchr(text, '='), *colon = value;
    while (colon && colon > text && *colon != ':') colon--;
    if (!value || colon == text || *colon != ':' || value == colon + 1 || value - text >= PLIM_QUESTION_TEXT)
        return false;
    for (const char *digit = colon + 1; digit < value; digit++)
        if (*digit < '0' || *digit > '9') return false;
    *out = (struct plim_machine_given){0};
    snprintf(out->place, sizeof(out->place), "%.*s", (int)(value - text), text);
    while (*value && out->count < PLIM_GIVEN_VALUES) {
        value = parse_value(value + 1, &out->values[out->count++]);
        if (!value || (*value && *value != ',')) return false;
    }
    return !*value;
}

const struct plim_given_value *plim_machine_given_value(const struct plim_machine_given *given, int64_t reads)
{
    int64_t all = 0;
    for (int i = 0; i < given->count; i++) all += given->values[i].times;
    const struct plim_given_value *value = given->values;
    for (reads %= all; reads >= value->times; value++) reads -= value->times;
    return value;
}

/* Returns the row for this place and kernel, or NULL. */
static struct plim_machine_question *find_row(struct plim_machine_questions *all,
                                              const struct plim_machine_question *question)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (!strcmp(all->rows[i].place, question->place) &&
            !strcmp(all->rows[i].kernel, question->kernel))
            return &all->rows[i];
    return NULL;
}

/* Returns a new row, replacing one of lesser use if there is no free one; NULL if there is none of lesser use. */
static struct plim_machine_question *make_row(struct plim_machine_questions *all, int32_t use)
{
    struct plim_machine_question *least = &all->rows[0];
    if (all->count < PLIM_MACHINE_QUESTIONS) {
        least = &all->rows[all->count++];
    } else {
        for (uint32_t i = 1; i < PLIM_MACHINE_QUESTIONS; i++)
            if (all->rows[i].use < least->use) least = &all->rows[i];
        if (least->use >= use) return NULL;
        all->unlisted += least->count;
    }
    *least = (struct plim_machine_question){0};
    return least;
}

void plim_machine_add_question(struct plim_machine *machine, const struct plim_machine_question *question)
{
    struct plim_machine_questions *all = &machine->questions;
    plim_machine_lock(machine);
    struct plim_machine_question *row = find_row(all, question);
    if (!row) row = make_row(all, question->use);
    if (!row) {
        all->unlisted++;
    } else if (!row->count) {
        *row = *question;
        row->count = 1;
    } else {
        row->count++;
        row->turned += question->turned;
        row->divides |= question->divides;
        if (question->use > row->use) row->use = question->use;
        if (question->bytes > row->bytes) row->bytes = question->bytes;
        if (question->answer > row->answer) row->answer = question->answer;
    }
    plim_machine_unlock(machine);
}

void plim_machine_assume(struct plim_machine *machine, uint32_t assumptions)
{
    __atomic_fetch_or(&machine->questions.assumed, assumptions, __ATOMIC_RELAXED);
}

const struct plim_machine_given *plim_machine_find_given(struct plim_machine *machine, const char *place)
{
    size_t length = strlen(place);
    for (int i = 0; i < machine->given_count; i++) {
        const struct plim_machine_given *given = &machine->given[i];
        size_t known = strlen(given->place);
        if (known > length || strcmp(place + length - known, given->place) != 0) continue;
        if (known != length && place[length - known - 1] != '/') continue;
        __atomic_fetch_or(&machine->questions.given_read, 1u << i, __ATOMIC_RELAXED);
        return given;
    }
    return NULL;
}
