/* Random numbers by PyTorch's kernels: launches as they were recorded, with the names of PyTorch 2.11 for CUDA 13. What
 * is expected was made by cuRAND's own functions (curand_kernel.h of CUDA 13.0), compiled for the host: seed 1234, 8
 * words of each thread's stream drawn before; and, with seed 0, by PyTorch on GPUs, as it stands in its issues. */
#include "devices/half.h"
#include "values_fixture.h"

#define UNIFORM \
    "_ZN2at6native55_GLOBAL__N__11f7a751_22_DistributionUniform_cu_67fa25cf43distribution_elementwise_grid_stride" \
    "_kernelIfLi4EZNS0_9templates4cuda21uniform_and_transformIffPNS_17CUDAGeneratorImplEZZZNS4_14uniform_kernelIS" \
    "7_EEvRNS_18TensorIteratorBaseEddT_ENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvSA_T1_T2_EUlP24curandStatePhilox4_32_10E" \
    "0_ZNS1_27distribution_nullary_kernelIff6float4S7_SJ_SE_EEvSA_SG_RKT3_T4_EUlifE_EEvlNS_15PhiloxCudaStateESF_S" \
    "G_"
#define UNIFORM_DOUBLE \
    "_ZN2at6native55_GLOBAL__N__11f7a751_22_DistributionUniform_cu_67fa25cf43distribution_elementwise_grid_stride" \
    "_kernelIdLi2EZNS0_9templates4cuda21uniform_and_transformIddPNS_17CUDAGeneratorImplEZZZNS4_14uniform_kernelIS" \
    "7_EEvRNS_18TensorIteratorBaseEddT_ENKUlvE_clEvENKUlvE_clEvEUldE_EEvSA_T1_T2_EUlP24curandStatePhilox4_32_10E_" \
    "ZNS1_27distribution_nullary_kernelIdd7double2S7_SJ_SE_EEvSA_SG_RKT3_T4_EUlidE_EEvlNS_15PhiloxCudaStateESF_SG" \
    "_"
#define UNIFORM_BFLOAT16 \
    "_ZN2at6native55_GLOBAL__N__11f7a751_22_DistributionUniform_cu_67fa25cf43distribution_elementwise_grid_stride" \
    "_kernelIfLi4EZNS0_9templates4cuda21uniform_and_transformIN3c108BFloat16EfPNS_17CUDAGeneratorImplEZZZNS4_14un" \
    "iform_kernelIS9_EEvRNS_18TensorIteratorBaseEddT_ENKUlvE_clEvENKUlvE2_clEvEUlfE_EEvSC_T1_T2_EUlP24curandState" \
    "Philox4_32_10E0_ZNS1_27distribution_nullary_kernelIS7_f6float4S9_SL_SG_EEvSC_SI_RKT3_T4_EUlifE_EEvlNS_15Phil" \
    "oxCudaStateESH_SI_"
#define NORMAL \
    "_ZN2at6native54_GLOBAL__N__d8ceb000_21_DistributionNormal_cu_0c5b6e8543distribution_elementwise_grid_stride_" \
    "kernelIfLi4EZNS0_9templates4cuda20normal_and_transformIffPNS_17CUDAGeneratorImplEZZZNS4_13normal_kernelIS7_E" \
    "EvRKNS_10TensorBaseEddT_ENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvRNS_18TensorIteratorBaseET1_T2_EUlP24curandStatePh" \
    "ilox4_32_10E0_ZNS1_27distribution_nullary_kernelIff6float4S7_SM_SF_EEvSH_SJ_RKT3_T4_EUlifE_EEvlNS_15PhiloxCu" \
    "daStateESI_SJ_"
#define BERNOULLI \
    "_ZN2at6native57_GLOBAL__N__d8df7886_24_DistributionBernoulli_cu_7537a20d43distribution_elementwise_grid_stri" \
    "de_kernelIfLi4EZNS0_9templates4cuda21uniform_and_transformIffPNS_17CUDAGeneratorImplEZZZNS4_16bernoulli_kern" \
    "elIS7_EEvRNS_18TensorIteratorBaseEdT_ENKUlvE_clEvENKUlvE5_clEvEUlfE_EEvSA_T1_T2_EUlP24curandStatePhilox4_32_" \
    "10E0_ZNS1_27distribution_nullary_kernelIff6float4S7_SJ_SE_EEvSA_SG_RKT3_T4_EUlifE_EEvlNS_15PhiloxCudaStateES" \
    "F_SG_"
