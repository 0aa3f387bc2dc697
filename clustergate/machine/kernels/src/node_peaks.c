/* What a node can do at most: double-precision fused multiply-adds, and memory bandwidth.
 *
 *   cc -O3 -pthread -o node_peaks node_peaks.c -lm
 *   ./node_peaks [--seconds S] [--trials N] [--cores LIST] [--array-mib M] [--glance 1]
 *                [--together 1]
 *
 * Measured on each core alone and on all at once; one JSON line for every trial, and a last one
 * with their number. By default one hardware thread of each core this process may use. A glance
 * is to tell whether a node still is as it was: the first core alone and all at once, and instead
 * of the triad a "triad_glance", once through arrays of 24 MiB a core that were flushed from the
 * caches. They are read from memory and need not be written back to it: no figure to compare with
 * a triad's. --together 1 leaves out each core alone, which on many cores takes most of the time.
 *
 * fma_peak, "gflops": the widest vectors of the processor, chosen when it runs, on enough
 * independent accumulators to hide the latency of the instruction. A multiply-add is two
 * operations. Nothing that computes in double precision on these cores can be faster.
 * "undisturbed" sums up the fastest block of each core, some 40 us long: whoever else uses a core
 * takes it for milliseconds, and leaves most blocks alone. "clock_ghz" is the clock of the cores
 * right after that, by additions that wait for each other, which a busy second hardware thread of
 * the core does not slow down; "max_ghz" is the highest one, turbo included, where the kernel knows
 * it; "flops_per_cycle" is the most that a core with such vectors does. "virtual" tells of a
 * virtual machine, whose cores others may share without a trace.
 *
 * triad, "bandwidth_gb_s": a[i] = b[i] + s * c[i], counted as STREAM does: 24 bytes for an
 * element, without the line of a[] that most processors read before they write it. The three
 * arrays are shared out among the cores; together they have four times the size of the last-level
 * caches in reach, so that an element is out of them when its turn comes again, or each has
 * --array-mib. "undisturbed" is the rate by the cores' own processor time.
 */
#ifndef __OPTIMIZE__
#error "compile node_peaks with -O3: without optimisation it measures the compiler"
#endif
#define _GNU_SOURCE
#include <math.h>

#include "pinned.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#include <sys/auxv.h>
#else
#error "node_peaks knows the vector instructions of x86-64 and aarch64 only"
#endif

/* ------------------------------------------------------------------ fused multiply-adds ------ */

struct vector {
    const char *name;
    int lanes, accumulators;
    int flops_per_cycle; /* of the widest core that has such vectors, all its units together */
    /* Runs that often over all accumulators; returns their mean, which is about 1. */
    double (*run)(long iterations, double factor, double summand);
};

/* Accumulator i begins at its own value, or the compiler would find that all are the same. */
#define START(i) (1.0 + 0.001 * (i))
#define ITERATIONS 10000L
#define ADDITIONS 16000L

#if defined(__x86_64__)

/* Additions of registers that wait for each other: one a cycle on every processor there is. (That
   of a constant need not wait on some.) */
static void add_in_turn(long additions)
{
    unsigned long sum = 0, one = 1, rounds = (unsigned long)additions / 8;
    __asm__ volatile("1:\n"
                     "add %[one], %[sum]\n"
                     "add %[one], %[sum]\n"
                     "add %[one], %[sum]\n"
                     "add %[one], %[sum]\n"
                     "add %[one], %[sum]\n"
                     "add %[one], %[sum]\n"
                     "add %[one], %[sum]\n"
                     "add %[one], %[sum]\n"
                     "sub $1, %[rounds]\n"
                     "jnz 1b\n"
                     : [sum] "+r"(sum), [rounds] "+r"(rounds)
                     : [one] "r"(one)
                     : "cc");
}

static bool is_virtual(void)
{
    unsigned eax, ebx, ecx = 0, edx;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & 1u << 31) != 0;
}

/* 0 for another vendor's. */
static unsigned amd_family(void)
{
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) == 0 || ebx != signature_AMD_ebx)
        return 0;
    (void)__get_cpuid(1, &eax, &ebx, &ecx, &edx);
    return (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
}

