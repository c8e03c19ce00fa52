#include "question.h"
#include "machine.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool plim_machine_given_parse(const char *text, struct plim_machine_given *out)
{
    const char *value = strrchr(text, '='), *colon = value;
    while (colon && colon > text && *colon != ':') colon--;
    if (!value || colon == text || *colon != ':' || value - text >= PLIM_QUESTION_TEXT) return false;
    for (const char *digit = colon + 1; digit < value; digit++)
        if (*digit < '0' || *digit > '9') return false;
    *out = (struct plim_machine_given){.is_whole = !strpbrk(value, ".eE")};
    snprintf(out->place, sizeof(out->place), "%.*s", (int)(value - text), text);
    bool is_true = !strcmp(value + 1, "true");
    if (is_true || !strcmp(value + 1, "false")) {
        out->is_whole = true;
        out->number = is_true;
        return value > colon + 1;
    }
    char *end;
    out->number = strtod(value + 1, &end);
    return value > colon + 1 && end > value + 1 && !*end && isfinite(out->number);
}

static bool is_same(const struct plim_machine_question *a, const struct plim_machine_question *b)
{
    return !strcmp(a->place, b->place) && !strcmp(a->kernel, b->kernel) && a->bytes == b->bytes;
}

void plim_machine_ask(struct plim_machine *machine, const struct plim_machine_question *question)
{
    struct plim_machine_questions *all = &machine->questions;
    uint32_t i = 0;
    plim_machine_lock(machine);
    while (i < all->count && i < PLIM_MACHINE_QUESTIONS && !is_same(&all->rows[i], question)) i++;
    struct plim_machine_question *row = i < PLIM_MACHINE_QUESTIONS ? &all->rows[i] : NULL;
    if (!row) {
        all->unlisted++;
    } else if (i < all->count) {
        row->count++;
        if (question->use > row->use) row->use = question->use;
    } else {
        *row = *question;
        row->count = 1;
        all->count++;
    }
    plim_machine_unlock(machine);
}

void plim_machine_assume(struct plim_machine *machine, uint32_t assumptions)
{
    __atomic_fetch_or(&machine->questions.assumed, assumptions, __ATOMIC_RELAXED);
}

const struct plim_machine_given *plim_machine_find_given(const struct plim_machine *machine,
                                                         const char *place)
{
    size_t length = strlen(place);
    for (int i = 0; i < machine->given_count; i++) {
        const struct plim_machine_given *given = &machine->given[i];
        size_t known = strlen(given->place);
        if (known > length || strcmp(place + length - known, given->place) != 0) continue;
        if (known == length || place[length - known - 1] == '/') return given;
    }
    return NULL;
}
