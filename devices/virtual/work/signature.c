#include "signature.h"
#include "devices/virtual/machine/version.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Uses the demangler of the C++ library, if the program has one. Python loads that library where RTLD_DEFAULT does not
 * find it. */
char *plim_signature_text(const char *name)
{
    typedef char *demangler(const char *, char *, size_t *, int *);
    static demangler *function;
    if (strncmp(name, "_Z", 2) != 0) return NULL;
    if (!function) {
        void *library = plim_version_library("libstdc++.so");
        void *found = dlsym(library ? library : RTLD_DEFAULT, "__cxa_demangle");
        memcpy(&function, &found, sizeof(function));
    }
    return function ? function(name, NULL, NULL, NULL) : NULL;
}

/* PyTorch's elementwise kernels take an array of pointers, the output first. Returns its size in bytes, or 0 if the
 * type is another. */
static uint16_t array_bytes(const char *type, size_t length)
{
    static const char array[] = "rray<char*, ";
    for (const char *c = type; c + sizeof(array) - 1 < type + length; c++)
        if (!strncmp(c, array, sizeof(array) - 1))
            return (uint16_t)(strtoul(c + sizeof(array) - 1, NULL, 10) % 32 * sizeof(void *));
    return 0;
}

/* True if a parameter's type is a pointer to non-const. */
static bool is_written(const char *type, size_t length)
{
    static const char const_pointer[] = " const*";
    while (length && type[length - 1] == ' ') length--;
    if (!length || type[length - 1] != '*') return false;
    size_t ending = sizeof(const_pointer) - 1;
    return length < ending || strncmp(type + length - ending, const_pointer, ending) != 0;
}

/* Prefixes of types that contain no pointer to memory that is written: numbers, functors without data, and the state of
 * random numbers. */
static const char *const plain[] = {"bool",
                                    "char",
                                    "signed",
                                    "unsigned",
                                    "short",
                                    "int",
                                    "long",
                                    "float",
                                    "double",
                                    "c10::Half",
                                    "c10::BFloat16",
                                    "c10::complex",
                                    "std::plus",
                                    "std::multiplies",
                                    "std::greater",
                                    "std::less",
                                    "at::native::Reduce",
                                    "at::PhiloxCudaState",
                                    "at::native::OffsetCalculator",
                                    "TrivialOffsetCalculator",
                                    "OffsetCalculator",
                                    "__half",
                                    "__nv_bfloat16",
                                    "dim3",
                                    "at::native::Msg",
                                    "cuda::std::",
                                    "thrust::"};

/* Where the pointers end in known structures; after them the stack may hold stale pointers. CUB's scan states have one
 * array or three. FlashAttention's parameters (flash.h, up to PyTorch 2.11) have grown; their bound is no less than
 * their size. */
static const struct {
    const char *name;
    uint16_t bytes;
} known[] = {{"TensorInfo<", 8},
             {"ScanTileState<long, int, true>", 8},
             {"ScanTileState<long, true>", 8},
             {"ScanTileState<int, true>", 8},
             {"ScanTileState<float, true>", 8},
             {"ScanTileState<", 24},
             {"GenericPackedTensorAccessor<", 8},
             {"PyTorchMemEffAttention::AttentionKernel<", 88},
             {"PyTorchMemEffAttention::AttentionBackwardKernel<", 136},
             {"Flash_fwd_params", 512},
             {"Flash_bwd_params", 704},
             {"PackedTensorAccessor", 8}};

static bool has(const char *type, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t i = 0; i + size <= length; i++)
        if (!strncmp(type + i, word, size)) return true;
    return false;
}

static uint16_t bytes_of(const char *type, size_t length)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (has(type, length, known[i].name)) return known[i].bytes;
    return 0;
}

/* True for a tensor layout with const elements. */
static bool is_read_only(const char *type, size_t length)
{
    return has(type, length, "TensorInfo<") && has(type, length, " const,");
}

static bool is_pointer(const char *type, size_t length)
{
    while (length && type[length - 1] == ' ') length--;
    return length && type[length - 1] == '*';
}

static bool is_structure(const char *type, size_t length)
{
    while (length && *type == ' ') type++, length--;
    if (!length || type[length - 1] == '*' || type[length - 1] == '&') return false;
    if (is_read_only(type, length)) return false;
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (!strncmp(type, plain[i], strlen(plain[i]))) return false;
    return true;
}

/* Splits the parameter list at its top-level commas. */
static void read_parameters(const char *list, struct plim_signature *out)
{
    int depth = 0;
    const char *begin = list;
    for (const char *c = list; *c; c++) {
        if (strchr("(<[{", *c)) depth++;
        bool ends = depth == 0 && (*c == ',' || *c == ')');
        if (strchr(")>]}", *c)) depth--;
        if (!ends) continue;
        size_t length = (size_t)(c - begin);
        uint32_t bit = out->parameters < 32 ? (uint32_t)1 << out->parameters : 0;
        uint16_t array = array_bytes(begin, length);
        if (bit && array) out->structure_bytes[out->parameters] = array;
        if (array || is_written(begin, length))
            out->written |= bit;
        else if (is_pointer(begin, length) || is_read_only(begin, length))
            out->read |= bit;
        else if (is_structure(begin, length)) {
            out->structures |= bit;
            if (bit) out->structure_bytes[out->parameters] = bytes_of(begin, length);
        }
        out->parameters += c > list;
        if (*c == ')') return;
        begin = c + 1;
    }
}

/* Returns the parameter list: the text after the last top-level "(". */
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
    struct plim_signature signature = {.is_read = true};
    char *text = plim_signature_text(mangled);
    const char *list = text ? find_parameters(text) : NULL;
    if (list) read_parameters(list, &signature);
    free(text);
    return signature;
}