/* 12 accumulators: two units with a latency of four or five cycles, and sixteen registers. */
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#define DECLARE(i) a##i = SET(START(i)),
#define STEP(i) a##i = MULTIPLY_ADD(a##i);
#define SUM(i) +(a##i)
#define KERNEL(NAME, TARGET, TYPE, LANES)                                                          \
    __attribute__((target(TARGET), noinline)) static double NAME(long iterations, double factor,   \
                                                                 double summand)                   \
    {                                                                                              \
        TYPE x = SET(factor), y = SET(summand), EACH(DECLARE) sum;                                 \
        double lanes[LANES], total = 0;                                                            \
        for (long n = 0; n < iterations; n++) {                                                    \
            EACH(STEP)                                                                             \
        }                                                                                          \
        sum = EACH(SUM);                                                                           \
        memcpy(lanes, &sum, sizeof lanes);                                                         \
        for (int i = 0; i < LANES; i++)                                                            \
            total += lanes[i];                                                                     \
        return total / (12 * LANES);                                                               \
    }

#define SET _mm512_set1_pd
#define MULTIPLY_ADD(a) _mm512_fmadd_pd(a, x, y)
KERNEL(fma_avx512, "avx512f", __m512d, 8)
#undef SET
#undef MULTIPLY_ADD
#define SET _mm256_set1_pd
#define MULTIPLY_ADD(a) _mm256_fmadd_pd(a, x, y)
KERNEL(fma_avx2, "avx,fma", __m256d, 4)
#undef MULTIPLY_ADD
#define MULTIPLY_ADD(a) _mm256_add_pd(_mm256_mul_pd(a, x), y)
KERNEL(fma_avx, "avx", __m256d, 4)
#undef SET
#undef MULTIPLY_ADD
#define SET _mm_set1_pd
#define MULTIPLY_ADD(a) _mm_add_pd(_mm_mul_pd(a, x), y) /* SSE2 has no fused one */
KERNEL(fma_sse2, "sse2", __m128d, 2)

/* Units as wide as the registers: two of the fused kind, up to four that add or multiply. AMD's
   processors before Zen 5 have two of 256 bits, also where the registers have 512. */
static struct vector widest_vector(void)
{
    __builtin_cpu_init();
    bool narrow = amd_family() == 0x17 || amd_family() == 0x19;
    if (__builtin_cpu_supports("avx512f"))
        return (struct vector){"avx512", 8, 12, narrow ? 16 : 32, fma_avx512};
    if (__builtin_cpu_supports("fma"))
        return (struct vector){"avx2", 4, 12, 16, fma_avx2};
    if (__builtin_cpu_supports("avx"))
        return (struct vector){"avx", 4, 12, 16, fma_avx};
    return (struct vector){"sse2", 2, 12, 8, fma_sse2};
}

#else

static void add_in_turn(long additions)
{
    unsigned long sum = 0, one = 1, rounds = (unsigned long)additions / 8;
    __asm__ volatile("1:\n"
                     "add %[sum], %[sum], %[one]\n"
                     "add %[sum], %[sum], %[one]\n"
                     "add %[sum], %[sum], %[one]\n"
                     "add %[sum], %[sum], %[one]\n"
                     "add %[sum], %[sum], %[one]\n"
                     "add %[sum], %[sum], %[one]\n"
                     "add %[sum], %[sum], %[one]\n"
                     "add %[sum], %[sum], %[one]\n"
                     "subs %[rounds], %[rounds], #1\n"
                     "b.ne 1b\n"
                     : [sum] "+&r"(sum), [rounds] "+&r"(rounds)
                     : [one] "r"(one)
                     : "cc");
}

/* No instruction tells; a virtual machine has no say in its clock. */
static bool is_virtual(void)
{
    return access("/sys/devices/system/cpu/cpu0/cpufreq", F_OK) != 0;
}

/* 24 accumulators: up to four units with a latency of four cycles, two with nine (A64FX), and
   thirty-two registers. */
#define EACH(X)                                                                                    \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)    \
    X(17) X(18) X(19) X(20) X(21) X(22) X(23)
