/* Who holds memory of the pretended cards of PLIM_DOUBLE_STATE: lines "CARD PID BYTES", without
 * strangers. Asked twice, so that the dead are gone. */
#include "card_state.h"

#include <stdio.h>

int main(void)
{
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
