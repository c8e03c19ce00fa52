/* The protocol between plimsoll and its workers. A message that is understood is sent as it came. */
#include "target.h"
#include "autotune/run/worker/wire.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct plim_message message, again;
    static uint8_t bytes[1 << 20], twice[1 << 20];
    size_t used = 0, used_again = 0;
    if (plim_wire_decode(data, size, &message, &used) != PLIM_WIRE_MESSAGE) return 0;
    fuzz_expect(used > 0 && used <= size);
    size_t count = plim_wire_encode(&message, bytes, sizeof(bytes));
    if (!count) return 0;
    fuzz_expect(plim_wire_decode(bytes, count, &again, &used_again) == PLIM_WIRE_MESSAGE);
    fuzz_expect(used_again == count);
    fuzz_expect(plim_wire_encode(&again, twice, sizeof(twice)) == count);
    fuzz_expect(!memcmp(bytes, twice, count));
    return 0;
}
