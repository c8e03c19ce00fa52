/* Growable arrays of one type.
 *
 *     struct plan { PLIM_ARRAY(struct sample) samples; };
 *     ...
 *     PLIM_TRY(PLIM_ARRAY_PUSH(&plan->samples, sample));
 *     for (size_t i = 0; i < plan->samples.count; i++) use(&plan->samples.items[i]);
 *     PLIM_ARRAY_FINISH(&plan->samples);
 *
 * Empty and ready when zeroed. A push may move the items: keep indices, not pointers. The arguments of the macros are
 * evaluated more than once. */
#ifndef PLIM_BASE_ARRAY_H
#define PLIM_BASE_ARRAY_H

#include "status.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PLIM_ARRAY(type)                                                                           \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count, capacity;                                                                    \
    }

/* Makes room for `needed` items in total. On PLIM_NOMEM the array is unchanged. */
#define PLIM_ARRAY_RESERVE(array, needed)                                                          \
    plim_array_reserve(&(array)->items, &(array)->capacity, (needed), sizeof(*(array)->items))

/* Appends a copy of `value`. On PLIM_NOMEM the array is unchanged. */
#define PLIM_ARRAY_PUSH(array, value)                                                              \
    (PLIM_ARRAY_RESERVE(array, (array)->count + 1) == PLIM_OK                                      \
         ? ((array)->items[(array)->count++] = (value), PLIM_OK)                                   \
         : PLIM_NOMEM)

/* Frees the memory; the array is empty and ready again. */
#define PLIM_ARRAY_FINISH(array)                                                                   \
    (free((array)->items), (array)->items = NULL, (array)->count = (array)->capacity = 0)

/* For the macros above. `items` is the address of the typed pointer, which is read and written as
 * bytes because it may not be aliased as a `void *`. */
static inline enum plim_status plim_array_reserve(void *items, size_t *capacity, size_t needed,
                                                  size_t item_bytes)
{
    if (needed <= *capacity) return PLIM_OK;
    size_t wanted = *capacity < 8 ? 8 : *capacity;
    while (wanted < needed) {
        if (wanted > SIZE_MAX / 2) return PLIM_NOMEM;
        wanted *= 2;
    }
    if (wanted > SIZE_MAX / item_bytes) return PLIM_NOMEM;
    void *memory;
    memcpy(&memory, items, sizeof(memory));
    memory = realloc(memory, wanted * item_bytes);
    if (!memory) return PLIM_NOMEM;
    memcpy(items, &memory, sizeof(memory));
    *capacity = wanted;
    return PLIM_OK;
}

#endif
