/* Who holds memory of the pretended GPUs of PLIM_DOUBLE_STATE: lines "GPU PID BYTES", without
 * strangers. Asked twice, so that the dead are gone. `gpu_processes events` instead: for every kind
 * of fault how often one process came to where it can strike, lines "KIND COUNT". */
#include "gpu_state.h"

#include <stdio.h>
#include <string.h>

static void print_events(void)
{
    for (int kind = 0; kind < GPU_FAULT_COUNT; kind++)
        printf("%s %u %u\n", gpu_fault_name((enum gpu_fault)kind),
               (unsigned)gpu_most_events((enum gpu_fault)kind),
               (unsigned)gpu_all_events((enum gpu_fault)kind));
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "events")) {
        print_events();
        return 0;
    }
    for (int gpu = 0; gpu < gpu_count(); gpu++) {
        struct gpu_process processes[GPU_MAX_PROCESSES];
        gpu_processes(gpu, processes, GPU_MAX_PROCESSES);
        size_t count = gpu_processes(gpu, processes, GPU_MAX_PROCESSES);
        for (size_t i = 0; i < count; i++)
            if (processes[i].pid != GPU_STRANGERS)
                printf("%d %d %lld\n", gpu, processes[i].pid, (long long)processes[i].held_bytes);
    }
    return 0;
}
