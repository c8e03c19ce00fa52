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

/* Of one kernel's values, read at one place. */
static struct plim_machine_question *find_row(struct plim_machine_questions *all,
                                              const struct plim_machine_question *question)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (!strcmp(all->rows[i].place, question->place) &&
            !strcmp(all->rows[i].kernel, question->kernel))
            return &all->rows[i];
    return NULL;
}

/* A new row. Where there is none, what matters less gives way; NULL: nothing does. */
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

void plim_machine_ask(struct plim_machine *machine, const struct plim_machine_question *question)
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