#define DECLARE(i) a##i = vdupq_n_f64(START(i)),
#define STEP(i) a##i = vfmaq_f64(a##i, x, y);
#define SUM(i) +vaddvq_f64(a##i)

/* The instruction adds to its accumulator; a multiplied accumulator would need a copy each time. */
static double fma_neon(long iterations, double factor, double summand)
{
    float64x2_t x = vdupq_n_f64(factor), y = vdupq_n_f64(summand), EACH(DECLARE) last = x;
    for (long n = 0; n < iterations; n++) {
        EACH(STEP)
    }
    (void)last;
    return (EACH(SUM)) / (24 * 2);
}

/* As text: compilers without SVE switched on neither know its types nor touch its registers. */
#define SVE_START(i) "dup z" #i ".d, %x[one]\n"
#define SVE_STEP(i) "fmla z" #i ".d, p0/m, z30.d, z31.d\n"
#define SVE_SUM(i) "fadd z29.d, z29.d, z" #i ".d\n"
static double fma_sve(long iterations, double factor, double summand)
{
    double total;
    unsigned long one, x, y, lanes;
    const double first = 1.0;
    memcpy(&one, &first, sizeof one);
    memcpy(&x, &factor, sizeof x);
    memcpy(&y, &summand, sizeof y);
    __asm__ volatile(".arch_extension sve\n"
                     "ptrue p0.d\n"
                     "dup z30.d, %x[x]\n"
                     "dup z31.d, %x[y]\n"
                     "dup z29.d, #0\n"
                     "cntd %x[lanes]\n" EACH(SVE_START) "1:\n" EACH(SVE_STEP)
                     "subs %x[n], %x[n], #1\n"
                     "b.ne 1b\n" EACH(SVE_SUM) "faddv d29, p0, z29.d\n"
                     "fmov %x[one], d29\n"
                     : [n] "+r"(iterations), [one] "+r"(one), [lanes] "=&r"(lanes)
                     : [x] "r"(x), [y] "r"(y)
                     : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
                       "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
                       "v22", "v23", "v29", "v30", "v31");
    memcpy(&total, &one, sizeof total);
    return total / (24 * (double)lanes);
}

static int sve_lanes(void)
{
    unsigned long lanes;
    __asm__ volatile(".arch_extension sve\ncntd %x[lanes]" : [lanes] "=r"(lanes));
    return (int)lanes;
}

/* Two units of 512 bits or four of 256; six of 128. */
static struct vector widest_vector(void)
{
    /* SVE of 128 bits uses the same units as NEON. */
    if ((getauxval(AT_HWCAP) & (1UL << 22)) != 0 && sve_lanes() > 2)
        return (struct vector){"sve", sve_lanes(), 24, 32, fma_sve};
    return (struct vector){"neon", 2, 24, 24, fma_neon};
}

#endif

struct fma_arguments {
    struct vector vector;
    double seconds;
};

struct fma_state {
    const struct fma_arguments *arguments;
    double mean, fastest; /* fastest: multiply-adds a second in the best block of a trial, twice */
};

static void *fma_prepare(const void *arguments, int core)
{
    static struct fma_state state;
    (void)core;
    state = (struct fma_state){arguments, 1.0, 0};
    return &state;
}

static double fma_run(void *state_)
{
    struct fma_state *state = state_;
    const struct vector *vector = &state->arguments->vector;
    /* Not known to the compiler, or it would compute the result itself. */
    volatile double factor = 0.999999, summand = 1e-6;
    const double work = 2.0 * vector->lanes * vector->accumulators * ITERATIONS;
    double before = now(), end = before + state->arguments->seconds, blocks = 0;
    state->fastest = 0;
    do {
        double mean = vector->run(ITERATIONS, factor, summand), after = now();
        state->mean = fabs(mean - 1) > fabs(state->mean - 1) ? mean : state->mean;
        state->fastest = fmax(state->fastest, work / (after - before));
        before = after;
        blocks++;
    } while (before < end);
    return blocks * work;
}