#define BELOW \
    "_ZN2at6native60_GLOBAL__N__2b2da9da_27_DistributionRandomKernel_cu_f88cee4443distribution_elementwise_grid_s" \
    "tride_kernelIjLi4EZZZNS0_9templates4cuda21random_from_to_kernelIPNS_17CUDAGeneratorImplEEEvRNS_18TensorItera" \
    "torBaseEmlT_ENKUlvE_clEvENKUlvE2_clEvEUlP24curandStatePhilox4_32_10E0_ZNS1_27distribution_nullary_kernelIlj5" \
    "uint4S7_SF_ZZZS5_IS7_EvS9_mlSA_ENKSB_clEvENKSC_clEvEUljE_EEvS9_T2_RKT3_T4_EUlijE_EEvlNS_15PhiloxCudaStateET1" \
    "_SJ_"
#define BELOW_LONG \
    "_ZN2at6native60_GLOBAL__N__2b2da9da_27_DistributionRandomKernel_cu_f88cee4443distribution_elementwise_grid_s" \
    "tride_kernelImLi2EZZZNS0_9templates4cuda21random_from_to_kernelIPNS_17CUDAGeneratorImplEEEvRNS_18TensorItera" \
    "torBaseEmlT_ENKUlvE_clEvENKUlvE2_clEvEUlP24curandStatePhilox4_32_10E_ZNS1_27distribution_nullary_kernelIlm10" \
    "ulonglong2S7_SF_ZZZS5_IS7_EvS9_mlSA_ENKSB_clEvENKSC_clEvEUlmE_EEvS9_T2_RKT3_T4_EUlimE_EEvlNS_15PhiloxCudaSta" \
    "teET1_SJ_"
#define WHOLE \
    "_ZN2at6native60_GLOBAL__N__2b2da9da_27_DistributionRandomKernel_cu_f88cee4443distribution_elementwise_grid_s" \
    "tride_kernelImLi2EZZZNS0_9templates4cuda13random_kernelIPNS_17CUDAGeneratorImplEEEvRNS_18TensorIteratorBaseE" \
    "T_ENKUlvE_clEvENKUlvE2_clEvEUlP24curandStatePhilox4_32_10E_ZNS1_27distribution_nullary_kernelIlm10ulonglong2" \
    "S7_SF_ZZZS5_IS7_EvS9_SA_ENKSB_clEvENKSC_clEvEUlmE_EEvS9_T2_RKT3_T4_EUlimE_EEvlNS_15PhiloxCudaStateET1_SJ_"
#define EXPONENTIAL \
    "_ZN2at6native65_GLOBAL__N__28278f10_32_DistributionExponentialKernel_cu_5881736643distribution_elementwise_g" \
    "rid_stride_kernelIfLi4EZNS0_9templates4cuda21uniform_and_transformIffPNS_17CUDAGeneratorImplEZZZNS4_18expone" \
    "ntial_kernelIS7_EEvRNS_18TensorIteratorBaseEdT_ENKUlvE_clEvENKUlvE0_clEvEUlfE_EEvSA_T1_T2_EUlP24curandStateP" \
    "hilox4_32_10E0_ZNS1_27distribution_nullary_kernelIff6float4S7_SJ_SE_EEvSA_SG_RKT3_T4_EUlifE_EEvlNS_15PhiloxC" \
    "udaStateESF_SG_"
#define CHANCES \
    "_ZN2at4cuda57_GLOBAL__N__d8df7886_24_DistributionBernoulli_cu_7537a20d21kernelPointwiseApply2IZNS_6native9te" \
    "mplates4cuda28bernoulli_tensor_cuda_kernelIffEEvRKNS_10TensorBaseES9_NS_15PhiloxCudaStateEEUliRfSB_SB_SB_RKf" \
    "SD_SD_SD_E_fSC_jLi1ELi1ELi4ELi512ELi2EEEvNS0_6detail10TensorInfoIT0_T2_EENSG_IT1_SI_EESI_T_"
#define DUPLICATES \
    "_ZN44_GLOBAL__N__fb1fc55b_11_Randperm_cu_4012db6537randperm_handle_duplicate_keys_kernelIiN2at6native44_GLOB" \
    "AL__N__fb1fc55b_11_Randperm_cu_4012db6510OpaqueTypeILi8EEEEEvPT_PT0_S6_iNS1_15PhiloxCudaStateE"

struct philox {
    uint64_t seed, offset, offset_of_graph;
    bool is_captured;
};

