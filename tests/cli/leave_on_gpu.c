/* Leaves a process behind that holds 1 MiB of a pretended GPU for some seconds: leave_on_gpu. */
#include "doubles/gpu_state.h"

#include <unistd.h>

int main(void)
{
    int ends[2];
    char byte = 0;
    if (pipe(ends) != 0) return 1;
    if (fork() == 0) {
        bool taken = gpu_take(0, 1 << 20);
        if (taken && write(ends[1], &byte, 1) == 1) sleep(3);
        return 0;
    }
    close(ends[1]);
    return read(ends[0], &byte, 1) == 1 ? 0 : 1;
}
