/* What cuDNN's own functions answered (9.10.2 and 9.19, channels last, "persistent"), against the formula. */
#include "devices/virtual/dnn/dnn.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static const struct {
    int64_t batch, channels, height, width;
    enum plim_dnn_type type;
    int64_t forward, backward;
} seen[] = {
    {8, 64, 56, 56, DNN_HALF, 82088, 135204},        {8, 64, 56, 56, DNN_BFLOAT16, 82088, 135204},
    {8, 64, 56, 56, DNN_FLOAT, 203348, 135204},      {8, 64, 56, 56, DNN_DOUBLE, 0, 0},
    {256, 64, 112, 112, DNN_HALF, 10357712, 17127972}, {256, 2048, 7, 7, DNN_HALF, 1305648, 2147488},
    {2, 16, 320, 320, DNN_HALF, 661556, 1093668},    {1, 64, 3, 3, DNN_HALF, 1592, 1572},
    {8, 4, 56, 56, DNN_HALF, 82088, 135204},         {8, 72, 56, 56, DNN_HALF, 163104, 269352},
    {8, 65, 56, 56, DNN_HALF, 104712, 168756},       {1, 47, 1000, 1, DNN_HALF, 3856, 5292},
    {1, 66, 1000, 1, DNN_FLOAT, 11652, 8116},        {1, 5, 1000, 1, DNN_HALF, 2000, 2468},
    {1, 3, 1000, 1, DNN_HALF, 1148, 1156},           {8, 1000, 5, 5, DNN_FLOAT, 34160, 25696},
};

static struct plim_dnn_tensor tensor_of(size_t i)
{
    int64_t channels = seen[i].channels, width = seen[i].width, height = seen[i].height;
    return (struct plim_dnn_tensor){
        .type = seen[i].type, .count = 4,
        .dimension = {seen[i].batch, channels, height, width},
        .stride = {height * width * channels, 1, width * channels, channels}};
}

Test(batch_norm, workspaces_are_those_of_the_library)
{
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
        const struct plim_dnn_tensor x = tensor_of(i);
        cr_expect(eq(i64, plim_dnn_batch_norm_bytes(PLIM_DNN_FORWARD, &x), seen[i].forward), "%zu", i);
        cr_expect(eq(i64, plim_dnn_batch_norm_bytes(PLIM_DNN_BACKWARD_DATA, &x), seen[i].backward), "%zu", i);
    }
}

Test(batch_norm, channels_first_need_nothing)
{
    struct plim_dnn_tensor x = tensor_of(0);
    const int64_t strides[4] = {64 * 56 * 56, 56 * 56, 56, 1};
    for (int i = 0; i < 4; i++) x.stride[i] = strides[i];
    cr_expect(eq(i64, plim_dnn_batch_norm_bytes(PLIM_DNN_FORWARD, &x), 0));
}
