/* Taking C++ names apart: template arguments, and the types of a function's parameters. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_NAME_H
#define PLIM_DEVICES_VIRTUAL_VALUES_NAME_H

#include "type.h"

/* A part of a name, which does not end with a 0. */
struct plim_name {
    const char *at; /* NULL: there is none */
    size_t length;
};

/* Argument `index` of the template list that begins behind `at` (behind its "<"). */
struct plim_name plim_name_argument(const char *at, int index);

/* Where the text behind the first `word` begins; NULL: it is not in this part. */
const char *plim_name_behind(struct plim_name part, const char *word);
bool plim_name_begins(struct plim_name part, const char *word);

/* The type that a part is; PLIM_NO_TYPE for others. */
enum plim_type plim_name_type(struct plim_name part);
/* N of the first OpaqueType<N> in a part, what PyTorch only moves: bytes of an element; 0: there is none. */
int64_t plim_name_opaque_bytes(struct plim_name part);

/* The parameters of the last lambda in a part that has any: how many, at most `most`; 0: there is
 * none; -1: they are of types that are not known. `words`: unsigned integers are read as the signed
 * ones of their width, for a lambda that only moves them. */
int plim_name_lambda(struct plim_name part, bool words, enum plim_type *types, int most);

#endif