/* The clock in the licence of the multiply-adds, which a processor leaves after some 0.5 ms. */
static struct undisturbed fma_look(void *state, double rate)
{
    (void)rate;
    enum { BLOCKS = 64 };
    double fastest = 0;
    for (int block = 0; block < BLOCKS; block++) {
        double before = now();
        add_in_turn(ADDITIONS);
        fastest = fmax(fastest, (double)ADDITIONS / (now() - before));
    }
    return (struct undisturbed){((struct fma_state *)state)->fastest, fastest};
}

/* The accumulators begin between 1 and 1.023 and move by less than 0.021. */
static const char *fma_check(void *state)
{
    double mean = ((struct fma_state *)state)->mean;
    return fabs(mean - 1) < 0.05 ? NULL : "a sum of multiply-adds is not what it must be";
}

/* In GHz, 0 where nobody knows: other drivers name a clock without turbo, or none. */
static double highest_clock(const int *cores, int count)
{
    static const char *const with_turbo[] = {"intel_pstate", "intel_cpufreq", "amd-pstate"};
    double highest = 0;
    for (int i = 0; i < count; i++) {
        char path[96], line[64];
        bool known = false;
        int length = snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cpufreq/", cores[i]);
        snprintf(path + length, sizeof path - (size_t)length, "scaling_driver");
        if (!read_line(line, sizeof line, path))
            return 0;
        for (size_t n = 0; n < sizeof with_turbo / sizeof with_turbo[0]; n++)
            known |= strncmp(line, with_turbo[n], strlen(with_turbo[n])) == 0;
        snprintf(path + length, sizeof path - (size_t)length, "cpuinfo_max_freq");
        if (!known || !read_line(line, sizeof line, path))
            return 0;
        highest = fmax(highest, 1e-6 * atof(line)); /* in kHz */
    }
    return highest;
}

static void print_fma_peak(const struct options *options, const int *cores, int count)
{
    static struct timing timings[MAX_TRIALS];
    struct fma_arguments arguments = {widest_vector(), options->seconds};
    struct task task = {fma_prepare, fma_run, fma_check, &arguments, fma_look, false};
    double max_ghz = highest_clock(cores, count);
    measure(&task, cores, count, options->trials, timings);
    for (int trial = 0; trial < options->trials; trial++) {
        print_measurement("fma_peak", cores, count, trial, timings[trial].seconds);
        if (max_ghz > 0)
            printf(",\"max_ghz\":%.3f", max_ghz);
        printf(",\"vector\":\"%s\",\"flops_per_cycle\":%d,\"clock_ghz\":%.4f,\"virtual\":%d,"
               "\"gflops\":%.3f",
               arguments.vector.name, arguments.vector.flops_per_cycle,
               1e-9 * timings[trial].undisturbed.clock, is_virtual(), 1e-9 * timings[trial].rate);
        print_undisturbed(timings + trial);
    }
}

/* ---------------------------------------------------------------------- memory bandwidth ----- */

/* Between two looks at the clock; a look costs less than a thousandth of it. */
enum { BLOCK = 32768 };

/* Of each array what is next to a core: touched first by that core, and once for all measurements,
   as a machine may take a second to find a GiB of memory. */
struct part {
    int core, cache; /* the first CPU that shares its last-level cache */
    bool flushed;    /* before each trial, which then ends with the part */
    double *a, *b, *c;
    size_t elements, next;
};

struct triad_arguments {
    double seconds;
    struct part *parts;
    int part_count;
    size_t elements; /* of a part */
    bool alone;
};

/* Alone, a core goes through the parts of all that share its cache, which are as much larger than
   the cache as all are than all caches. It takes their blocks in turn: what it finds in each was
   not touched for longest. */
struct triad_state {
    double seconds, scalar;
    struct part **parts;
    size_t part_count, blocks; /* blocks: computed since the start */
};

static double *large_array(size_t elements)
{
    const size_t huge_page = 2 << 20;
    size_t size = (elements * sizeof(double) + huge_page - 1) / huge_page * huge_page;
    double *array = aligned_alloc(huge_page, size);
    if (array == NULL)
        fail("no memory for an array of %zu MiB; make it smaller by --array-mib", size >> 20);
    /* The memory is to be measured, not the look-up of its pages. */
    (void)madvise(array, size, MADV_HUGEPAGE);
    return array;
}

