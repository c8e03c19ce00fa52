#include "selective.h"

struct tensor *selective_log_probs(struct engine *e, struct tensor *logits, struct tensor *labels)
{
    struct tensor *chosen = tensor_keep(op_row_gather(e, logits, labels));
    struct tensor *norms = tensor_keep(op_row_logsumexp(e, logits));
    struct tensor *each = tensor_keep(op_sub(e, chosen, op_unsqueeze(e, norms, -1)));
    tensor_drop_all(e, chosen, norms);
    return each;
}
