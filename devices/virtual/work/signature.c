#include "signature.h"
#include "devices/virtual/machine/version.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The C++ library's own, where the program has one. Python loads it where RTLD_DEFAULT does not
 * look. */
static char *demangle(const char *name)
{
    typedef char *demangler(const char *, char *, size_t *, int *);
    static demangler *function;
    if (!function) {
        void *library = plim_version_library("libstdc++.so");
        void *found = dlsym(library ? library : RTLD_DEFAULT, "__cxa_demangle");
        memcpy(&function, &found, sizeof(function));
    }
    return function ? function(name, NULL, NULL, NULL) : NULL;
}

/* One parameter's type: is it a pointer to something not const? PyTorch's elementwise kernels take an
 * array of pointers, the output first. */
static bool is_written(const char *type, size_t length)
{
    static const char const_pointer[] = " const*", array[] = "rray<char*";
    while (length && type[length - 1] == ' ') length--;
    for (const char *c = type; c + sizeof(array) - 1 < type + length; c++)
        if (!strncmp(c, array, sizeof(array) - 1)) return true;
    if (!length || type[length - 1] != '*') return false;
    size_t ending = sizeof(const_pointer) - 1;
    return length < ending || strncmp(type + length - ending, const_pointer, ending) != 0;
}

/* Splits the parameter list at its outermost commas. */
static uint32_t read_parameters(const char *list, int *parameters)
{
    int depth = 0;
    uint32_t written = 0;
    const char *begin = list;
    for (const char *c = list;; c++) {
        if (strchr("(<[{", *c) && *c) depth++;
        bool ends = depth == 0 && (*c == ',' || *c == ')');
        if (strchr(")>]}", *c) && *c) depth--;
        if (!*c) return written;
        if (!ends) continue;
        if (*parameters < 32 && is_written(begin, (size_t)(c - begin)))
            written |= 1u << *parameters;
        *parameters += c > list;
        if (*c == ')') return written;
        begin = c + 1;
    }
}

/* The last "(" on the outermost level begins the parameters. */
static const char *find_parameters(const char *text)
{
    const char *found = NULL;
    int depth = 0;
    for (const char *c = text; *c; c++) {
        if (*c == '(' && depth == 0) found = c + 1;
        depth += (*c == '(' || *c == '<') - (*c == ')' || *c == '>');
    }
    return found;
}

struct plim_signature plim_signature_of(const char *mangled)
{
    struct plim_signature signature = {.is_read = true, .arithmetic = plim_arithmetic_of(mangled)};
    char *text = demangle(mangled);
    const char *list = text ? find_parameters(text) : NULL;
    if (list) signature.written = read_parameters(list, &signature.parameters);
    free(text);
    return signature;
}
