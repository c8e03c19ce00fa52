/* Parsing of demangled C++ names: template arguments, and the parameter types of functions. */
#ifndef PLIM_DEVICES_VIRTUAL_VALUES_NAME_H
#define PLIM_DEVICES_VIRTUAL_VALUES_NAME_H

#include "type.h"

/* A part of a name; not null-terminated. */
struct plim_name {
    const char *at; /* NULL: no such part */
    size_t length;
};

/* Returns argument `index` of the template argument list that starts at `at` (just after its "<"). */
struct plim_name plim_name_argument(const char *at, int index);

/* Returns the text after the first occurrence of `word` in `part`, or NULL if there is none. */
const char *plim_name_behind(struct plim_name part, const char *word);
bool plim_name_begins(struct plim_name part, const char *word);

/* Returns the type whose name `part` starts with, or PLIM_NO_TYPE. */
enum plim_type plim_name_type(struct plim_name part);
/* Returns N of the first OpaqueType<N> in `part`, the element size in bytes (PyTorch uses it where elements are only
 * moved); 0 if there is none. */
int64_t plim_name_opaque_bytes(struct plim_name part);

/* Stores the parameter types of the last lambda in `part` that has parameters. Returns how many there are, at most
 * `most`; 0 if there is no such lambda; -1 if a type is not recognised. With `words`, unsigned integers are read as
 * signed ones of the same width, for a lambda that only moves them. */
int plim_name_lambda(struct plim_name part, bool words, enum plim_type *types, int most);

#endif
