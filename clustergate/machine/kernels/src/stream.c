/* Memory bandwidth: the four operations of McCalpin's STREAM on arrays that no cache holds.
 *
 *   mpicc -O3 -o stream stream.c
 *   mpirun -np 2 ./stream --elements 20000000 [--trials 10]
 *
 * A kernel of the suite's own, not stream.c. Every process has three arrays of --elements doubles
 * and goes through them with stride one: copy c=a, scale b=s*c, add c=a+b, triad a=b+s*c, --trials
 * times in turn. The time of a trial is the longest of all processes, between two barriers; all
 * are told. Bytes are counted as STREAM does: two arrays for copy and scale, three for add and
 * triad, though a processor may read what it is about to write. At the end the arrays are compared
 * with what the same operations make of single numbers.
 */
#include <math.h>

#include "mpi_kernel.h"

enum { KERNELS = 4, MOST_TRIALS = 1000 };
static const char *const names[KERNELS] = {"copy", "scale", "add", "triad"};
static const int arrays_touched[KERNELS] = {2, 2, 3, 3};

static void run(int kernel, double *restrict a, double *restrict b, double *restrict c, size_t n,
                double s)
{
    switch (kernel) {
    case 0:
        for (size_t i = 0; i < n; i++)
            c[i] = a[i];
        break;
    case 1:
        for (size_t i = 0; i < n; i++)
            b[i] = s * c[i];
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            c[i] = a[i] + b[i];
        break;
    default:
        for (size_t i = 0; i < n; i++)
            a[i] = b[i] + s * c[i];
    }
}

/* The largest relative deviation of an array from what each of its elements must be. */
static double deviation(const double *array, size_t n, double expected)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++) {
        double found = fabs(array[i] / expected - 1);
        if (!(found <= largest))
            largest = found; /* a NaN stays */
    }
    return largest;
}

int main(int argc, char **argv)
{
    static double times[KERNELS][MOST_TRIALS], slowest[KERNELS][MOST_TRIALS];
    double elements = 0, asked_trials = 10;
    const struct option options[] = {{"--elements", &elements, 1, NULL},
                                     {"--trials", &asked_trials, 2, NULL},
                                     {NULL, NULL, 0, NULL}};
    begin(&argc, &argv, "stream", options);
    size_t n = (size_t)elements;
    int trials = (int)asked_trials;
    if (n == 0)
        fail("--elements must say how long each process's arrays are: take four times the caches");
    if (trials > MOST_TRIALS)
        fail("--trials takes up to %d", MOST_TRIALS);
    double *a = memory(n * sizeof *a), *b = memory(n * sizeof *b), *c = memory(n * sizeof *c);
    for (size_t i = 0; i < n; i++) {
        a[i] = 1;
        b[i] = 2;
        c[i] = 0;
    }
    /* s below 1 keeps the numbers of any count of trials within the range of doubles. */
    double x = 1, y = 2, z = 0, s = 0.4;
    for (int k = 0; k < trials; k++) {
        for (int kernel = 0; kernel < KERNELS; kernel++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = now();
            run(kernel, a, b, c, n, s);
            times[kernel][k] = now() - start;
            MPI_Barrier(MPI_COMM_WORLD);
        }
        for (int kernel = 0; kernel < KERNELS; kernel++)
            run(kernel, &x, &y, &z, 1, s);
    }
    double largest = fmax(deviation(a, n, x), fmax(deviation(b, n, y), deviation(c, n, z)));
    if (!(largest <= 1e-13))
        fail("wrong result: an element is off by %g of its value; if another node does not show "
             "it, this one's memory is faulty",
             largest);
    MPI_Reduce(times, slowest, KERNELS * MOST_TRIALS, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int kernel = 0; rank == 0 && kernel < KERNELS; kernel++) {
        measurements_printed++;
        printf("{\"measurement\":\"stream\",\"kernel\":\"%s\",\"elements\":%zu,\"bytes\":%.0f",
               names[kernel], n, (double)arrays_touched[kernel] * 8.0 * (double)n * processes);
        print_times("times_us", slowest[kernel], trials);
        printf("}\n");
    }
    return end();
}
