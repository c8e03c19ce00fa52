/* Taking C++ names apart: template arguments, and the types of a function's parameters. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_NAME_H
#define PLIM_DEVICES_VIRTUAL_VALUES_NAME_H

#include "type.h"

/* A part of a name, not terminated by a 0. */
struct plim_name {
    const char *at; /* NULL: there is none */
    size_t length;
};

/* Argument `index` of the template list that begins at `at` (after its "<"). */
struct plim_name plim_name_argument(const char *at, int index);

/* The text after the first `word`; NULL: it is not in this part. */
const char *plim_name_behind(struct plim_name part, const char *word);
bool plim_name_begins(struct plim_name part, const char *word);

/* The type that a part names; PLIM_NO_TYPE for any other part. */
enum plim_type plim_name_type(struct plim_name part);
/* N of the first OpaqueType<N> in a part (elements that PyTorch only moves): bytes of an element; 0: there is none. */
int64_t plim_name_opaque_bytes(struct plim_name part);

/* The parameter types of the last lambda in a part that has parameters: how many, at most `most`; 0: there is
 * no such lambda; -1: their types are not known. `words`: unsigned integers are read as signed
 * ones of the same width, for a lambda that only moves them. */
int plim_name_lambda(struct plim_name part, bool words, enum plim_type *types, int most);

#endif