static const struct philox drawn = {.seed = 1234, .offset = 8};
static const size_t places[] = {0, 1, 255, 256, 511, 1023, 1024, 1500, 2047, 2999};

/* A block of threads draws `count` numbers to the memory's beginning. */
static bool draw(const char *name, int64_t count, const struct philox *philox, const void *transform)
{
    char words = 0;
    return launch_grid(name, 1, (void *[]){&count, (void *)philox, &words, (void *)transform});
}

static void expect_places(enum plim_type type, const char *expected)
{
    char text[512] = "";
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        unsigned char bytes[8], known[8];
        size_t width = plim_type_bytes(type), used = strlen(text);
        plim_shadow_load(memory + places[i] * width, bytes, known, width);
        cr_expect(eq(int, known[0], PLIM_KNOWN | PLIM_ASSUMPTION_SEED));
        struct plim_number n = plim_number_load(bytes, type);
        if (n.is_float)
            snprintf(text + used, sizeof(text) - used, "%s%.9g", i ? " " : "", n.f);
        else
            snprintf(text + used, sizeof(text) - used, "%s%lld", i ? " " : "", (long long)n.i);
    }
    cr_expect(eq(str, text, (char *)expected));
}

struct uniform {
    uintptr_t out;
    int32_t stride;
    float range, from, to;
};

Test(uniform, is_pytorchs)
{
    begin();
    cr_assert(draw(UNIFORM, 8, &(struct philox){0}, &(struct uniform){memory, 4, 1, 0, 1}));
    float numbers[8];
    cr_assert(eq(uint, plim_shadow_load(memory, numbers, NULL, sizeof(numbers)), PLIM_KNOWN | PLIM_ASSUMPTION_SEED));
    static const float on_a_gpu[] = {0.3990F, 0.5167F, 0.0249F, 0.9401F, 0.9459F, 0.7967F, 0.4150F, 0.8203F};
    for (int i = 0; i < 8; i++) cr_expect(epsilon_eq(flt, numbers[i], on_a_gpu[i], 5.1e-5F));
}

Test(uniform, goes_round_by_round)
{
    begin();
    cr_assert(draw(UNIFORM, 3000, &drawn, &(struct uniform){memory, 4, 1, 0, 1}));
    expect_places(PLIM_FLOAT, "0.249172732 0.171930373 0.878529727 0.984481454 0.312746227 0.345208555 0.711526513 "
                              "0.303155482 0.0229740869 0.516881883");
    uint32_t whole, halves;
    plim_shadow_load(memory + 256 * 4, &whole, NULL, 4);
    plim_shadow_load(memory + 256 * 4 + 2, &halves, NULL, 4);
    cr_expect(eq(u16, (uint16_t)halves, (uint16_t)(whole >> 16)), "from the middle of an element");
}

Test(uniform, of_other_types)
{
    struct {
        uintptr_t out;
        int32_t stride;
        double range, from, to;
    } doubles = {0, 8, 1, 0, 1};
    struct {
        uintptr_t out;
        int32_t stride;
        float range;
        uint16_t from, to;
    } halves = {0, 2, 2, plim_float_to_bf16(3), plim_float_to_bf16(5)};
    begin();
    doubles.out = halves.out = memory;
    cr_assert(draw(UNIFORM_DOUBLE, 3000, &drawn, &doubles));
    expect_places(PLIM_DOUBLE, "0.98448156 0.293176696 0.312746392 0.535602417 0.34520842 0.0229743353 0.918010391 "
                               "0.512125393 0.997771098 0.202185734");
    cr_assert(draw(UNIFORM_BFLOAT16, 3000, &drawn, &halves));
    expect_places(PLIM_BFLOAT16, "3.5 3.34375 4.75 4.96875 3.625 3.6875 4.4375 3.609375 3.046875 4.03125");
    uint16_t numbers[3000];
    plim_shadow_load(memory, numbers, NULL, sizeof(numbers));
    for (size_t i = 0; i < 3000; i++)
        cr_assert(ne(u16, numbers[i], halves.to), "what is rounded to the end begins anew");
}

/* Every other element: those between are unchanged. */
Test(uniform, leaves_what_lies_between)
{
    begin();
    PUT(0, float, 7, 7, 7, 7);
    cr_assert(draw(UNIFORM, 2, &drawn, &(struct uniform){memory, 8, 1, 0, 1}));
    expect_numbers(memory, PLIM_FLOAT, 4, "0.249173! 7 0.17193! 7");
}

