/* What the suite's own MPI kernels share: their options, their end, and the lines they print.
 *
 * Standard output is lines of JSON, printed by rank 0: first one of "measurement":"begin" that
 * names the program, its processes and its arguments, then one for each measurement, last one of
 * "measurement":"end" that counts those: without it, or with another count, the output was cut
 * off. A result that is wrong ends all ranks with a sentence and exit status 2.
 */
#ifndef CLUSTERGATE_MPI_KERNEL_H
#define CLUSTERGATE_MPI_KERNEL_H

#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* An option of a program: a number from `least`, or with `text` a word. */
struct option {
    const char *name;
    double *number;
    double least;
    const char **text;
};

static const char *program_name;
static int rank, processes;
static int measurements_printed;

static inline void fail(const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s: rank %d: ", program_name, rank);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(NULL);
    /* A launcher that is told to abort may end before it has passed the sentence on. */
    nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* Seconds of a clock of this node that counts nanoseconds. MPI_Wtime does for long times alone:
 * MVAPICH2's tells the seconds since 1970 in a double, in steps of 0.24 us, and its MPI_Wtick says
 * that it is 1 ns. */
static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static inline void take_option(const struct option *option, const char *name, const char *value)
{
    char *end = NULL;
    for (; option->name != NULL && strcmp(option->name, name) != 0; option++)
        ;
    if (option->name == NULL)
        fail("'%s' is not understood; see the head of the source", name);
    if (value == NULL)
        fail("%s needs a value", name);
    if (option->text != NULL) {
        *option->text = value;
        return;
    }
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || !(number >= option->least && number < 1e15))
        fail("%s takes a number from %g, not '%s'", name, option->least, value);
    *option->number = number;
}

/* What the program was called with, so that nobody takes the output of another call for this. */
static inline void print_arguments(int count, char **words)
{
    printf(",\"arguments\":[");
    for (int i = 0; i < count; i++) {
        printf("%s\"", i == 0 ? "" : ",");
        for (const char *c = words[i]; *c != '\0'; c++)
            /* No option takes what JSON would want escaped. */
            putchar(*c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '?' : *c);
        printf("\"");
    }
    printf("]");
}

/* MPI_Init, the options (ended by {NULL}), and the first line. */
static inline void begin(int *argc, char ***argv, const char *name, const struct option *options)
{
    program_name = name;
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    for (int i = 1; i < *argc; i += 2)
        take_option(options, (*argv)[i], i + 1 < *argc ? (*argv)[i + 1] : NULL);
    if (rank == 0) {
        printf("{\"measurement\":\"begin\",\"program\":\"%s\",\"processes\":%d", name, processes);
        print_arguments(*argc - 1, *argv + 1);
        printf("}\n");
    }
}

/* The last line, and MPI_Finalize. */
static inline int end(void)
{
    if (rank == 0) {
        printf("{\"measurement\":\"end\",\"count\":%d}\n", measurements_printed);
        if (fflush(stdout) != 0 || ferror(stdout))
            fail("the output could not be written");
    }
    MPI_Finalize();
    return 0;
}

static inline void *memory(size_t bytes)
{
    /* Never NULL for an empty message. */
    void *found = malloc(bytes > 0 ? bytes : 1);
    if (found == NULL)
        fail("no memory for %zu bytes; take fewer ranks on a node, or a smaller problem", bytes);
    return found;
}

/* ",\"name\":[…]": times in seconds, printed in microseconds. */
static inline void print_times(const char *name, const double *seconds, int count)
{
    printf(",\"%s\":[", name);
    for (int i = 0; i < count; i++)
        printf("%s%.4f", i == 0 ? "" : ",", 1e6 * seconds[i]);
    printf("]");
}

#endif