static void touch(struct part *part, size_t elements)
{
    part->elements = elements;
    part->a = large_array(elements);
    part->b = large_array(elements);
    part->c = large_array(elements);
    for (size_t i = 0; i < elements; i++) {
        part->a[i] = 0.0;
        part->b[i] = 1.0;
        part->c[i] = 2.0;
    }
}

static void flush(const double *array, size_t elements)
{
    for (size_t i = 0; i < elements; i += 8)
#if defined(__x86_64__)
        _mm_clflush(array + i);
    _mm_mfence();
#else
        __asm__ volatile("dc civac, %0" : : "r"(array + i) : "memory");
    __asm__ volatile("dsb ish" : : : "memory");
#endif
}

static void flush_part(struct part *part)
{
    flush(part->a, part->elements);
    flush(part->b, part->elements);
    flush(part->c, part->elements);
}

static void *triad_prepare(const void *arguments_, int core)
{
    const struct triad_arguments *arguments = arguments_;
    struct triad_state *state = calloc(1, sizeof *state);
    struct part *own = arguments->parts;
    while (own->core != core)
        own++;
    if (state != NULL)
        state->parts = malloc((size_t)arguments->part_count * sizeof(struct part *));
    if (state == NULL || state->parts == NULL)
        fail("no memory for a list of %d cores", arguments->part_count);
    state->seconds = arguments->seconds;
    state->scalar = 3.0;
    if (own->a == NULL)
        touch(own, arguments->elements);
    if (own->flushed)
        flush_part(own);
    for (int i = 0; i < arguments->part_count; i++) {
        struct part *part = arguments->parts + i;
        if (part == own || (arguments->alone && part->cache == own->cache))
            state->parts[state->part_count++] = part;
    }
    return state;
}

__attribute__((noinline)) static void triad(double *restrict a, const double *restrict b,
                                            const double *restrict c, double scalar)
{
    for (size_t i = 0; i < BLOCK; i++)
        a[i] = b[i] + scalar * c[i];
}

static double triad_run(void *state_)
{
    struct triad_state *state = state_;
    double end = now() + state->seconds, bytes = 0;
    do {
        struct part *part = state->parts[state->blocks++ % state->part_count];
        size_t i = part->next;
        triad(part->a + i, part->b + i, part->c + i, state->scalar);
        bytes += 24.0 * BLOCK;
        part->next = i + BLOCK == part->elements ? 0 : i + BLOCK;
        if (part->flushed && part->next == 0)
            break;
    } while (state->parts[0]->flushed || now() < end);
    return bytes;
}

static struct undisturbed triad_look(void *state_, double rate)
{
    struct part *part = ((struct triad_state *)state_)->parts[0];
    if (part->flushed)
        flush_part(part);
    return (struct undisturbed){rate, 0};
}

static const char *triad_check(void *state_)
{
    const struct triad_state *state = state_;
    for (size_t n = 0; n < state->part_count; n++) {
        const struct part *part = state->parts[n];
        size_t computed = BLOCK * (state->blocks / state->part_count);
        for (size_t i = 1; i <= computed && i <= part->elements; i++)
            if (part->a[(part->next + part->elements - i) % part->elements] != 7.0)
                return "an element of the triad is not 1 + 3 * 2";
    }
    return NULL;
}

/* The size in bytes of the last-level cache of a CPU and the first CPU that shares it; 0 where
   the kernel does not say. */
static size_t last_level_cache(int cpu, int *first_cpu)
{
    size_t size = 0;
    int highest = 0;
    for (int index = 0; index < 8; index++) {
        static bool sharing[MAX_CPUS];
        char path[128], line[4096];
        int level, length = snprintf(path, sizeof path,
                                     "/sys/devices/system/cpu/cpu%d/cache/index%d/", cpu, index);
        snprintf(path + length, sizeof path - (size_t)length, "level");
        if (!read_line(line, sizeof line, path) || (level = atoi(line)) <= highest)
            continue;
        snprintf(path + length, sizeof path - (size_t)length, "size");
        if (!read_line(line, sizeof line, path))
            continue;
        highest = level;
        size = (size_t)atol(line) << (strchr(line, 'M') != NULL ? 20 : 10);
        snprintf(path + length, sizeof path - (size_t)length, "shared_cpu_list");
        *first_cpu = cpu;
        if (read_line(line, sizeof line, path) && parse_cpus(line, sharing))
            for (*first_cpu = 0; !sharing[*first_cpu]; (*first_cpu)++)
                ;
    }
    return size;
}