/* Many numbers around 0 are weights. */
Test(uniform, weights_are_not_known)
{
    begin();
    cr_assert(draw(UNIFORM, 100000, &drawn, &(struct uniform){memory, 4, 2, -1, 1}));
    cr_expect(eq(uint, plim_shadow_survey(memory, 400000), PLIM_UNKNOWN | PLIM_SOME_UNKNOWN));
    cr_assert(draw(UNIFORM, 100000, &drawn, &(struct uniform){memory, 4, 1, 0, 1}));
    cr_expect(eq(uint, plim_shadow_survey(memory, 400000), PLIM_KNOWN | PLIM_ASSUMPTION_SEED));
}

/* In a CUDA graph the seed is in memory. */
Test(uniform, of_a_graph_is_not_known)
{
    begin();
    cr_expect(not(draw(UNIFORM, 8, &(struct philox){memory, memory + 8, 0, true},
                       &(struct uniform){memory + 64, 4, 1, 0, 1})));
}

Test(normal, is_curands)
{
    begin();
    cr_assert(draw(NORMAL, 3000, &drawn, &(struct uniform){memory, 4, 0, 1, 0}));
    float numbers[3000];
    static const float expected[] = {-0.162294447F, 1.80789053F,   0.469889283F,  1.65918005F,  -0.195486814F,
                                     -0.836009979F, 0.634095252F, -0.212265313F, 1.09220362F, -0.994139731F};
    plim_shadow_load(memory, numbers, NULL, sizeof(numbers));
    for (int i = 0; i < 10; i++) cr_expect(epsilon_eq(flt, numbers[places[i]], expected[i], 1e-6F));
    cr_expect(not(draw(EXPONENTIAL, 3000, &drawn, &(struct uniform){memory, 4, 1, 0, 0})));
}

struct from_to {
    uintptr_t out;
    int32_t stride;
    uint64_t range;
    int64_t base;
};

Test(integers, are_curands)
{
    begin();
    cr_assert(draw(BELOW, 3000, &drawn, &(struct from_to){memory, 8, 1000, 0}));
    expect_places(PLIM_INT64, "760 355 524 704 752 474 166 938 955 847");
    cr_assert(draw(BELOW, 3000, &drawn, &(struct from_to){memory, 8, 1000, -500}));
    expect_places(PLIM_INT64, "260 -145 24 204 252 -26 -334 438 455 347");
    cr_assert(draw(BELOW_LONG, 3000, &drawn, &(struct from_to){memory, 8, (uint64_t)1 << 40, 0}));
    expect_places(PLIM_INT64, "931941251640 117223301537 327760749248 169804118801 834706314898 502609846587 "
                              "927360793146 809653412719 322112973458 185551974726");
    cr_expect(not(draw(BELOW, 3000, &drawn, &(struct from_to){memory, 8, 0, 0})));
}

Test(chances, are_curands)
{
    struct {
        uintptr_t out;
        int32_t stride;
        double chance;
    } one = {0, 4, 0.3};
    begin();
    one.out = memory;
    cr_assert(draw(BERNOULLI, 3000, &drawn, &one));
    expect_places(PLIM_FLOAT, "1 1 0 0 0 0 0 0 1 0");
}

/* 0.249 0.984 0.797 0.536, 0.172 0.293 0.401 0.613, 0.447 are drawn, four by a thread. */
Test(chances, each_its_own)
{
    uint32_t count = 9;
    begin();
    struct tensor out = {memory, {9}, {1}, 1},
                  chances = {PUT(256, float, .25, .25, 1, 0, .17, .3, .4, .62, .5), {9}, {1}, 1};
    plim_shadow_spoil(memory + 256 + 7 * 4, 4, "other");
    cr_assert(LAUNCH(CHANCES, &out, &chances, &count, (void *)&drawn));
    expect_numbers(memory, PLIM_FLOAT, 9, "1! 0! 1! 0! 0! 1! 0! ? 1!");
}

/* Keys whose lower four bits are the same from the third on: 2 to 7 are put into an order. */
Test(order, of_equal_keys_is_curands)
{
    int32_t count = 9, mask = 15;
    begin();
    uintptr_t keys = PUT(512, int32_t, 0, 1, 2, 18, 34, 50, 66, 2, 3),
              values = PUT(0, int64_t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
    cr_assert(LAUNCH(DUPLICATES, &keys, &values, &mask, &count, (void *)&drawn));
    expect_numbers(memory, PLIM_INT64, 9, "0 1 3 6 2 5 4 7 8");
}
