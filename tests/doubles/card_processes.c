/* Who holds memory of the pretended cards of PLIM_DOUBLE_STATE: lines "CARD PID BYTES", without
 * strangers. Asked twice, so that the dead are gone. `card_processes events` instead: for every kind
 * of fault how often one process came to where it can strike, lines "KIND COUNT". */
#include "card_state.h"

#include <stdio.h>
#include <string.h>

static void print_events(void)
{
    for (int kind = 0; kind < CARD_FAULT_COUNT; kind++)
        printf("%s %u\n", card_fault_name((enum card_fault)kind),
               (unsigned)card_most_events((enum card_fault)kind));
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "events")) {
        print_events();
        return 0;
    }
    for (int card = 0; card < card_count(); card++) {
        struct card_process processes[CARD_MAX_PROCESSES];
        card_processes(card, processes, CARD_MAX_PROCESSES);
        size_t count = card_processes(card, processes, CARD_MAX_PROCESSES);
        for (size_t i = 0; i < count; i++)
            if (processes[i].pid != CARD_STRANGERS)
                printf("%d %d %lld\n", card, processes[i].pid, (long long)processes[i].held_bytes);
    }
    return 0;
}
