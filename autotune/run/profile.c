#include "profile.h"

const struct plim_profile plim_profiles[PLIM_PROFILES] = {
    {"max-memory", PLIM_OBJECTIVE_LEAST_MEMORY, 0.10},
    {"balanced", PLIM_OBJECTIVE_BALANCED, 0.05},
    {"max-speed", PLIM_OBJECTIVE_THROUGHPUT, 0.02},
};

const struct plim_tier plim_tiers[PLIM_TIERS] = {
    {"safe", 0.20},
    {"medium", 0.10},
    {"aggressive", 0.05},
    {"max", 0.00},
};