/* The bytes of all the last-level caches that these cores reach. */
static size_t caches_in_reach(const int *cores, int count)
{
    static bool counted[MAX_CPUS];
    const size_t unknown = 64 << 20; /* of a node whose kernel does not say: a guess */
    size_t total = 0;
    memset(counted, 0, sizeof counted);
    for (int i = 0; i < count; i++) {
        int first = 0;
        size_t size = last_level_cache(cores[i], &first);
        if (!counted[first])
            total += size;
        counted[first] = true;
    }
    return total > 0 ? total : unknown;
}

/* The size of one array over these cores. */
static size_t array_bytes(long array_mib, const int *cores, int count)
{
    size_t bytes = array_mib > 0 ? (size_t)array_mib << 20 : 4 * caches_in_reach(cores, count) / 3;
    double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (3.0 * (double)bytes > 0.6 * memory)
        fail("three arrays of %zu MiB are more than 60 %% of the %.0f MiB of memory; "
             "choose smaller ones by --array-mib",
             bytes >> 20, memory / (1 << 20));
    return bytes;
}

static void print_triad(const struct options *options, struct triad_arguments *arguments,
                        const int *cores, int count)
{
    static struct timing timings[MAX_TRIALS];
    struct task task = {triad_prepare, triad_run, triad_check, arguments, triad_look, true};
    size_t shared = (size_t)count;
    arguments->alone = count == 1;
    if (arguments->alone) {
        const struct part *own = arguments->parts;
        while (own->core != cores[0])
            own++;
        shared = 0;
        for (int i = 0; i < arguments->part_count; i++)
            shared += arguments->parts[i].cache == own->cache;
    }
    measure(&task, cores, count, options->trials, timings);
    for (int trial = 0; trial < options->trials; trial++) {
        print_measurement(arguments->parts->flushed ? "triad_glance" : "triad", cores, count, trial,
                          timings[trial].seconds);
        printf(",\"array_mib\":%zu,\"bandwidth_gb_s\":%.3f",
               shared * arguments->elements * sizeof(double) >> 20, 1e-9 * timings[trial].rate);
        print_undisturbed(timings + trial);
    }
}

/* All cores at once first: that is when each touches the memory next to it. */
static void print_triads(const struct options *options, size_t bytes, bool glance, bool together)
{
    static struct part parts[MAX_CPUS];
    int count = options->core_count;
    size_t elements = bytes / sizeof(double) / (size_t)count;
    elements += (BLOCK - elements % BLOCK) % BLOCK;
    struct triad_arguments arguments = {options->seconds, parts, count, elements, false};
    for (int i = 0; i < count; i++) {
        parts[i].core = options->cores[i];
        parts[i].flushed = glance;
        (void)last_level_cache(options->cores[i], &parts[i].cache);
    }
    print_triad(options, &arguments, options->cores, count);
    for (int i = 0; i < count && count > 1 && !glance && !together; i++)
        print_triad(options, &arguments, options->cores + i, 1);
}

int main(int argc, char **argv)
{
    static struct options options = {.seconds = 0.2, .trials = 5};
    long array_mib = 0, glance = 0, together = 0;
    const struct setting settings[] = {
        {"--array-mib", &array_mib}, {"--glance", &glance}, {"--together", &together}, {NULL, NULL}};
    parse_options(&options, argc, argv, settings);
    size_t part = (size_t)8 << 20, count = (size_t)options.core_count;
    size_t bytes = glance ? part * count
                          : array_bytes(array_mib, options.cores, options.core_count);
    int alone = together && options.core_count > 1 ? 0 : glance ? 1 : options.core_count;
    for (int i = 0; i < alone; i++)
        print_fma_peak(&options, options.cores + i, 1);
    if (options.core_count > 1)
        print_fma_peak(&options, options.cores, options.core_count);
    print_triads(&options, bytes, glance != 0, together != 0);
    print_end();
    return 0;
}
