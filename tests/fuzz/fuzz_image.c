/* Machine code: cubins, fat binaries, PTX. The bytes are all that is there. */
#include "target.h"
#include "devices/virtual/work/cubin.h"
#include "devices/virtual/work/fat_binary.h"
#include <string.h>

/* It begins with what nvcc's constructors hand over: an address of the program's own, not bytes. */
static int is_wrapper(const uint8_t *data, size_t size)
{
    static const uint8_t magic[] = {0xb1, 0x43, 0x62, 0x46};
    return size >= sizeof(magic) && !memcmp(data, magic, sizeof(magic));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t pointers;
    size_t bytes;
    if (is_wrapper(data, size)) return 0;
    fuzz_expect(plim_cubin_bytes(data, size) <= size);
    plim_cubin_kernel(data, size, "_Z6kernelPfi", &pointers);
    plim_cubin_variable(data, size, "variable", &bytes);
    /* The virtual GPU never frees one: a program keeps its modules. */
    struct plim_fat_binary *binary = plim_fat_binary_read(data, size);
    for (int capability = 70; binary && capability <= 120; capability += 5)
        plim_fat_binary_code(binary, capability);
    free(binary);
    return 0;
}
