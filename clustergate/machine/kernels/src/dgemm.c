/* DGEMM with the stack's BLAS, in the shape that HPL spends its time in.
 *
 *   cc -O3 -pthread -o dgemm dgemm.c <BLAS> -ldl -lm
 *   ./dgemm [--k NB] [--m M] [--seconds S] [--trials N] [--cores LIST] [--glance 1]
 *
 * C(m x m) -= A(m x k) B(k x m), column-major, by CBLAS: the update of HPL's trailing matrix, with
 * k its block size NB. With a BLAS whose names carry a prefix: -DCBLAS_DGEMM=scipy_cblas_dgemm.
 * Measured on each core alone and then on all at once, each with its own matrices and one BLAS
 * thread; every core makes the same number of calls. One JSON line for every trial, and a last one
 * with their number. By default one hardware thread of each core this process may use.
 * "undisturbed" is the rate by the cores' own processor time. A glance leaves each core alone out.
 */
#define _GNU_SOURCE
#include <math.h>

#include "blas.h"
#include "pinned.h"

#ifndef CBLAS_DGEMM
#define CBLAS_DGEMM cblas_dgemm
#endif

enum { COLUMN_MAJOR = 102, NO_TRANSPOSE = 111 };

void CBLAS_DGEMM(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                 const double *a, int lda, const double *b, int ldb, double beta, double *c,
                 int ldc);

struct arguments {
    int m, k;
    long calls; /* of one trial */
};

struct state {
    struct arguments arguments;
    double *a, *b, *c;
    long called;
};

static double *matrix(size_t rows, size_t columns)
{
    double *elements = malloc(rows * columns * sizeof(double));
    if (elements == NULL)
        fail("no memory for a matrix of %zu x %zu; make it smaller by --m", rows, columns);
    return elements;
}

/* Values between -0.5 and 0.5 that do not repeat along rows, columns or blocks. */
static double element(size_t i, size_t seed)
{
    unsigned long long bits = (i + 1) * 0x9e3779b97f4a7c15ULL + seed * 0xbf58476d1ce4e5b9ULL;
    bits ^= bits >> 29;
    bits *= 0x94d049bb133111ebULL;
    return (double)(bits >> 11) * 0x1p-53 - 0.5;
}

static void call(struct state *state)
{
    int m = state->arguments.m, k = state->arguments.k;
    CBLAS_DGEMM(COLUMN_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, m, k, -1.0, state->a, m, state->b, k,
                1.0, state->c, m);
    state->called++;
}

static void *prepare(const void *arguments, int core)
{
    static struct state state;
    (void)core;
    state.arguments = *(const struct arguments *)arguments;
    size_t m = (size_t)state.arguments.m, k = (size_t)state.arguments.k;
    state.a = matrix(m, k);
    state.b = matrix(k, m);
    state.c = matrix(m, m);
    for (size_t i = 0; i < m * k; i++) {
        state.a[i] = element(i, 1);
        state.b[i] = element(i, 2);
    }
    for (size_t i = 0; i < m * m; i++)
        state.c[i] = element(i, 3);
    call(&state); /* the first call sets the library up */
    return &state;
}

static double run(void *state_)
{
    struct state *state = state_;
    double m = state->arguments.m, k = state->arguments.k;
    for (long n = 0; n < state->arguments.calls; n++)
        call(state);
    return 2.0 * m * m * k * (double)state->arguments.calls;
}

/* A few entries, the corners among them, against a plain loop. The bound: a call adds k products of
   at most 1/4 and rounds k times, and each call rounds what has been summed up so far. */
static const char *check(void *state_)
{
    const struct state *state = state_;
    size_t m = (size_t)state->arguments.m, k = (size_t)state->arguments.k;
    const size_t places[] = {0, m / 3, m / 2, m - 1};
    double calls = (double)state->called;
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 4; j++) {
            size_t row = places[i], column = places[j];
            double product = 0;
            for (size_t n = 0; n < k; n++)
                product += state->a[row + n * m] * state->b[n + column * k];
            double expected = element(row + column * m, 3) - calls * product;
            double bound = 2.3e-16 * ((double)k + calls) * (1.0 + 0.25 * (double)k * calls);
            if (!(fabs(state->c[row + column * m] - expected) <= bound))
                return "an entry of C is not what a plain loop gives";
        }
    }
    return NULL;
}

static void print_dgemm(const struct options *options, const struct arguments *arguments,
                        const char *kernel, const int *cores, int count)
{
    static struct timing timings[MAX_TRIALS];
    struct task task = {prepare, run, check, arguments, NULL, false};
    measure(&task, cores, count, options->trials, timings);
    for (int trial = 0; trial < options->trials; trial++) {
        print_measurement("dgemm", cores, count, trial, timings[trial].seconds);
        printf(",\"m\":%d,\"k\":%d,\"kernel\":\"%s\",\"gflops\":%.3f", arguments->m,
               arguments->k, kernel != NULL ? kernel : "unknown", 1e-9 * timings[trial].rate);
        print_undisturbed(timings + trial);
    }
}

/* Libraries read these when they are loaded, so the program starts itself once more. */
static void use_one_blas_thread(char **argv)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS",
                                        "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"};
    bool again = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        again |= value == NULL || strcmp(value, "1") != 0;
        setenv(names[i], "1", 1);
    }
    if (again) {
        execv("/proc/self/exe", argv);
        fail("cannot start itself again with one BLAS thread: %s", strerror(errno));
    }
}

int main(int argc, char **argv)
{
    static struct options options = {.seconds = 0.5, .trials = 5};
    long m = 2000, k = 192, glance = 0;
    const struct setting settings[] = {
        {"--m", &m}, {"--k", &k}, {"--glance", &glance}, {NULL, NULL}};
    struct timing one_call;
    use_one_blas_thread(argv);
    parse_options(&options, argc, argv, settings);
    const char *kernel = blas_identity().kernel;
    struct arguments arguments = {(int)m, (int)k, 1};
    struct task task = {prepare, run, check, &arguments, NULL, false};
    measure(&task, options.cores, 1, 1, &one_call);
    arguments.calls = (long)ceil(options.seconds / one_call.seconds);
    for (int i = 0; i < options.core_count && !(glance && options.core_count > 1); i++)
        print_dgemm(&options, &arguments, kernel, options.cores + i, 1);
    if (options.core_count > 1)
        print_dgemm(&options, &arguments, kernel, options.cores, options.core_count);
    print_end();
    return 0;
}
