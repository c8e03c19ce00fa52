/* Kernels: what a program registers, and what happens when it launches one, which is nothing but
 * that it is noted.
 *
 * Two things about a kernel are known although its code is not looked at. For which compute
 * capabilities there is code, from the fat binary's headers; a card that none of it is for gives
 * GPU_NO_BINARY, as the real one. And what its parameters are, from its C++ name: a launch through a
 * pointer to something not const may have written there (shadow.h).
 */
#ifndef PLIM_DEVICES_VIRTUAL_WORK_KERNEL_H
#define PLIM_DEVICES_VIRTUAL_WORK_KERNEL_H

#include "stream.h"

/* One fat binary. The compute capabilities that it has machine code and PTX for, in bits: bit i is
 * for i = 10 * major + minor, as 80. */
struct plim_module {
    const void *image;
    bool is_read; /* what follows; headers are looked at when a kernel is first launched */
    bool unknown; /* not a format that is understood: taken to fit every card */
    uint64_t binaries[3], ptx[3];
};

struct plim_kernel {
    const void *host; /* what stands for it on the host; NULL: the driver's own */
    const char *name; /* mangled; the program's */
    struct plim_module *module;
    bool is_read;      /* what follows; names are taken apart when the kernel is first launched */
    int parameters;    /* -1: not known */
    uint32_t written;  /* a bit for each of the first 32 that is a pointer to non-const */
    uint64_t token;    /* the same in every process of the program */
    int steps_class;   /* enum plim_steps_class */
    int arithmetic;    /* enum plim_arithmetic */
};

/* `image` is what nvcc's constructors hand over (a wrapper) or what a driver loads (a fat binary, an
 * ELF file, or PTX text). NULL: out of memory. The module is never freed: programs keep kernels. */
struct plim_module *plim_module_read(const void *image);

/* The compute capability of the code that the card would run, 80 on an 86 where that is the nearest;
 * 0: there is none. */
int plim_module_code(struct plim_module *module, int compute_capability);

/* Kernels by the host function that stands for them. */
void plim_kernel_register(const void *host, const char *name, struct plim_module *module);
struct plim_kernel *plim_kernel_find(const void *host); /* NULL: never registered */

/* Which parameters of a kernel are pointers to something that is not const: a bit for each of the
 * first 32. None, and no parameters, for a name that is no C++ name. */
uint32_t plim_kernel_written(const char *mangled, int *parameters);

/* enum plim_steps_class; PLAIN for NULL. */
int plim_kernel_class(struct plim_kernel *kernel);

/* Variables in device memory, by the host variable that stands for them. */
void plim_symbol_register(const void *host, size_t bytes);
int plim_symbol_find(const void *host, uintptr_t *at, size_t *bytes);

struct plim_launch {
    struct gpu_dim3 grid, block;
    size_t shared_bytes;
    void *stream;
    void **arguments; /* NULL: not seen */
};

/* GPU_NO_BINARY: the card cannot run it. NULL: a kernel that is not known. */
int plim_kernel_launch(struct plim_kernel *kernel, const struct plim_launch *launch);

/* Work that a library does: a launch of its own. What tells one from another is the function, its
 * form (a hash of transposes and epilogue, a plan), a hash of its sizes, and its operands: first
 * those that it reads, then those that it writes; where that is not told apart, all as read. */
struct plim_work {
    void *stream;
    const char *what;
    uint64_t form, sizes;
    const void *const *operands;
    size_t read, written;
};
int plim_library_launch(const struct plim_work *work);

/* A captured graph is launched: all that is in it happens. */
int plim_graph_launch(const struct plim_graph *graph, void *stream);

/* What the name tells but for the parameters, which are known from elsewhere. */
void plim_kernel_name(struct plim_kernel *kernel);

uint64_t plim_kernel_hash(const char *text);
/* Goes on with a hash. */
uint64_t plim_kernel_hash_more(uint64_t hash, uint64_t value);

/* Resident blocks of this kernel on one multiprocessor. Registers are not known and not counted. */
int plim_occupancy(int device, int block_threads, size_t shared_bytes);

#endif
